"""Read a command line: what it would do in a given place, whatever comes of it.

Reading is pure: the same text in the same place gives the same ``Line``, which is therefore kept
(rollouts of one problem share many commands). What a line came to is for ``session`` to say.

The exit code of a command line is believed only of the commands it speaks for: the last one, or
all of ``a && b`` where it is zero; never of what stands before a pipe, a ``;``, ``|| true`` or in
a loop.
"""

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from rtmc.signatures.commands import effects_of, is_filter, unwrap, unwrapped_effects
from rtmc.signatures.effects import Effect, digest, edit_digest
from rtmc.signatures.programs.base import NOOP, Place, basename, run_digest
from rtmc.signatures.programs.searches import below, find_parts
from rtmc.signatures.programs.views import (
    awk_scope,
    head_scope,
    sed_parts,
    sed_scopes,
    tail_scope,
)
from rtmc.signatures.shell import Command, Pipeline, split, unquote

__all__ = ["Line", "Part", "explain_line", "read_line"]

KEPT_LINES = 512
PRINTED = "printed"
"""Scope of a create by a program's output: a modify, if the file turns out to exist."""

_READ_HERE = frozenset(("bash", "sh", "zsh", "dash", "eval", "tee"))
_SHOWS = frozenset(("view", "search", "noop"))
_SAFE = frozenset(("noop", "create", "view", "finish"))


class Part(Struct, frozen=True, gc=False):
    """One effect of a line, and of which exit codes of the whole line it may believe.

    ``program`` is the one whose exit code that would be, where the effect is on files.
    """

    effect: Effect
    zero_is_own: bool
    failure_is_own: bool
    program: str


class Line(Struct, frozen=True, gc=False):
    """What a command line does.

    Attributes:
        parts: its effects, in order.
        cwd: the current directory behind it, and ``previous``, where ``cd -`` would go.
        moves: the targets of its ``cd``, as written.
        tests: number of its effects that are tests.
        pipelines: number of its pipelines; 0 where no parser understood the text.
    """

    parts: tuple[Part, ...]
    cwd: str
    previous: str
    moves: tuple[str, ...]
    tests: int
    pipelines: int


@lru_cache(maxsize=KEPT_LINES)
def read_line(text: str, cwd: str, previous: str, root: str | None) -> Line:
    """Read a command line.

    Args:
        text: as typed.
        cwd: the current directory, in normalised form.
        previous: the one before it.
        root: the root of the repository, None = the usual ones.
    """
    return _Reader(Place(root, cwd), previous).read(text)


def explain_line(text: str, cwd: str, previous: str, root: str | None) -> list[str]:
    """Say how ``read_line`` takes a line apart, for people who tune signatures."""
    reader = _Reader(Place(root, cwd), previous, notes := [])
    if not reader.read(text).pipelines:
        notes.append("no parser understands this: a run, identified by its text")
    return notes


# An effect, the number of its pipeline, and whether it is of the pipeline's last command, whose
# exit code the pipeline has.
_Placed = tuple[Effect, int, bool]


class _Reader:
    """Reads one line, from the place where it starts to the place where it ends."""

    def __init__(self, place: Place, previous: str, notes: list[str] | None = None) -> None:
        self.place = place
        self.previous = previous
        self.notes = notes
        self.moves: list[str] = []

    def read(self, text: str) -> Line:
        pipelines = split(text)
        if pipelines is None:
            run = Part(Effect("execute", digest=digest(text.strip())), True, True, "")
            return Line((run,), self.place.cwd, self.previous, (), 0, 0)
        placed = self._line(pipelines)
        zero, failure = _exit_codes(pipelines, placed)
        tests = 0
        parts: list[Part] = []
        for effect, at, own in placed:
            program = ""
            if effect.kind == "test":
                tests += 1
            elif effect.kind != "execute":
                program = _last_program(pipelines[at])
            parts.append(Part(effect, own and at >= zero, own and at == failure, program))
        moves = tuple(self.moves)
        count = max(len(pipelines), 1)
        return Line(tuple(parts), self.place.cwd, self.previous, moves, tests, count)

    def _line(self, pipelines: list[Pipeline]) -> list[_Placed]:
        placed: list[_Placed] = []
        outer: list[str] = []
        for number, pipeline in enumerate(pipelines):
            argv = pipeline.commands[0].argv
            word = argv[0] if argv else ""
            if word == "(":
                outer.append(self.place.cwd)
            elif word == ")":
                self.place.cwd = outer.pop() if outer else self.place.cwd
            else:
                if (word == "cd" or word == "pushd") and len(pipeline.commands) == 1:
                    self._change_directory(argv)
                effects = self._pipeline(pipeline)
                placed += [(effect, number, own) for effect, own in effects]
                if self.notes is not None:
                    self._note(pipeline, [effect for effect, _ in effects])
        return placed

    def _note(self, pipeline: Pipeline, effects: list[Effect]) -> None:
        assert self.notes is not None
        words = " | ".join(" ".join(command.argv) for command in pipeline.commands)
        became = " + ".join(effect.key(4, verb=True) for effect in effects)
        where = f" (in {self.place.cwd})" if self.place.cwd else ""
        self.notes.append(f"{words}{where} → {became}")

    def _change_directory(self, argv: Sequence[str]) -> None:
        words = [word for word in argv[1:] if word[:1] != "-" or word == "-"]
        here = self.place.cwd
        if words[:1] == ["-"]:
            self.place.cwd = self.previous
        else:
            self.moves.append(words[0] if words else "~")
            self.place.cwd = self.place.folder(self.moves[-1])
        self.previous = here

    def _pipeline(self, pipeline: Pipeline) -> list[tuple[Effect, bool]]:
        """Say what a pipeline did; each effect with whether the pipeline's exit code is its own."""
        if len(pipeline.commands) == 1 and not pipeline.commands[0].redirects:
            return self._command(pipeline.commands[0], None) or [(NOOP, True)]
        effects: list[tuple[Effect, bool]] = []
        last = len(pipeline.commands) - 1
        typed: str | None = None  # literal text on its way through the pipe
        for at, command in enumerate(pipeline.commands):
            argv = command.argv
            if at and is_filter(argv):
                effects = [(less, own) for e, own in effects for less in _shown_less(e, argv)]
            elif at and argv and basename(argv[0]) == "xargs":
                effects = self._xargs(argv[1:], pipeline.commands[at - 1].argv, effects)
            else:
                # what flows into a program was not looked at
                fed = " ".join(e.key() for e, _ in effects if e.kind in _SHOWS and e != NOOP)
                effects = [(e, own) for e, own in effects if e.kind not in _SHOWS]
                stage = self._command(command, typed if at else None)
                if typed is None and argv[:1] == ("tee",):  # a copy of whatever came before
                    fed = " | ".join(" ".join(c.argv) for c in pipeline.commands[:at])
                effects += [(_fed(e, fed), own and at == last) for e, own in stage]
            if at != last:
                typed = _literal(command)
            written = self._redirections(command, typed, pipeline.commands[: at + 1])
            if written:  # what goes into a file was not looked at, and a mark there ends nothing
                effects = [(e, own) for e, own in effects if e.kind not in (*_SHOWS, "finish")]
            # the shell opens the file, whatever becomes of the command
            effects += [(e, e.scope == PRINTED and at == last) for e in written]
        kept = [(e, own) for e, own in effects if e.kind != "noop"]
        return kept or effects[:1] or [(NOOP, True)]

    def _command(self, command: Command, typed: str | None) -> list[tuple[Effect, bool]]:
        argv = unwrap(command.argv)
        stdin = command.stdin if command.stdin is not None else typed
        if not argv or argv[0] == "{":
            return [(NOOP, True)]
        name = basename(argv[0])
        if name in _READ_HERE:
            if name == "tee":
                return [(effect, True) for effect in self._tee(argv[1:], stdin)]
            script = " ".join(argv[1:]) if name == "eval" else _inline_script(argv[1:], stdin)
            if script is not None:
                return self._nested(script)
        effects = unwrapped_effects(argv, stdin, self.place)
        for operator, source in command.redirects:
            if operator != "<":
                continue
            if effects == [NOOP] and is_filter(argv):
                effects = unwrapped_effects([*argv, source], None, self.place)
            else:
                effects = [_fed(effect, self.place.path(source)) for effect in effects]
        return [(effect, True) for effect in effects]

    def _nested(self, script: str) -> list[tuple[Effect, bool]]:
        """Look through ``bash -lc "…"``, which has a current directory of its own.

        Its exit code is that of its last command.
        """
        pipelines = split(unquote(script) if script[:1] in "\"'" else script)
        if pipelines is None:
            return [(Effect("execute", digest=digest(script.strip())), True)]
        here = self.place.cwd
        placed = self._line(pipelines)
        self.place.cwd = here
        _, last = _exit_codes(pipelines, placed, trusting=True)
        return [(effect, own and number == last) for effect, number, own in placed] or [
            (NOOP, True)
        ]

    def _xargs(
        self, args: Sequence[str], feeder: Sequence[str], found: list[tuple[Effect, bool]]
    ) -> list[tuple[Effect, bool]]:
        """Run a command on what a search found: looking is part of the search, changing is not."""
        words = list(args)
        while words and words[0][:1] == "-":
            words = words[2:] if words[0] in ("-I", "-n", "-P", "-L", "-d", "-i") else words[1:]
        target = next((e.target for e, _ in found if e.kind == "search"), ".")
        name = find_parts(feeder[1:])[2] if feeder[:1] == ("find",) else ""
        some = below(target, name or "…")  # some files below: which ones nobody knows
        given = [word for word in words if word != "{}"]
        inner = effects_of([*given, some], None, Place(self.place.root))
        if not words or all(effect.kind in _SHOWS for effect in inner):
            return found
        rest = [(e, own) for e, own in found if e.kind not in ("view", "noop")]
        return rest + [(effect, True) for effect in inner]

    def _tee(self, args: list[str], text: str | None) -> list[Effect]:
        paths = [self.place.path(word) for word in args if word[:1] != "-"]
        appends = any(word in ("-a", "--append") for word in args)
        return [
            self._written(path, text, appends, ()) for path in paths if path != "/dev/null"
        ] or [NOOP]

    def _redirections(
        self, command: Command, typed: str | None, so_far: Sequence[Command]
    ) -> list[Effect]:
        effects: list[Effect] = []
        for operator, target in command.redirects:
            if "<" in operator or operator[:1] == "2" or operator.endswith("&"):
                continue
            path = self.place.path(target)
            if path.startswith("/dev/"):
                continue
            text = typed if typed is not None else _literal(command)
            effects.append(self._written(path, text, ">>" in operator, so_far))
        return effects

    def _written(
        self, path: str, text: str | None, appends: bool, printers: Sequence[Command]
    ) -> Effect:
        """Write a text, or what the commands of a pipe printed, into a file."""
        if text is None:
            words = [word for command in printers for word in ("|", *command.argv)]
            stdin = "".join(command.stdin or "" for command in printers)
            identity = run_digest(words, self.place, stdin)
        else:
            identity = edit_digest(text) if text.strip() else ""
        if appends:
            return Effect("modify", path, "insert", identity)
        return Effect("create", path, PRINTED if text is None else "", identity)


def _literal(command: Command) -> str | None:
    """Find the literal text that a command prints: a heredoc through cat, an echo, a printf."""
    argv = command.argv
    if not argv or argv[0] in (":", "true"):
        return ""
    if argv[0] == "cat" and len(argv) <= 2 and command.stdin is not None:
        return command.stdin
    if argv[0] in ("echo", "printf"):
        words = [word for word in argv[1:] if word not in ("-e", "-n", "-en", "-ne")]
        return " ".join(words).replace("\\n", "\n").replace("\\t", "\t")
    return None


def _inline_script(args: list[str], stdin: str | None) -> str | None:
    """Find the script of ``bash -lc SCRIPT`` or of a shell that reads standard input."""
    for at, word in enumerate(args):
        if word[:1] != "-":
            return None
        if word[1:2] != "-" and "c" in word:
            return args[at + 1] if at + 1 < len(args) else ""
    return stdin


def _fed(effect: Effect, source: str) -> Effect:
    """What a program reads from a file or a pipe is part of the identity of its run."""
    if not source or not effect.digest:
        return effect
    return replace(effect, digest=digest(f"{effect.digest} < {source}"))


def _shown_less(effect: Effect, argv: tuple[str, ...]) -> list[Effect]:
    """Narrow a view by the filter behind the pipe; other effects stay what they are."""
    if effect.kind != "view" or effect.scope == "output":
        return [effect]
    name, args = basename(argv[0]), argv[1:]
    search = replace(effect, kind="search", scope="", detail=" ".join(args))
    if name in ("grep", "egrep", "fgrep", "rg"):
        return [effect if effect.scope == "dir" else search]
    if effect.scope != "full":
        return [effect]
    scopes: list[str] | None = None
    if name == "head":
        scopes = [head_scope(args)]
    elif name == "tail":
        scopes = [tail_scope(args)]
    elif name == "sed":
        scripts, _, _, quiet = sed_parts(args)
        scopes = sed_scopes("\n".join(scripts)) if quiet else None
        if quiet and scopes is None:
            return [search]
    elif name in ("awk", "gawk") and args:
        scope = awk_scope(args[0])
        scopes = [scope] if scope else None
    elif name == "wc":
        scopes = ["stat"]
    return [replace(effect, scope=scope) for scope in scopes] if scopes else [effect]


def _last_program(pipeline: Pipeline) -> str:
    argv = pipeline.commands[-1].argv
    return "grep" if argv[:2] == ("git", "grep") else basename(argv[0]) if argv else ""


def _exit_codes(
    pipelines: Sequence[Pipeline], placed: Sequence[_Placed], trusting: bool = False
) -> tuple[int, int]:
    """Say of which pipelines the exit code of the whole text speaks.

    Args:
        pipelines: of the text.
        placed: their effects.
        trusting: take any failure for the last pipeline's.

    Returns:
        The first pipeline of which a zero speaks (it and all behind it), and the one of which a
        failure speaks; numbers beyond the last where it speaks of none.
    """
    count = len(pipelines)
    nobody = (count, count)
    if not count or pipelines[-1].operator == "&":
        return nobody
    start = last = count - 1
    while start and pipelines[start - 1].operator == "&&":
        start -= 1
    if start and pipelines[start - 1].operator == "||":
        return nobody
    if [pipeline for pipeline in pipelines[start:] if pipeline.nested]:
        return nobody
    if start == last or trusting:
        return start, last
    # a failure is the last one's if nothing before it in a && b is likely to fail
    risks = [e for e, at, _ in placed if start <= at < last and e.kind not in _SAFE]
    return start, count if risks else last
