"""Say what one simple command does: program and arguments to effects.

``effects_of`` looks through wrappers (``sudo``, ``timeout 5``, ``env A=b`` …), then asks the table
``PROGRAMS``. A program that is not in it is a run: of a file of the repository if it is one
(``./tool``, ``python x.py``), else identified by the digest of its normalised command.
"""

import re
from collections.abc import Callable

from rtmc.signatures.effects import Effect
from rtmc.signatures.programs import changes, git, runs, searches, views
from rtmc.signatures.programs.base import (
    FILE_NAME,
    NOOP,
    Handler,
    Place,
    Words,
    basename,
    digested,
    drop_options,
)

__all__ = ["PROGRAMS", "effects_of", "is_filter", "unwrap", "unwrapped_effects"]


def find(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    folders, expression, name, command = searches.find_parts(args)
    targets = [place.path(folder) for folder in folders]
    detail = " ".join(expression)
    if "-delete" in expression:
        return [Effect("delete", searches.below(target, name)) for target in targets]
    if command:
        inner: list[Effect] = []
        for target in targets:
            pattern = searches.below(target, name)
            words = [pattern if word == "{}" else word for word in command]
            for effect in effects_of(words, None, Place(place.root)):
                inner.append(_searched(effect, target, detail))
        return inner
    return [Effect("search", target, detail=detail) for target in targets]


def _searched(effect: Effect, target: str, detail: str) -> Effect:
    """Looking at every file that a search finds is part of the search."""
    if effect.kind in ("view", "search"):
        return Effect("search", target, detail=f"{detail} {effect.detail}")
    return effect


def _each(names: str, handler: Handler) -> dict[str, Handler]:
    return dict.fromkeys(names.split(), handler)


def _made(names: str, make: Callable[[str], Handler]) -> dict[str, Handler]:
    return {name: make(name) for name in names.split()}


PROGRAMS: dict[str, Handler] = {
    **_each("cat bat batcat tac nl zcat", views.cat),
    **_each("less more view", views.page),
    **_each(
        "od xxd hexdump strings sort uniq cut column jq yq fold rev tr base64 hd paste comm",
        views.view_file,
    ),
    "head": views.head,
    "tail": views.tail,
    **_each("ls ll tree dir exa", views.list_folder),
    **_each("wc file stat md5sum sha1sum sha256sum cksum readlink realpath du", views.inspect),
    "sed": views.sed,
    **_each("awk gawk mawk", views.awk),
    **_each("diff cmp colordiff", views.diff),
    **_made(
        "ps top htop env printenv pwd whoami id date uname hostname df free uptime nproc lscpu "
        "lsof netstat ss ifconfig ip mount groups locale jobs lsblk nvidia-smi tty arch getent "
        "man help history pgrep w who cal lsb_release dmesg sysctl vmstat",
        views.prints,
    ),
    **_each("grep egrep fgrep rg zgrep ag ack ripgrep", searches.grep),
    "find": find,
    **_each("fd fdfind locate", searches.find_file),
    **_each("which whereis type hash", searches.which),
    **_each("rm rmdir unlink", changes.remove),
    **_each("touch mkdir", changes.make),
    **_each("cp ln", changes.copy),
    "mv": changes.move,
    "patch": changes.patch,
    **_each("apply_patch applypatch", changes.apply_patch),
    **_each("ed ex vi vim nano emacs", changes.script_editor),
    "perl": changes.perl,
    "git": git.git,
    **_each("pytest py.test", runs.pytest),
    **_each("nosetests trial ctest rspec phpunit jest vitest mocha ava bats", runs.tests("")),
    **_each("tox nox", runs.tox),
    **_made("make cargo go mvn gradle dotnet bazel ninja", runs.build_tool),
    **_each("npm yarn pnpm bun", runs.build_tool("npm")),
    **{name: runs.reader(name) for name in runs.READERS},
    **_each("gradlew mvnw", runs.build_tool("gradle")),
    **_each("python pypy ipython", runs.python),
    **_each("pip pip3", runs.pip),
    **_made("apt apt-get apt-cache dpkg conda mamba brew yum dnf apk", runs.packages),
    **_made("node ruby php lua Rscript julia deno", runs.interpreter),
    "java": runs.java,
    **_each("bash sh zsh dash", runs.interpreter("bash")),
    **_each("echo printf", runs.echo),
    **_each("submit finish", runs.finish),
    **_each("source .", runs.source),
    **_each(
        "cd pushd popd true false : exit export set unset alias unalias ulimit umask wait sleep "
        "clear reset shopt trap read return break continue declare typeset local readonly let "
        "set_cursors logout disown fg bg test [ tput stty",
        runs.nothing,
    ),
}


_FILTERS = frozenset(
    "head tail grep egrep fgrep rg sed awk gawk sort uniq wc cut tr less more cat nl column fold "
    "rev tac jq yq strings od xxd hexdump base64 cmp paste comm".split()
)


def is_filter(argv: Words) -> bool:
    """Tell whether a command behind a pipe only shows less of what comes in."""
    return (
        bool(argv)
        and basename(argv[0]) in _FILTERS
        and not (argv[0] == "sed" and views.sed_parts(argv[1:])[2])
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
    "npx": "-p --package",
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


_LOOKED_THROUGH = frozenset((*_WRAPPERS, *_RUNNERS, "timeout", "env", "command"))


def unwrap(argv: Words) -> list[str]:
    """Look through ``sudo``, ``timeout 5``, ``env A=b``, ``uv run`` and their like."""
    words = list(argv)
    while words:
        name = basename(words[0])
        if name not in _LOOKED_THROUGH:
            break
        if name in _WRAPPERS:
            rest = drop_options(words[1:], _WRAPPERS[name])
        elif name == "timeout":
            rest = drop_options(words[1:], "-s -k --signal --kill-after")[1:]
        elif name == "env" and len(words) > 1:
            rest = drop_options(words[1:], "-u -C -S")
            while rest and re.match(r"\w+=", rest[0]):
                rest = rest[1:]
            if not rest:
                break
        elif name == "command" and words[1:2] not in (["-v"], ["-V"]):
            rest = words[1:]
        elif name in _RUNNERS and words[1:2] == [_RUNNERS[name]]:
            rest = drop_options(words[2:], _RUNNER_VALUES)
            if name == "coverage":
                rest = ["python", *rest]
        else:
            break
        words = rest
    return words


def effects_of(argv: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Say what one simple command does, without its redirections."""
    return unwrapped_effects(unwrap(argv), stdin, place)


def unwrapped_effects(words: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Say what a command does that ``unwrap`` has looked through already."""
    if not words:
        return [NOOP]
    program, args = words[0], words[1:]
    name = basename(program)
    if "/" in program and not _SYSTEM.match(program):
        if name in ("gradlew", "mvnw"):
            return PROGRAMS[name](args, stdin, place)
        return runs.run_file(program, args, place)
    if "/" in program and name == "test":  # sympy's bin/test; /usr/bin/test has no use for agents
        return runs.run_file(program, args, place)
    handler = PROGRAMS.get(name)
    if handler is not None:
        return handler(args, stdin, place)
    if _PYTHON.match(name):
        return runs.python(args, stdin, place)
    if name == "command":
        return searches.which(args[1:], stdin, place)
    if "--help" in args or "--version" in args:
        return views.shown(name, " ".join(args))
    if FILE_NAME.search(name) and re.search(r"\.(?:py|sh|js|rb|pl)$", name):
        return runs.run_file(program, args, place)
    return [digested(name, args, place, stdin)]
