"""Say what one simple command does: program and arguments to effects.

``effects_of`` looks through wrappers (``sudo``, ``timeout 5``, ``env A=b`` …), then asks the table
``PROGRAMS``. A program that is not in it is a run: of a file of the repository if it is one
(``./tool``, ``python x.py``), else identified by the digest of its normalised command.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from posixpath import basename

from rtmc.signatures.effects import Effect, digest, edit_digest
from rtmc.signatures.paths import normalise
from rtmc.signatures.results import scrub

__all__ = ["NOOP", "Place", "bucket", "effects_of", "is_filter", "patch_effects", "run_digest"]

NOOP = Effect("noop")
PATH_LOOKUP = "$PATH"
LINES_PER_BUCKET = 100


class Place:
    """Where a command runs: current directory and root, both as ``paths.normalise`` wants them."""

    __slots__ = ("cwd", "root")

    def __init__(self, root: str | None = None, cwd: str = "") -> None:
        self.root = root.rstrip("/") or "/" if root else None
        self.cwd = cwd

    def path(self, path: str) -> str:
        return normalise(path, self.cwd, self.root)


Words = Sequence[str]
Handler = Callable[[Words, str | None, Place], list[Effect]]


# --- views -------------------------------------------------------------------------------------


def bucket(first: int, last: int | None) -> str:
    """Write the scope of a view of lines ``first … last`` (from 1; None = to the end).

    The bucket of line n is (n − 1) // 100; lines 1 to the end are a full view.
    """
    start = max(first - 1, 0) // LINES_PER_BUCKET
    if last is None:
        return "full" if first <= 1 else f"partial[{start}-]"
    end = max(last - 1, 0) // LINES_PER_BUCKET
    return f"partial[{start}]" if end <= start else f"partial[{start}-{end}]"


def _views(paths: Iterable[str], scope: str, place: Place) -> list[Effect]:
    return [Effect("view", place.path(path), scope) for path in paths]


def _output(label: str, detail: str = "") -> list[Effect]:
    """View something that is no file: what a read-only command prints."""
    return [Effect("view", label, "output", detail=detail)]


def _operands(args: Words, with_value: str = "") -> list[str]:
    """Drop the options; ``with_value`` names those that take the next word along."""
    takes = frozenset(with_value.split())
    operands: list[str] = []
    skip = False
    for at, word in enumerate(args):
        if skip:
            skip = False
        elif word == "--":
            operands += args[at + 1 :]
            break
        elif word[:1] == "-" and word != "-":
            skip = word in takes
        else:
            operands.append(word)
    return operands


def _cat(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    paths = [path for path in _operands(args, "-b -v -w -s -l -d") if path != "-"]
    return _views(paths, "full", place) or [NOOP]


def _view_file(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    return _views(_operands(args[1:] if args[:1] == ["-"] else args), "full", place) or [NOOP]


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
    count = line_count(args)
    if count is not None and count < 0 and not any(re.fullmatch(r"-\d+", a) for a in args):
        return bucket(1, None)  # `head -n -5`: all but the last
    return bucket(1, abs(count) if count is not None else 10)


def tail_scope(args: Words) -> str:
    for at, word in enumerate(args):
        text = args[at + 1] if word in ("-n", "--lines") and at + 1 < len(args) else word
        if found := re.fullmatch(r"(?:-n|--lines=)?\+(\d+)", text):
            return bucket(int(found[1]), None)
    return "partial[tail]"


def _head(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    paths = _operands(args, "-n -c --lines --bytes")
    return _views(paths, head_scope(args), place) or [NOOP]


def _tail(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    paths = [p for p in _operands(args, "-n -c --lines --bytes --pid -s") if p[:1] != "+"]
    return _views(paths, tail_scope(args), place) or [NOOP]


def _list(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    return _views(_operands(args, "-I -L -P -w --ignore") or ["."], "dir", place)


def _inspect(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """View what a program says of a file: its size, type, checksum."""
    return _views(_operands(args, "-c -f --format"), "stat", place) or [NOOP]


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


def _sed(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    scripts, paths, in_place, quiet = sed_parts(args)
    script = "\n".join(scripts)
    if in_place:
        identity = digest("sed " + script.strip())
        return [Effect("modify", place.path(p), "replace", identity) for p in paths] or [NOOP]
    if not quiet:
        return _views(paths, "full", place) or [NOOP]
    scopes = sed_scopes(script)
    if scopes is None:
        return [Effect("search", place.path(p), detail=script) for p in paths] or [NOOP]
    return [view for p in paths for scope in scopes for view in _views([p], scope, place)] or [NOOP]


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


def _awk(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    operands = _operands(args, "-F -v -f")
    if not operands:
        return [NOOP]
    script, paths = operands[0], operands[1:]
    scope = awk_scope(script)
    if scope is None and re.match(r"\s*/", script):
        return [Effect("search", place.path(p), detail=script) for p in paths] or [NOOP]
    return _views(paths, scope or "full", place) or [NOOP]


def _prints(label: str) -> Handler:
    def handler(args: Words, stdin: str | None, place: Place) -> list[Effect]:
        return _output(label, " ".join(args))

    return handler


def _diff(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    paths = " ".join(place.path(p) for p in _operands(args, "-U -C"))
    return _output(f"diff {paths}".rstrip())


# --- searches ----------------------------------------------------------------------------------

_GREP_VALUES = (
    "-e -f -A -B -C -m -d -D -g -t -T --include --exclude --exclude-dir --type --glob "
    "--max-count --color --context --regexp --file --max-depth -j -M -E_"
)


def _grep(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    operands = _operands(args, _GREP_VALUES)
    given = any(re.match(r"-[a-zA-Z]*[ef]$|--regexp|--file|--files", word) for word in args)
    paths = operands if given else operands[1:]
    detail = " ".join(args)
    return [Effect("search", place.path(p), detail=detail) for p in paths or ["."]]


_FIND_GLOBAL = frozenset(("-H", "-L", "-P"))
_FIND_NAMES = ("-name", "-iname", "-path", "-wholename", "-regex")


def find_parts(args: Words) -> tuple[list[str], list[str], str, list[str]]:
    """Take apart the arguments of find: folders, expression, name pattern, command of -exec."""
    folders: list[str] = []
    at = 0
    while at < len(args) and (args[at] in _FIND_GLOBAL or args[at][:1] not in ("-", "(", "!")):
        if args[at] not in _FIND_GLOBAL:
            folders.append(args[at])
        at += 1
    expression = list(args[at:])
    name = next((expression[i + 1] for i, w in enumerate(expression[:-1]) if w in _FIND_NAMES), "")
    command: list[str] = []
    for i, word in enumerate(expression):
        if word in ("-exec", "-execdir", "-ok"):
            for part in expression[i + 1 :]:
                if part in (";", "+"):
                    break
                command.append(part)
            break
    return folders or ["."], expression, name, command


def _find(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    folders, expression, name, command = find_parts(args)
    targets = [place.path(folder) for folder in folders]
    detail = " ".join(expression)
    if "-delete" in expression:
        return [Effect("delete", _below(target, name)) for target in targets]
    if command:
        inner: list[Effect] = []
        for target in targets:
            pattern = _below(target, name)
            words = [pattern if word == "{}" else word for word in command]
            for effect in effects_of(words, None, Place(place.root)):
                inner.append(_searched(effect, target, detail))
        return inner
    return [Effect("search", target, detail=detail) for target in targets]


def _below(folder: str, name: str) -> str:
    """Write the pattern of the files called ``name`` below a folder."""
    if not name:
        return folder
    return name if folder == "." else f"{folder}/{name}"


def _searched(effect: Effect, target: str, detail: str) -> Effect:
    """Looking at every file that a search finds is part of the search."""
    if effect.kind in ("view", "search"):
        return Effect("search", target, detail=f"{detail} {effect.detail}")
    return effect


def _which(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    return [Effect("search", PATH_LOOKUP, detail=" ".join(_operands(args)))]


def _find_file(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    operands = _operands(args)
    folder = operands[1] if len(operands) > 1 else "."
    return [Effect("search", place.path(folder), detail=" ".join(operands[:1]))]


# --- changes -----------------------------------------------------------------------------------


def _remove(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    return [Effect("delete", place.path(p)) for p in _operands(args)] or [NOOP]


def _make(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    return [Effect("create", place.path(p)) for p in _operands(args, "-m -d -t -r")] or [NOOP]


def _copy(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    return _transfer(args, place, keeps_source=True)


def _move(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    return _transfer(args, place, keeps_source=False)


def _transfer(args: Words, place: Place, keeps_source: bool) -> list[Effect]:
    operands = _operands(args, "-t --target-directory -S")
    if len(operands) < 2:
        return [NOOP]
    *sources, target = operands
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


def _patch(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    if stdin and (effects := patch_effects(stdin, place)):
        return effects
    target = next(iter(_operands(args, "-p -i -d --input")), "")
    identity = digest("patch " + " ".join(args))
    return [Effect("modify", place.path(target) if target else "", "replace", identity)]


def _apply_patch(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    text = stdin or "\n".join(args)
    return patch_effects(text, place) or [_digested("apply_patch", args, place)]


def _editor(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """``ed`` and ``ex`` edit by a script on standard input; a screen editor only runs."""
    paths = _operands(args, "-c")
    if stdin is None or not paths:
        return [_digested("editor", args, place)]
    return [Effect("modify", place.path(p), "replace", digest(stdin.strip())) for p in paths]


def _perl(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    in_place = any(re.match(r"-[0-9a-zA-Z]*i", word) for word in args[:3])
    if not in_place:
        return _interpreter("perl")(args, stdin, place)
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


# --- git ---------------------------------------------------------------------------------------

_GIT_READS = frozenset(
    "diff log show status blame branch remote ls-files ls-tree reflog describe rev-parse config "
    "shortlog cat-file tag help whatchanged rev-list name-rev var version count-objects".split()
)
_GIT_WRITES = {"branch": ("-d", "-D", "-m", "-M"), "tag": ("-d", "-a", "-m"), "remote": ("add",)}


def _git(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    words = list(args)
    while words and words[0][:1] == "-":
        if words[0] == "-C" and len(words) > 1:
            place = Place(place.root, _folder(words[1], place))
        words = words[2:] if words[0] in ("-C", "-c", "--git-dir", "--work-tree") else words[1:]
    if not words:
        return _output("git", " ".join(args))
    command, rest = words[0], words[1:]
    if command == "grep":
        return _grep(rest, stdin, place)
    if command in ("rm", "mv"):
        return (_remove if command == "rm" else _move)(rest, stdin, place)
    if command == "apply" or command == "am":
        return _patch(rest, stdin, place)
    if command == "restore" and "--staged" not in rest:
        return _restore(_operands(rest, "-s --source"), place)
    if command == "checkout" and (paths := _checked_out(rest)):
        return _restore(paths, place)
    if command == "reset" and "--hard" in rest:
        return [Effect("restore", ".")]
    writes = command == "config" and len(_operands(rest)) > 1
    writes = writes or any(word in rest for word in _GIT_WRITES.get(command, ()))
    if command in _GIT_READS and not writes:
        paths = [place.path(p) for p in _operands(rest) if "/" in p or _FILE_NAME.search(p)]
        return _output(" ".join(["git", command, *paths]), " ".join(rest))
    if command == "add":
        return [NOOP]
    return [_digested("git", words, place)]


_FILE_NAME = re.compile(r"\.[A-Za-z]\w{0,4}$")


def _checked_out(args: Words) -> list[str]:
    """Find the files that ``git checkout`` restores; none where it switches branches."""
    if "--" in args:
        return list(args[list(args).index("--") + 1 :])
    if any(word in ("-b", "-B", "--orphan", "-t") for word in args):
        return []
    operands = _operands(args)
    if operands[:1] == ["HEAD"] or (
        operands and re.fullmatch(r"[0-9a-f]{7,40}|HEAD[~^]\d*", operands[0])
    ):
        operands = operands[1:]
    if operands == ["."] or (operands and all(_FILE_NAME.search(word) for word in operands)):
        return operands
    return []


def _restore(paths: Sequence[str], place: Place) -> list[Effect]:
    return [Effect("restore", place.path(path)) for path in paths] or [NOOP]


# --- tests and runs ----------------------------------------------------------------------------

_TEST_NAME = re.compile(r"(?:^|[_.-])(?:run)?_?tests?(?:[_.-]|$)", re.IGNORECASE)
_PYTEST_VALUES = (
    "-k -m -p -c -o -n -W -r --tb --maxfail --durations --rootdir --deselect --ignore --confcutdir "
    "--junitxml --cov --cov-report --color --timeout --log-level --import-mode -j --dist"
)
_UNITTEST_VALUES = "-s -p -t -k"
_DJANGO_VALUES = "-v --verbosity --settings --parallel -k --tag --exclude-tag --testrunner -t"


def _test(targets: Iterable[str], args: Words, place: Place) -> list[Effect]:
    target = ",".join(_test_target(word, place) for word in targets) or place.path(".")
    return [Effect("test", target, detail=" ".join(args))]


def _test_target(word: str, place: Place) -> str:
    path, colons, node = word.partition("::")
    return (place.path(path) if "/" in path or "." in path or place.cwd else path) + colons + node


def _tests(with_value: str = "") -> Handler:
    def handler(args: Words, stdin: str | None, place: Place) -> list[Effect]:
        if "--collect-only" in args or "--co" in args:
            return _output("pytest --collect-only", " ".join(args))
        return _test(_operands(args, with_value), args, place)

    return handler


_pytest = _tests(_PYTEST_VALUES)


def _tox(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    words = list(args)
    targets = words[words.index("--") + 1 :] if "--" in words else []
    return _test([w for w in targets if w[:1] != "-"], args, place)


def _subcommand_tests(label: str) -> Handler:
    """Tests of a build tool: ``cargo test x``, ``go test ./...``, ``npm test``, ``make check``."""

    def handler(args: Words, stdin: str | None, place: Place) -> list[Effect]:
        words = [word for word in args if word[:1] != "-"]
        if label == "npm" and words[:1] == ["run"]:
            words = words[1:]
        verbs = (
            ("test", "check") if label == "make" else ("test", "t") if label == "npm" else ("test",)
        )
        if words and (words[0] in verbs or (label == "npm" and words[0].startswith("test"))):
            return _test(_operands(args)[1:] if label in ("go", "cargo") else (), args, place)
        if label == "cargo" and words[:1] == ["nextest"]:
            return _test((), args, place)
        runs = label == "make" or words[:1] in (["run"], ["build"], ["bench"])
        return [_digested(label, args, place, runs_code=runs)]

    return handler


_SERVES = frozenset("http.server pip venv virtualenv ensurepip conda jupyter notebook flask uvicorn "
                    "gunicorn pipenv poetry build twine debugpy".split())  # fmt: skip
_TEST_MODULES: dict[str, Handler] = {
    "pytest": _pytest,
    "py.test": _pytest,
    "unittest": _tests(_UNITTEST_VALUES),
    "nose": _tests(),
    "nose2": _tests(),
    "doctest": _tests(),
    "twisted.trial": _tests(),
    "tox": _tox,
    "nox": _tox,
}


def _python(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    words = list(args)
    while words and words[0][:1] == "-" and words[0] not in ("-c", "-m", "-"):
        if words[0] in ("-V", "--version", "-h", "--help"):
            return _output("python " + words[0])
        words = words[2:] if words[0] in ("-W", "-X") else words[1:]
    if not words or words[0] == "-":
        return (
            _python_code(stdin, place) if stdin is not None else [_digested("python", args, place)]
        )
    if words[0] == "-c":
        return _python_code(words[1] if len(words) > 1 else "", place)
    if words[0] != "-m":
        return _run_file(words[0], words[1:], place)
    module, rest = (words[1] if len(words) > 1 else ""), words[2:]
    if module == "coverage" and rest[:1] == ["run"]:
        return _python(_drop_options(rest[1:], "--source --omit --include --rcfile"), stdin, place)
    if module in _TEST_MODULES:
        return _TEST_MODULES[module](rest, stdin, place)
    if module == "pip":
        return _pip(rest, stdin, place)
    if module == "json.tool" and rest:
        return _views(rest[:1], "full", place)
    if "--help" in rest or "--version" in rest:
        return _output(f"python -m {module}")
    return [_digested("python -m", words[1:], place, runs_code=module.split(".")[0] not in _SERVES)]


def _drop_options(words: Words, with_value: str) -> list[str]:
    """Drop leading options only, with their values."""
    takes = frozenset(with_value.split())
    at = 0
    while at < len(words) and words[at][:1] == "-" and words[at] not in ("-m", "-c"):
        at += 2 if words[at] in takes else 1
    return list(words[at:])


_OPENED = re.compile(
    r"""\bopen\(\s*(?:f?(?P<q>['"])(?P<path>[^'"\n]+)(?P=q)|(?P<name>[A-Za-z_]\w*))\s*,\s*
        (?:mode\s*=\s*)?['"](?P<mode>[rwaxb+t]+)['"]
      | \bPath\(\s*(?P<q2>['"])(?P<path2>[^'"\n]+)(?P=q2)\s*\)\.write_(?:text|bytes)\(
      | \b(?P<name2>[A-Za-z_]\w*)\.write_(?:text|bytes)\(""",
    re.VERBOSE,
)


def _python_code(code: str | None, place: Place) -> list[Effect]:
    """Inline code is a run, or a modify of the files whose names it spells out and writes."""
    code = code or ""
    written: list[str] = []
    for found in _OPENED.finditer(code):
        mode = found["mode"]
        if mode and not set(mode) & set("wax+"):
            continue
        path = found["path"] or found["path2"]
        name = found["name"] or found["name2"]
        if path is None and name:
            given = re.search(
                rf"^\s*{name}\s*=\s*(?:\w+\.)*(?:Path\()?\s*['\"]([^'\"\n]+)['\"]",
                code,
                re.MULTILINE,
            )
            path = given[1] if given else None
        if path and "{" not in path and place.path(path) not in written:
            written.append(place.path(path))
    identity = edit_digest(code)
    if written:
        return [Effect("modify", path, "replace", identity) for path in written]
    return [Effect("execute", digest=_in_folder(identity, place), runs_code=True)]


def _run_file(path: str, args: Words, place: Place) -> list[Effect]:
    """Run a file of the repository: a test if its name says so."""
    detail = " ".join(args)
    name = basename(path)
    target = place.path(path)
    if name == "manage.py" and args[:1] == ["test"]:
        return _test(_operands(args[1:], _DJANGO_VALUES), args, place)
    if name == "setup.py" and args[:1] == ["test"]:
        return _test((), args, place)
    if re.match(r"runtests\b|run_tests?\b", name):
        targets = _operands(args, _DJANGO_VALUES)
        return [Effect("test", ",".join(targets) or target, detail=detail)]
    if _TEST_NAME.search(name):
        # sympy's bin/test and its like take the files to test; a test file is one itself
        targets = [] if _FILE_NAME.search(name) else _operands(args, _PYTEST_VALUES)
        return _test(targets, args, place) if targets else [Effect("test", target, detail=detail)]
    if "--help" in args or "--version" in args:
        return _output(target, detail)
    return [Effect("execute", target, detail=detail, runs_code=True)]


def _interpreter(name: str) -> Handler:
    """node, ruby, perl …: inline code by ``-e``, else a file."""

    def handler(args: Words, stdin: str | None, place: Place) -> list[Effect]:
        operands = _operands(args)
        if any(word in ("-v", "--version", "-V", "--help") for word in args[:1]):
            return _output(f"{name} {args[0]}")
        if operands and not any(word in ("-e", "-c", "-p", "--eval") for word in args):
            return _run_file(operands[0], operands[1:], place)
        return [_digested(name, args, place, stdin, runs_code=True)]

    return handler


def _pip(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    if args[:1] and args[0] in ("list", "show", "freeze", "--version", "index", "check", "config"):
        return _output(f"pip {args[0]}", " ".join(args))
    return [_digested("pip", args, place)]


_PACKAGE_READS = frozenset(
    "list search show info policy --version -V -l -s -L view env config".split()
)


def _packages(name: str) -> Handler:
    def handler(args: Words, stdin: str | None, place: Place) -> list[Effect]:
        words = [w for w in args if w[:1] != "-"] or list(args)
        if words and (words[0] in _PACKAGE_READS or args[0] in _PACKAGE_READS):
            return _output(f"{name} {words[0]}", " ".join(args))
        return [_digested(name, args, place)]

    return handler


_npm = _subcommand_tests("npm")
_FINISH_MARKS = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")


def _echo(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    return [Effect("finish")] if args and args[0].strip() in _FINISH_MARKS else [NOOP]


def _nothing(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    return [NOOP]


def _source(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    if not args or "activate" in args[0] or "conda" in args[0] or args[0].endswith("rc"):
        return [NOOP]
    return _run_file(args[0], args[1:], place)


def _finish(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    return [Effect("finish")]


def _table() -> dict[str, Handler]:
    table: dict[str, Handler] = {}

    def put(names: str, handler: Handler) -> None:
        for name in names.split():
            table[name] = handler

    put("cat less more bat batcat tac nl zcat view", _cat)
    put(
        "od xxd hexdump strings sort uniq cut column jq yq fold rev tr base64 hd paste comm",
        _view_file,
    )
    put("head", _head)
    put("tail", _tail)
    put("ls ll tree dir exa", _list)
    put("wc file stat md5sum sha1sum sha256sum cksum readlink realpath du", _inspect)
    put("sed", _sed)
    put("awk gawk mawk", _awk)
    put("grep egrep fgrep rg zgrep ag ack ripgrep", _grep)
    put("find", _find)
    put("fd fdfind locate", _find_file)
    put("which whereis type hash", _which)
    put("diff cmp colordiff", _diff)
    for name in (
        "ps top htop env printenv pwd whoami id date uname hostname df free uptime nproc lscpu "
        "lsof netstat ss ifconfig ip mount groups locale jobs lsblk nvidia-smi tty arch getent "
        "man help history pgrep w who cal lsb_release nproc dmesg sysctl vmstat"
    ).split():
        table[name] = _prints(name)
    put("rm rmdir unlink", _remove)
    put("touch mkdir", _make)
    put("cp", _copy)
    put("ln", _copy)
    put("mv", _move)
    put("patch", _patch)
    put("apply_patch applypatch", _apply_patch)
    put("ed ex vi vim nano emacs", _editor)
    put("perl", _perl)
    put("git", _git)
    put("pytest py.test", _pytest)
    put("nosetests trial", _tests())
    put("tox nox", _tox)
    put("ctest rspec phpunit jest vitest mocha ava bats", _tests())
    for name in ("make", "cargo", "go", "mvn", "gradle", "dotnet", "bazel", "ninja"):
        table[name] = _subcommand_tests(name)
    put("npm yarn pnpm bun", _npm)
    put("gradlew mvnw", _subcommand_tests("gradle"))
    put("python pypy ipython", _python)
    put("pip pip3", _pip)
    for name in (
        "apt",
        "apt-get",
        "apt-cache",
        "dpkg",
        "conda",
        "mamba",
        "brew",
        "yum",
        "dnf",
        "apk",
    ):
        table[name] = _packages(name)
    for name in ("node", "ruby", "php", "lua", "Rscript", "julia", "deno", "java"):
        table[name] = _interpreter(name)
    put("bash sh zsh dash", _interpreter("bash"))
    put("echo printf", _echo)
    put("submit finish", _finish)
    put("source .", _source)
    put(
        "cd pushd popd true false : exit export set unset alias unalias ulimit umask wait sleep "
        "clear reset shopt trap read return break continue declare typeset local readonly let "
        "set_cursors logout disown fg bg test [ tput stty",
        _nothing,
    )
    return table


PROGRAMS = _table()

_FILTERS = frozenset(
    "head tail grep egrep fgrep rg sed awk gawk sort uniq wc cut tr less more cat nl column fold rev "
    "tac jq yq strings od xxd hexdump base64 cmp paste comm".split()
)


def is_filter(argv: Words) -> bool:
    """Tell whether a command behind a pipe only shows less of what comes in."""
    return (
        bool(argv)
        and basename(argv[0]) in _FILTERS
        and not (argv[0] == "sed" and sed_parts(argv[1:])[2])
    )


_PYTHON = re.compile(r"(?:python|pypy)[\d.]*$")
_SYSTEM = re.compile(
    r"(?:/usr(?:/local)?|/opt/[^/]+(?:/[^/]+)*?|/root/[^/]+(?:/[^/]+)*?|~/[^/]+(?:/[^/]+)*?|\.?[\w./-]*\bvenv)?/s?bin/[^/]+$"
)
_WRAPPERS = {  # wrapper → its options that take a value
    "sudo": "-u -g -C",
    "nohup": "",
    "time": "-f -o",
    "nice": "-n",
    "ionice": "-c -n",
    "stdbuf": "-o -e -i",
    "exec": "-a",
    "builtin": "",
    "xvfb-run": "-s -n",
    "unbuffer": "",
    "setsid": "",
    "strace": "-o -e -p",
    "doas": "-u",
    "caffeinate": "",
}
_RUNNERS = {  # tool → the word behind which the real command stands, and options with a value
    "poetry": "run", "uv": "run", "pipenv": "run", "pdm": "run", "hatch": "run", "rye": "run",
    "conda": "run", "mamba": "run", "micromamba": "run", "coverage": "run",
}  # fmt: skip
_RUNNER_VALUES = "-n --name -p --prefix --python --with --source --omit --extra --group --directory"


def unwrap(argv: Words) -> list[str]:
    """Look through ``sudo``, ``timeout 5``, ``env A=b``, ``uv run`` and their like."""
    words = list(argv)
    for _ in range(8):
        if not words:
            break
        name = basename(words[0])
        if name in _WRAPPERS:
            rest = _drop_options(words[1:], _WRAPPERS[name])
        elif name == "timeout":
            rest = _drop_options(words[1:], "-s -k --signal --kill-after")[1:]
        elif name == "env" and len(words) > 1:
            rest = _drop_options(words[1:], "-u -C -S")
            while rest and re.match(r"\w+=", rest[0]):
                rest = rest[1:]
            if not rest:
                break
        elif name == "command" and words[1:2] not in (["-v"], ["-V"]):
            rest = words[1:]
        elif name in _RUNNERS and words[1:2] == [_RUNNERS[name]]:
            rest = _drop_options(words[2:], _RUNNER_VALUES)
            if name == "coverage":
                rest = ["python", *rest]
        else:
            break
        words = rest
    return words


def effects_of(argv: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Say what one simple command does, without its redirections."""
    words = unwrap(argv)
    if not words:
        return [NOOP]
    program, args = words[0], words[1:]
    name = basename(program)
    if "/" in program and not _SYSTEM.match(program):
        if name in ("gradlew", "mvnw"):
            return PROGRAMS[name](args, stdin, place)
        return _run_file(program, args, place)
    if "/" in program and name == "test":  # sympy's bin/test; /usr/bin/test has no use for agents
        return _run_file(program, args, place)
    if _PYTHON.match(name):
        return _python(args, stdin, place)
    if name == "command":
        return _which(args[1:], stdin, place)
    handler = PROGRAMS.get(name)
    if handler is not None:
        return handler(args, stdin, place)
    if "--help" in args or "--version" in args:
        return _output(name, " ".join(args))
    if _FILE_NAME.search(name) and re.search(r"\.(?:py|sh|js|rb|pl)$", name):
        return _run_file(program, args, place)
    return [_digested(name, args, place, stdin)]


def _digested(
    name: str, args: Words, place: Place, stdin: str | None = None, runs_code: bool = False
) -> Effect:
    """Identify a run by its normalised command."""
    return Effect("execute", digest=run_digest([name, *args], place, stdin), runs_code=runs_code)


def run_digest(argv: Words, place: Place, stdin: str | None = None) -> str:
    """Digest a normalised command: paths from the root, volatile text and quotes removed."""
    words = [place.path(word) if word[:1] == "/" or word[:2] == "./" else word for word in argv]
    text = scrub(" ".join(words))
    if stdin:
        text += "\n" + stdin
    return _in_folder(digest(text), place)


def _in_folder(identity: str, place: Place) -> str:
    """The same command elsewhere is another one."""
    return digest(f"{place.cwd}$ {identity}") if place.cwd else identity


def _folder(path: str, place: Place) -> str:
    """Normalise a directory to the form of ``Place.cwd``."""
    folder = place.path(path)
    return "" if folder == "." else folder
