"""Follow one rollout's shell: what each command line did, where it ran, what it came to.

The exit code of a command line is believed only of the commands it speaks for: the last one, or
all of ``a && b`` where it is zero; never of what stands before a pipe, a ``;``, ``|| true`` or in
a loop. A test runner's own summary comes first.
"""

from collections.abc import Sequence

from rtmc.signatures import results
from rtmc.signatures.commands import effects_of, is_filter, unwrap, unwrapped_effects
from rtmc.signatures.effects import Effect, digest, edit_digest
from rtmc.signatures.programs.base import NOOP, Place, basename, run_digest
from rtmc.signatures.programs.searches import PATH_LOOKUP, below, find_parts
from rtmc.signatures.programs.views import (
    awk_scope,
    head_scope,
    sed_parts,
    sed_scopes,
    tail_scope,
)
from rtmc.signatures.shell import Command, Pipeline, split, unquote

__all__ = ["Session"]

_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
_CONTROL_KEYS = frozenset(("C-c", "C-d", "C-z", "C-l", "^C", "^D"))
_SHOWS = frozenset(("view", "search", "noop"))
_GREPS = frozenset(("grep", "egrep", "fgrep", "rg", "ag", "ack"))
_SAFE = frozenset(("noop", "create", "view", "finish"))
_TIMEOUT_EXIT = 124

# An effect and where its exit code could be found: number of its pipeline, and whether it is
# the pipeline's last command, whose exit code the pipeline has.
_Placed = tuple[Effect, int, bool]


class Session:
    """The shell of one rollout.

    Attributes:
        place: current directory and root.
        unparsed: number of command lines that no parser understood.
        trace: a list that collects how each command line was taken apart, for people who tune
            signatures; None = don't.
    """

    def __init__(self, root: str | None = None, persistent: bool = True) -> None:
        self.place = Place(root)
        self.persistent = persistent
        self.unparsed = 0
        self.trace: list[str] | None = None
        self._seen: set[str] = set()
        self._previous = ""

    def start_in(self, directory: str) -> None:
        """Set the current directory from what the trajectory recorded."""
        here = self.place.path(directory)
        self.place.cwd = "" if here == "." else here

    def see(self, effects: list[Effect]) -> None:
        """Remember files that exist, so that writing onto them counts as modifying."""
        for effect in effects:
            if (
                effect.result != "err"
                and effect.target
                and effect.kind in ("view", "create", "modify")
            ):
                self._seen.add(effect.target)

    def run(
        self, text: str, output: str | None, exit_code: int | None, timed_out: bool
    ) -> list[Effect]:
        """Say what a command line did.

        Args:
            text: as typed.
            output: what it printed, None where nothing is recorded.
            exit_code: of the whole line, None where unknown.
            timed_out: the harness stopped it.
        """
        stripped = text.strip()
        if not stripped or stripped in _CONTROL_KEYS:
            return [NOOP]
        if not self.persistent:
            self.place.cwd = ""
        pipelines = split(text)
        if pipelines is None:
            self.unparsed += 1
            effect = Effect("execute", digest=digest(stripped))
            if self.trace is not None:
                self.trace.append("no parser understands this: a run, identified by its text")
            return self._with_results([(effect, 0, True)], [], output, exit_code, timed_out)
        before = self.place.cwd
        placed = self._line(pipelines)
        if not placed:
            return [NOOP]
        effects = self._with_results(placed, pipelines, output, exit_code, timed_out)
        if exit_code and self.place.cwd != before and self._went_nowhere(pipelines, output or ""):
            self.place.cwd = before
        self.see(effects)
        return effects

    def _went_nowhere(self, pipelines: list[Pipeline], output: str) -> bool:
        """Tell whether a failed line failed at its ``cd``."""
        moves = [p.commands[0].argv for p in pipelines if p.commands[0].argv[:1] == ("cd",)]
        missing = results.missing_files(output)
        return len(pipelines) == 1 or any(argv[-1] in missing for argv in moves)

    # --- what it did ---------------------------------------------------------------------------

    def _line(self, pipelines: list[Pipeline]) -> list[_Placed]:
        placed: list[_Placed] = []
        outer: list[str] = []
        for number, pipeline in enumerate(pipelines):
            first = pipeline.commands[0].argv
            if first == ("(",):
                outer.append(self.place.cwd)
            elif first == (")",):
                self.place.cwd = outer.pop() if outer else self.place.cwd
            else:
                self._change_directory(pipeline)
                effects = self._pipeline(pipeline)
                placed += [(e, number, own) for e, own in effects]
                if self.trace is not None:
                    self._note(pipeline, [effect for effect, _ in effects])
        return placed

    def _note(self, pipeline: Pipeline, effects: list[Effect]) -> None:
        assert self.trace is not None
        words = " | ".join(" ".join(command.argv) for command in pipeline.commands)
        became = " + ".join(effect.key(4, verb=True) for effect in effects)
        where = f" (in {self.place.cwd})" if self.place.cwd else ""
        self.trace.append(f"{words}{where} → {became}")

    def _change_directory(self, pipeline: Pipeline) -> None:
        argv = pipeline.commands[0].argv
        if not argv or argv[0] not in ("cd", "pushd") or len(pipeline.commands) > 1:
            return
        words = [word for word in argv[1:] if word[:1] != "-" or word == "-"]
        here = self.place.cwd
        if words[:1] == ["-"]:
            self.place.cwd = self._previous
        else:
            target = self.place.path(words[0] if words else "~")
            self.place.cwd = "" if target == "." else target
        self._previous = here

    def _pipeline(self, pipeline: Pipeline) -> list[tuple[Effect, bool]]:
        """Say what a pipeline did; each effect with whether the pipeline's exit code is its own."""
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
                effects += [(_fed(e, fed), own and at == last) for e, own in stage]
            if at != last:
                typed = _literal(command)
            written = self._redirections(command, typed)
            if written:  # a mark that goes into a file ends nothing
                effects = [(e, own) for e, own in effects if e.kind != "finish"]
            # the shell opens the file, whatever becomes of the command
            effects += [(e, False) for e in written]
        kept = [(e, own) for e, own in effects if e.kind != "noop"]
        return kept or effects[:1] or [(NOOP, True)]

    def _command(self, command: Command, typed: str | None) -> list[tuple[Effect, bool]]:
        argv = unwrap(command.argv)
        stdin = command.stdin if command.stdin is not None else typed
        if not argv:
            return [(NOOP, True)]
        name = basename(argv[0])
        if name in _SHELLS:
            script = _inline_script(argv[1:], stdin)
            if script is not None:
                return self._nested(script)
        if name == "eval":
            return self._nested(" ".join(argv[1:]))
        if name == "tee":
            return [(effect, True) for effect in self._tee(argv[1:], stdin)]
        effects = unwrapped_effects(argv, stdin, self.place)
        source = next((target for operator, target in command.redirects if operator == "<"), None)
        if source is not None:
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
        known = _exit_codes(pipelines, placed, 0)
        last = len(pipelines) - 1
        return [
            (effect, own and number == last and known[number] is not None)
            for effect, number, own in placed
        ] or [(NOOP, True)]

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
            self._written(path, text, appends, "tee") for path in paths if path != "/dev/null"
        ] or [NOOP]

    def _redirections(self, command: Command, typed: str | None) -> list[Effect]:
        effects: list[Effect] = []
        for operator, target in command.redirects:
            if "<" in operator or operator[:1] == "2" or operator.endswith("&"):
                continue
            path = self.place.path(target)
            if path.startswith("/dev/"):
                continue
            text = typed if typed is not None else _literal(command)
            identity = run_digest(command.argv, self.place, command.stdin)
            effects.append(self._written(path, text, ">>" in operator, identity))
        return effects

    def _written(self, path: str, text: str | None, appends: bool, command: str) -> Effect:
        """Write a text, or what a command printed, into a file."""
        identity = digest(f"output of {command}") if text is None else edit_digest(text)
        if text is not None and not text.strip():
            identity = ""
        if appends or (text is None and path in self._seen):
            return Effect("modify", path, "insert" if appends else "replace", identity)
        return Effect("create", path, digest=identity)

    # --- what it came to -----------------------------------------------------------------------

    def _with_results(
        self,
        placed: list[_Placed],
        pipelines: list[Pipeline],
        output: str | None,
        exit_code: int | None,
        timed_out: bool,
    ) -> list[Effect]:
        text = output or ""
        tests = [e for e, _, _ in placed if e.kind == "test"]
        summaries: list[str] = []
        if tests and text:
            summaries = results.test_results(results.clean(text))
        if len(tests) == 1:  # a test may print another run's summary; its own comes last
            summaries = summaries[-1:]
        summary_of = iter(summaries) if len(summaries) == len(tests) else iter(())
        missing = {self.place.path(path) for path in results.missing_files(text)}
        exits = _exit_codes(pipelines, placed, exit_code)
        runs = [at for at, (e, _, _) in enumerate(placed) if e.kind in ("test", "execute")]
        out: list[Effect] = []
        for at, (effect, number, own) in enumerate(placed):
            exit_of = exits[number] if own and number < len(exits) else None
            if not pipelines:
                exit_of = exit_code
            result = effect.result
            if timed_out and runs and at == runs[-1]:
                result = "timeout"
            elif effect.kind == "test":
                result = next(summary_of, "") or _test_exit(exit_of)
            elif effect.kind == "execute":
                result = _run_exit(exit_of)
            elif effect.kind in ("view", "search", "modify", "delete", "create", "restore"):
                result = _refused(effect, exit_of, missing, pipelines, number)
            out.append(effect._replace(result=result) if result else effect)
        if self.trace is not None:
            said = f"the runners said {', '.join(summaries)}" if summaries else ""
            known = [str(code) for code in exits if code is not None]
            code = "timed out" if timed_out else f"exit {exit_code}"
            whose = f", of {len(known)} of {len(exits)} parts" if len(exits) > 1 else ""
            self.trace.append("; ".join(filter(None, [code + whose, said])))
        return out


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
    return effect._replace(digest=digest(f"{effect.digest} < {source}"))


def _shown_less(effect: Effect, argv: tuple[str, ...]) -> list[Effect]:
    """Narrow a view by the filter behind the pipe; other effects stay what they are."""
    if effect.kind != "view" or effect.scope == "output":
        return [effect]
    name, args = basename(argv[0]), argv[1:]
    search = effect._replace(kind="search", scope="", detail=" ".join(args))
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
    return [effect._replace(scope=scope) for scope in scopes] if scopes else [effect]


def _exit_codes(
    pipelines: list[Pipeline], placed: list[_Placed], exit_code: int | None
) -> list[int | None]:
    """Give each pipeline the exit code that is known to be its own."""
    known: list[int | None] = [None] * len(pipelines)
    if exit_code is None or not pipelines or pipelines[-1].operator == "&":
        return known
    safe = [True] * len(pipelines)
    for effect, number, _ in placed:
        safe[number] = safe[number] and effect.kind in _SAFE
    start = len(pipelines) - 1
    while start and pipelines[start - 1].operator == "&&":
        start -= 1
    if start and pipelines[start - 1].operator == "||":
        return known
    if any(pipeline.nested for pipeline in pipelines[start:]):
        return known
    if exit_code == 0:
        known[start:] = [0] * (len(pipelines) - start)
    elif all(safe[start:-1]):
        known[-1] = exit_code
    return known


def _test_exit(exit_code: int | None) -> str:
    if exit_code is None:
        return ""
    if exit_code == _TIMEOUT_EXIT:
        return "timeout"
    return {0: "pass", 1: "fail"}.get(exit_code, "error")


def _run_exit(exit_code: int | None) -> str:
    if exit_code is None:
        return ""
    if exit_code == _TIMEOUT_EXIT:
        return "timeout"
    return "ok" if exit_code == 0 else "err"


def _refused(
    effect: Effect,
    exit_code: int | None,
    missing: set[str],
    pipelines: list[Pipeline],
    number: int,
) -> str:
    if effect.target in missing and effect.kind != "create":
        return "err"
    if not exit_code:
        return ""
    argv = pipelines[number].commands[-1].argv if number < len(pipelines) else ()
    program = basename(argv[0]) if argv else ""
    if argv[:2] == ("git", "grep"):
        program = "grep"
    if effect.target == PATH_LOOKUP or program in ("diff", "cmp"):
        return ""  # not found, or different: an answer
    if effect.kind == "search":
        return "err" if program in _GREPS and exit_code > 1 else ""
    if program in _GREPS and exit_code == 1:
        return ""
    return "err"
