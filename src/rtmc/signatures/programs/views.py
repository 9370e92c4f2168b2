"""Programs that show files, folders and what the machine says."""

import re
from collections.abc import Iterable

from rtmc.signatures.effects import Effect, digest
from rtmc.signatures.programs.base import NOOP, Handler, Place, Words, operands

LINES_PER_BUCKET = 100


def bucket(first: int, last: int | None) -> str:
    """Write the scope of a view of lines ``first … last`` (from 1; None = to the end).

    The bucket of line n is (n − 1) // 100; lines 1 to the end are a full view.
    """
    start = max(first - 1, 0) // LINES_PER_BUCKET
    if last is None:
        return "full" if first <= 1 else f"partial[{start}-]"
    end = max(last - 1, 0) // LINES_PER_BUCKET
    return f"partial[{start}]" if end <= start else f"partial[{start}-{end}]"


def views_of(paths: Iterable[str], scope: str, place: Place) -> list[Effect]:
    """View several paths in the same scope."""
    return [Effect("view", place.path(path), scope) for path in paths]


def shown(label: str, detail: str = "") -> list[Effect]:
    """View something that is no file: what a read-only command prints."""
    return [Effect("view", label, "output", detail=detail)]


def cat(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """View whole files."""
    paths = [path for path in operands(args, "-b -v -w -s -l -d") if path != "-"]
    return views_of(paths, "full", place) or [NOOP]


def page(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """View in a pager: ``less +345 f`` opens at a line."""
    line = next((int(word[1:]) for word in args if re.fullmatch(r"\+\d+", word)), None)
    paths = [path for path in operands(args) if path[:1] not in ("-", "+")]
    return views_of(paths, "full" if line is None else bucket(line, line), place) or [NOOP]


def view_file(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """View files through a program that transforms them."""
    return views_of(operands(args[1:] if args[:1] == ["-"] else args), "full", place) or [NOOP]


_LINES = re.compile(r"^-(?:n=?|-lines=|)([+-]?\d+)$")


def line_count(args: Words) -> int | None:
    """Read the count of head and tail: ``-20``, ``-n 20``, ``-n20``, ``--lines=20``, ``-n +5``."""
    for at, word in enumerate(args):
        if word in ("-n", "--lines") and at + 1 < len(args):
            number = args[at + 1]
            if re.fullmatch(r"[+-]?\d+", number):
                return int(number)
        elif found := _LINES.match(word):
            return int(found[1])
    return None


def head_scope(args: Words) -> str:
    """Read which lines head shows."""
    count = line_count(args)
    if count is not None and count < 0 and not any(re.fullmatch(r"-\d+", a) for a in args):
        return bucket(1, None)  # `head -n -5`: all but the last
    return bucket(1, abs(count) if count is not None else 10)


def tail_scope(args: Words) -> str:
    """Read which lines tail shows."""
    for at, word in enumerate(args):
        text = args[at + 1] if word in ("-n", "--lines") and at + 1 < len(args) else word
        if found := re.fullmatch(r"(?:-n|--lines=)?\+(\d+)", text):
            return bucket(int(found[1]), None)
    return "partial[tail]"


def head(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """View the first lines."""
    paths = operands(args, "-n -c --lines --bytes")
    return views_of(paths, head_scope(args), place) or [NOOP]


def tail(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """View the last lines, or all from one on."""
    paths = [p for p in operands(args, "-n -c --lines --bytes --pid -s") if p[:1] != "+"]
    return views_of(paths, tail_scope(args), place) or [NOOP]


def list_folder(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """View folders."""
    return views_of(operands(args, "-I -L -P -w --ignore") or ["."], "dir", place)


def inspect(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """View what a program says of a file: its size, type, checksum."""
    return views_of(operands(args, "-c -f --format"), "stat", place) or [NOOP]


_SED_RANGE = re.compile(r"\s*(\d+)\s*(?:,\s*(\+?\d+|\$)\s*)?p?\s*(?:;\s*\d*q)?\s*$")


def sed_scopes(script: str) -> list[str] | None:
    """Read the line ranges that ``sed -n SCRIPT`` prints; None where it prints by pattern."""
    scopes: list[str] = []
    for part in re.split(r"[;\n]", script):
        if not part.strip() or re.fullmatch(r"\s*\d*q\s*", part):
            continue
        found = _SED_RANGE.match(part)
        if not found:
            if re.fullmatch(r"\s*\$\s*p?\s*", part):
                scopes.append("partial[tail]")
                continue
            return None
        first = int(found[1])
        last: int | None = first
        if found[2] == "$":
            last = None
        elif found[2]:
            last = first + int(found[2]) if found[2][0] == "+" else int(found[2])
        scope = bucket(first, last)
        if scope not in scopes:
            scopes.append(scope)
    return scopes or None


def sed_parts(args: Words) -> tuple[list[str], list[str], bool, bool]:
    """Take apart the arguments of sed: scripts, files, in place, quiet."""
    scripts: list[str] = []
    rest: list[str] = []
    in_place = quiet = False
    skip = ""
    for word in args:
        if skip:
            if skip == "-e":
                scripts.append(word)
            skip = ""
        elif word in ("-e", "--expression", "-f", "--file", "-l"):
            skip = "-e" if word in ("-e", "--expression") else word
        elif word.startswith("--in-place") or re.match(r"-[nErsuz]*i", word):
            in_place = True
        elif word in ("-n", "--quiet", "--silent") or re.fullmatch(r"-[Ersuz]*n[Ersuz]*", word):
            quiet = True
        elif word[:1] == "-" and word != "-":
            continue
        else:
            rest.append(word)
    if not scripts and rest:
        if in_place and rest[0] == "" and len(rest) > 1:  # BSD: -i ''
            rest = rest[1:]
        scripts, rest = rest[:1], rest[1:]
    return scripts, rest, in_place, quiet


def sed(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """``-i`` modifies, ``-n`` views ranges or searches, else the whole is shown."""
    scripts, paths, in_place, quiet = sed_parts(args)
    script = "\n".join(scripts)
    if in_place:
        identity = digest("sed " + script.strip())
        return [Effect("modify", place.path(p), "replace", identity) for p in paths] or [NOOP]
    if not quiet:
        return views_of(paths, "full", place) or [NOOP]
    scopes = sed_scopes(script)
    if scopes is None:
        return [Effect("search", place.path(p), detail=script) for p in paths] or [NOOP]
    return [view for p in paths for scope in scopes for view in views_of([p], scope, place)] or [
        NOOP
    ]


_AWK_RANGE = re.compile(
    r"NR\s*>=\s*(\d+)(?:\s*&&\s*NR\s*(<=?)\s*(\d+))?|NR\s*==\s*(\d+)(?:\s*,\s*NR\s*==\s*(\d+))?"
    r"|NR\s*(<=?)\s*(\d+)"
)


def awk_scope(script: str) -> str | None:
    """Read the lines that an awk script prints by number; None where it does something else."""
    found = _AWK_RANGE.search(script)
    if not found:
        return None
    if found[1]:
        last = int(found[3]) - (found[2] == "<") if found[3] else None
        return bucket(int(found[1]), last)
    if found[4]:
        return bucket(int(found[4]), int(found[5] or found[4]))
    return bucket(1, int(found[7]) - (found[6] == "<"))


def awk(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """View lines by number, or search by pattern."""
    words = operands(args, "-F -v -f")
    if not words:
        return [NOOP]
    script, paths = words[0], words[1:]
    scope = awk_scope(script)
    if scope is None and re.match(r"\s*/", script):
        return [Effect("search", place.path(p), detail=script) for p in paths] or [NOOP]
    return views_of(paths, scope or "full", place) or [NOOP]


def prints(label: str) -> Handler:
    """A program whose output alone matters."""

    def handler(args: Words, stdin: str | None, place: Place) -> list[Effect]:
        return shown(label, " ".join(args))

    return handler


def diff(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """View how files differ."""
    paths = " ".join(place.path(p) for p in operands(args, "-U -C"))
    return shown(f"diff {paths}".rstrip())
