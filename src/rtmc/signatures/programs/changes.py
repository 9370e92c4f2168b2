"""Programs that change files."""

import re
from collections.abc import Sequence

from rtmc.signatures.effects import Effect, digest, edit_digest
from rtmc.signatures.programs.base import NOOP, Place, Words, basename, digested, operands
from rtmc.signatures.programs.runs import interpreter


def remove(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Delete files and folders."""
    return [Effect("delete", place.path(p)) for p in operands(args)] or [NOOP]


def make(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Create empty files and folders."""
    return [Effect("create", place.path(p)) for p in operands(args, "-m -d -t -r")] or [NOOP]


def copy(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Create a copy: its identity is what was copied."""
    return _transfer(args, place, keeps_source=True)


def move(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Create the target and delete the source."""
    return _transfer(args, place, keeps_source=False)


def _transfer(args: Words, place: Place, keeps_source: bool) -> list[Effect]:
    words = operands(args, "-t --target-directory -S")
    if len(words) < 2:
        return [NOOP]
    *sources, target = words
    into_folder = len(sources) > 1 or target.endswith("/") or target in (".", "..")
    effects: list[Effect] = []
    for source in sources:
        path = f"{target.rstrip('/')}/{basename(source.rstrip('/'))}" if into_folder else target
        identity = digest(f"copy of {place.path(source)}")
        effects.append(Effect("create", place.path(path), digest=identity))
        if not keeps_source:
            effects.append(Effect("delete", place.path(source)))
    return effects


def patch_effects(patch: str, place: Place) -> list[Effect]:
    """Read the edits of a unified diff or of an ``apply_patch`` envelope, one effect a file."""
    effects: list[Effect] = []
    kind, path, minus = "modify", "", [""]
    old: list[str] = []
    new: list[str] = []

    def close() -> None:
        if not path:
            return
        target = place.path(path)
        if kind == "delete":
            effects.append(Effect("delete", target))
        elif kind == "create":
            effects.append(Effect("create", target, digest=edit_digest("\n".join(new))))
        elif old or new:
            identity = edit_digest("\n".join(new), "\n".join(old))
            effects.append(Effect("modify", target, "replace", identity))

    for line in patch.replace("\r\n", "\n").split("\n"):
        if found := re.match(r"\*\*\* (Update|Add|Delete) File: (.+)", line):
            close()
            kind = {"Update": "modify", "Add": "create", "Delete": "delete"}[found[1]]
            path, old, new = found[2].strip(), [], []
        elif line.startswith("--- "):
            minus[0] = line[4:].split("\t")[0].strip()
        elif line.startswith("+++ "):
            close()
            plus = line[4:].split("\t")[0].strip()
            kind = "create" if minus[0] == "/dev/null" else "modify"
            if plus == "/dev/null":
                kind, plus = "delete", minus[0]
            path, old, new = re.sub(r"^[ab]/", "", plus), [], []
        elif line[:1] == "-":
            old.append(line[1:])
        elif line[:1] == "+":
            new.append(line[1:])
    close()
    return effects


def patch(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Modify what a patch names, or, where its text is elsewhere, by the command."""
    if stdin and (effects := patch_effects(stdin, place)):
        return effects
    target = next(iter(operands(args, "-p -i -d --input")), "")
    identity = digest(f"patch {' '.join(args)}\n{stdin or ''}")
    return [Effect("modify", place.path(target) if target else "", "replace", identity)]


def apply_patch(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Modify what an ``apply_patch`` envelope names."""
    text = stdin or "\n".join(args)
    return patch_effects(text, place) or [digested("apply_patch", args, place)]


def script_editor(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """``ed`` and ``ex`` edit by a script on standard input; a screen editor only runs."""
    paths = operands(args, "-c")
    if stdin is None or not paths:
        return [digested("editor", args, place)]
    return [Effect("modify", place.path(p), "replace", digest(stdin.strip())) for p in paths]


def perl(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """``perl -pi`` modifies; any other perl is a run."""
    in_place = any(re.match(r"-[0-9a-zA-Z]*i", word) for word in args[:3])
    if not in_place:
        return interpreter("perl")(args, stdin, place)
    operands: list[str] = []
    script = ""
    skip = False
    for word in args:
        if skip:
            script, skip = word, False
        elif re.match(r"-\w*e$", word):
            skip = True
        elif word[:1] != "-":
            operands.append(word)
    identity = digest("perl " + script.strip())
    return [Effect("modify", place.path(p), "replace", identity) for p in operands] or [NOOP]


def restore(paths: Sequence[str], place: Place) -> list[Effect]:
    """Restore files to what git has."""
    return [Effect("restore", place.path(path)) for path in paths] or [NOOP]
