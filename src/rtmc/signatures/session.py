"""Follow one rollout's shell: where it is, which files exist, what each line came to.

A test runner's own summary comes first; an exit code is believed as ``line`` allows.
"""

from msgspec.structs import replace

from rtmc.signatures import results
from rtmc.signatures.effects import Effect
from rtmc.signatures.line import PRINTED, Line, Part, explain_line, read_line
from rtmc.signatures.programs.base import NOOP, Place
from rtmc.signatures.programs.searches import PATH_LOOKUP

__all__ = ["Session"]

_CONTROL_KEYS = frozenset(("C-c", "C-d", "C-z", "C-l", "^C", "^D"))
_ON_FILES = frozenset(("view", "search", "modify", "delete", "create", "restore"))
_RUNS = frozenset(("test", "execute"))
_GREPS = frozenset(("grep", "egrep", "fgrep", "rg", "ag", "ack"))
_EXISTS = frozenset(("view", "create", "modify"))
_TIMEOUT_EXIT = 124


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
        self.place.cwd = self.place.folder(directory)

    def see(self, effects: list[Effect]) -> None:
        """Remember files that exist, so that printing into them counts as modifying."""
        for effect in effects:
            if effect.kind in _EXISTS and effect.result != "err":
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
        place = self.place
        if not self.persistent:
            place.cwd = ""
        if self.trace is not None:
            self.trace += explain_line(text, place.cwd, self._previous, place.root)
        line = read_line(text, place.cwd, self._previous, place.root)
        self.unparsed += not line.pipelines
        if not line.parts:
            return [NOOP]
        effects = self._came_to(line, output or "", exit_code, timed_out)
        if not (exit_code and line.moves and _went_nowhere(line, output or "")):
            place.cwd, self._previous = line.cwd, line.previous
        self.see(effects)
        return effects

    def _came_to(
        self, line: Line, output: str, exit_code: int | None, timed_out: bool
    ) -> list[Effect]:
        """Give each effect its result."""
        said: list[str] = []
        if line.tests and output:
            said = results.test_results(results.clean(output))
            if line.tests == 1:  # a test may print another run's summary; its own comes last
                said = said[-1:]
        summary = iter(said if len(said) == line.tests else ())
        missing = results.missing_files(output)
        if missing:
            missing = {self.place.path(path) for path in missing}
        stopped = -1
        if timed_out:
            runs = [at for at, part in enumerate(line.parts) if part.effect.kind in _RUNS]
            stopped = runs[-1] if runs else -1
        effects: list[Effect] = []
        for at, part in enumerate(line.parts):
            effect = part.effect
            code = exit_code if (part.failure_is_own if exit_code else part.zero_is_own) else None
            result = ""
            if at == stopped:
                result = "timeout"
            elif effect.kind == "execute":
                result = _run_exit(code)
            elif effect.kind == "test":
                result = next(summary, "") or _test_exit(code)
                if result == "pass" and not said and "Traceback (most recent" in output:
                    result = ""  # a script that prints its errors and exits with 0 passes nothing
            elif (code or missing) and effect.kind in _ON_FILES:
                result = _refused(part, code, missing)
            if effect.scope == PRINTED:
                effect = self._printed(effect, failed=bool(code))
                result = ""
            effects.append(replace(effect, result=result) if result else effect)
        if self.trace is not None:
            own = sum(part.failure_is_own if exit_code else part.zero_is_own for part in line.parts)
            known = "no exit code" if exit_code is None else f"exit {exit_code}"
            code_text = "timed out" if timed_out else known
            whose = f", of {own} of {len(line.parts)} effects" if len(line.parts) > 1 else ""
            runner = f"; the runner said {', '.join(said)}" if said else ""
            self.trace.append(code_text + whose + runner)
        return effects

    def _printed(self, effect: Effect, failed: bool) -> Effect:
        """Write what a program printed: nothing to speak of, if it failed."""
        identity = "" if failed else effect.digest
        if effect.target in self._seen:
            return Effect("modify", effect.target, "replace", identity)
        return Effect("create", effect.target, digest=identity)


def _went_nowhere(line: Line, output: str) -> bool:
    """Tell whether a failed line failed at its ``cd``."""
    missing = results.missing_files(output)
    return line.pipelines == 1 or any(move in missing for move in line.moves)


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


def _refused(part: Part, exit_code: int | None, missing: set[str]) -> str:
    effect = part.effect
    if effect.target in missing and effect.kind != "create":
        return "err"
    if not exit_code or effect.target == PATH_LOOKUP or part.program in ("diff", "cmp"):
        return ""  # not found, or different, is an answer
    if effect.kind == "search":
        return "err" if part.program in _GREPS and exit_code > 1 else ""
    return "" if part.program in _GREPS and exit_code == 1 else "err"
