"""Programs that run code: test runners, interpreters, build tools, package managers."""

import re
from collections.abc import Iterable

from rtmc.signatures.effects import Effect, edit_digest
from rtmc.signatures.programs.base import (
    FILE_NAME,
    NOOP,
    Handler,
    Place,
    Words,
    basename,
    digested,
    drop_options,
    in_folder,
    operands,
)
from rtmc.signatures.programs.views import shown, views_of

_TEST_NAME = re.compile(r"(?:^|[_.-])(?:run)?_?tests?(?:[_.-]|$)", re.IGNORECASE)
_PYTEST_VALUES = (
    "-k -m -p -c -o -n -W -r --tb --maxfail --durations --rootdir --deselect --ignore --confcutdir "
    "--junitxml --cov --cov-report --color --timeout --log-level --import-mode -j --dist"
)
_UNITTEST_VALUES = "-s -p -t -k"
_DJANGO_VALUES = "-v --verbosity --settings --parallel -k --tag --exclude-tag --testrunner -t"


def tested(targets: Iterable[str], args: Words, place: Place) -> list[Effect]:
    """Test targets; all of the current folder where none is named."""
    target = ",".join(_test_target(word, place) for word in targets) or place.path(".")
    return [Effect("test", target, detail=" ".join(args))]


def _test_target(word: str, place: Place) -> str:
    path, colons, node = word.partition("::")
    return (place.path(path) if "/" in path or "." in path or place.cwd else path) + colons + node


_SAYS = frozenset(("--help", "--version", "--collect-only", "--co", "--fixtures", "--markers"))


def only_says(args: Words) -> bool:
    """Tell whether the arguments ask a program about itself instead of running it."""
    return not _SAYS.isdisjoint(args)


def tests(with_value: str) -> Handler:
    """A runner whose operands are what it tests."""

    def handler(args: Words, stdin: str | None, place: Place) -> list[Effect]:
        if only_says(args):
            return shown("test runner", " ".join(args))
        return tested(operands(args, with_value), args, place)

    return handler


pytest = tests(_PYTEST_VALUES)


def unittest(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Test modules, or what discovery finds: ``-s`` names its folder."""
    if args[:1] != ["discover"]:
        return tests(_UNITTEST_VALUES)(args, stdin, place)
    folder = next(
        (args[i + 1] for i, w in enumerate(args[:-1]) if w in ("-s", "--start-directory")), ""
    )
    return tested([folder or "."], args, place)


def tox(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Test with tox or nox: what stands behind ``--`` is tested."""
    words = list(args)
    targets = words[words.index("--") + 1 :] if "--" in words else []
    return tested([w for w in targets if w[:1] != "-"], args, place)


_BUILD_VALUES = (
    "-run -bench -timeout -count -tags -cpu -parallel -coverprofile -p --package --test --features "
    "--manifest-path -j --jobs"
)


def build_tool(label: str) -> Handler:
    """Tests of a build tool: ``cargo test x``, ``go test ./...``, ``npm test``, ``make check``."""

    def handler(args: Words, stdin: str | None, place: Place) -> list[Effect]:
        words = [word for word in args if word[:1] != "-"]
        if label == "npm" and words[:1] == ["run"]:
            words = words[1:]
        verbs = (
            ("test", "check") if label == "make" else ("test", "t") if label == "npm" else ("test",)
        )
        if words and (words[0] in verbs or (label == "npm" and words[0].startswith("test"))):
            named = operands(args, _BUILD_VALUES)[1:] if label in ("go", "cargo") else ()
            return tested(named, args, place)
        if label == "cargo" and words[:1] == ["nextest"]:
            return tested((), args, place)
        runs = label == "make" or words[:1] in (["run"], ["build"], ["bench"])
        return [digested(label, args, place, runs_code=runs)]

    return handler


_SERVES = frozenset(
    "http pip venv virtualenv ensurepip conda jupyter notebook flask uvicorn gunicorn pipenv "
    "poetry build twine debugpy".split()
)
_TEST_MODULES: dict[str, Handler] = {
    "pytest": pytest,
    "py.test": pytest,
    "unittest": unittest,
    "nose": tests(""),
    "nose2": tests(""),
    "doctest": tests(""),
    "twisted.trial": tests(""),
    "tox": tox,
    "nox": tox,
}


def python(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Run a file, a module, inline code, or a script on standard input."""
    words = list(args)
    while words and words[0][:1] == "-" and words[0] not in ("-c", "-m", "-"):
        if words[0] in ("-V", "--version", "-h", "--help"):
            return shown("python " + words[0])
        words = words[2:] if words[0] in ("-W", "-X") else words[1:]
    if not words or words[0] == "-":
        return (
            _python_code(stdin, place) if stdin is not None else [digested("python", args, place)]
        )
    if words[0] == "-c":
        return _python_code(words[1] if len(words) > 1 else "", place)
    if words[0] != "-m":
        return run_file(words[0], words[1:], place)
    module, rest = (words[1] if len(words) > 1 else ""), words[2:]
    if module == "coverage" and rest[:1] == ["run"]:
        return python(drop_options(rest[1:], "--source --omit --include --rcfile"), stdin, place)
    if module in _TEST_MODULES:
        return _TEST_MODULES[module](rest, stdin, place)
    if module == "pip":
        return pip(rest, stdin, place)
    if module == "json.tool" and rest:
        return views_of(rest[:1], "full", place)
    if only_says(rest):
        return shown(f"python -m {module}")
    return [digested("python -m", words[1:], place, runs_code=module.split(".")[0] not in _SERVES)]


# The function's name comes first and the look at its left edge behind it: a pattern that begins
# with a literal is found many times faster.
_OPENED = re.compile(
    r"""open\((?<!\wopen\()\s*(?:f?(?P<q>['"])(?P<path>[^'"\n]+)(?P=q)|(?P<name>[A-Za-z_]\w*))\s*,\s*
        (?:mode\s*=\s*)?['"](?P<mode>[rwaxb+t]+)['"]""",
    re.VERBOSE,
)
_WRITTEN = re.compile(
    r"""\b(?:Path\(\s*(?P<q>['"])(?P<path>[^'"\n]+)(?P=q)\s*\)|(?P<name>[A-Za-z_]\w*))
        \.write_(?:text|bytes)\(""",
    re.VERBOSE,
)


def _writes(code: str) -> list[re.Match[str]]:
    """Find where code writes a file, in order; each match has a ``path`` or a ``name``."""
    found = [match for match in _OPENED.finditer(code) if set(match["mode"]) & set("wax+")]
    if ".write_" in code:
        found += _WRITTEN.finditer(code)
        found.sort(key=re.Match.start)
    return found


def _python_code(code: str | None, place: Place) -> list[Effect]:
    """Inline code is a run, or a modify of the files whose names it spells out and writes."""
    code = code or ""
    written: list[str] = []
    for found in _writes(code):
        path, name = found["path"], found["name"]
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
    return [Effect("execute", digest=in_folder(identity, place), runs_code=True)]


def run_file(path: str, args: Words, place: Place) -> list[Effect]:
    """Run a file of the repository: a test if its name says so."""
    detail = " ".join(args)
    name = basename(path)
    target = place.path(path)
    if only_says(args):
        return shown(target, detail)
    if name == "manage.py" and args[:1] == ["test"]:
        return tested(operands(args[1:], _DJANGO_VALUES), args, place)
    if name == "setup.py" and args[:1] == ["test"]:
        return tested((), args, place)
    if re.match(r"runtests\b|run_tests?\b", name):
        targets = operands(args, _DJANGO_VALUES)
        return [Effect("test", ",".join(targets) or target, detail=detail)]
    if _TEST_NAME.search(name):
        # sympy's bin/test and its like take the files to test; a test file is one itself
        targets = [] if FILE_NAME.search(name) else operands(args, _PYTEST_VALUES)
        return tested(targets, args, place) if targets else [Effect("test", target, detail=detail)]
    return [Effect("execute", target, detail=detail, runs_code=True)]


def interpreter(name: str) -> Handler:
    """node, ruby, perl …: inline code by ``-e``, else a file."""

    def handler(args: Words, stdin: str | None, place: Place) -> list[Effect]:
        words = operands(args)
        if any(word in ("-v", "--version", "-V", "--help") for word in args[:1]):
            return shown(f"{name} {args[0]}")
        if words and not any(word in ("-e", "-c", "-p", "--eval") for word in args):
            return run_file(words[0], words[1:], place)
        return [digested(name, args, place, stdin, runs_code=True)]

    return handler


def java(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Run a class or an archive, identified by the whole command."""
    if only_says(args) or args[:1] in (["-version"], ["-h"]):
        return shown("java", " ".join(args))
    return [digested("java", args, place, stdin, runs_code=True)]


def pip(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Read or change what is installed."""
    if args[:1] and args[0] in ("list", "show", "freeze", "--version", "index", "check", "debug"):
        return shown(f"pip {args[0]}", " ".join(args))
    return [digested("pip", args, place)]


_PACKAGE_READS = frozenset("list search show info policy --version -V -l -s -L view".split())
_LISTS = frozenset(("list", "get", "--show", "ls"))


def packages(name: str) -> Handler:
    """A package manager: reads are views, the rest a run."""

    def handler(args: Words, stdin: str | None, place: Place) -> list[Effect]:
        words = [w for w in args if w[:1] != "-"] or list(args)
        lists = words[:1] in (["env"], ["config"]) and not _LISTS.isdisjoint(args)
        if words and (lists or words[0] in _PACKAGE_READS or args[0] in _PACKAGE_READS):
            return shown(f"{name} {words[0]}", " ".join(args))
        return [digested(name, args, place)]

    return handler


# What these programs only show, by their first arguments.
_SHOWS = {
    "tar": re.compile(r"-?[a-wyz]*t|--list"),
    "unzip": re.compile(r"-[lvZt]"),
    "zipinfo": re.compile(r""),
    "openssl": re.compile(r"(?:x509|req|rsa|crl|verify|version|s_client)\b.*|.*-noout\b"),
    "systemctl": re.compile(r"(?:status|is-active|is-enabled|list-\S+|show|cat)\b"),
    "service": re.compile(r"\S+ status|--status-all"),
    "docker": re.compile(r"(?:ps|images|logs|inspect|info|version|stats|top|port)\b"),
    "tmux": re.compile(r"(?:ls|list-\S+|capture-pane|display-message|has-session|show\S*)\b"),
    "crontab": re.compile(r"-l"),
    "nginx": re.compile(r"-[vVtT]"),
    "gcc": re.compile(r"--version|-v$"),
    "journalctl": re.compile(r""),
}


def reader(name: str) -> Handler:
    """A program of which some uses only show something; the rest are runs."""
    pattern = _SHOWS[name]

    def handler(args: Words, stdin: str | None, place: Place) -> list[Effect]:
        text = " ".join(args)
        writes = "-out" in args or "-keyout" in args
        if pattern.match(text) and not writes:
            return shown(f"{name} {args[0]}" if args else name, text)
        return [digested(name, args, place, stdin)]

    return handler


READERS = tuple(_SHOWS)
_FINISH_MARKS = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")


def echo(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Print; the end markers of mini-swe-agent finish."""
    return [Effect("finish")] if args and args[0].strip() in _FINISH_MARKS else [NOOP]


def nothing(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Change nothing, show nothing."""
    return [NOOP]


def source(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Run a file in this shell; activating an environment is nothing."""
    if not args or "activate" in args[0] or "conda" in args[0] or args[0].endswith("rc"):
        return [NOOP]
    return run_file(args[0], args[1:], place)


def finish(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """End the rollout."""
    return [Effect("finish")]
