"""What a task is: problems, each a workspace, a text, and tests that decide.

A problem is data; its task knows how to open its workspace and how to judge what was made of it.
Most tasks are files: ``FilesTask`` opens a sandbox, puts them there, and judges by pytest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, overload

import msgspec

from rtmc.agent.sandbox import Sandbox
from rtmc.agent.tasks.difference import contents, difference, digest
from rtmc.agent.tasks.judge import Judgement, judge_by_pytest
from rtmc.agent.tasks.memory import Memory
from rtmc.errors import OptionError

__all__ = ["FilesTask", "Judgement", "Opener", "Part", "Problem", "Task"]

Opener = Callable[..., Sandbox]
"""Opens an empty sandbox; takes the options of its kind, such as ``image``."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One problem.

    Attributes:
        problem_id: unique within its task, and the same at every run.
        text: what the agent is told; nothing else is.
        files: the workspace at the start, by path.
        tests: files that are put in place when the agent is done, over whatever stands there.
        must_pass: the tests that decide, as pytest's node ids; all must pass.
        facts: what is known of the problem (package, kind of fault, its place, …), for analyses;
            the agent never sees it.
    """

    problem_id: str
    text: str
    files: dict[str, bytes] = {}
    tests: dict[str, bytes] = {}
    must_pass: tuple[str, ...] = ()
    facts: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Refuse a problem that every attempt would solve.

        Raises:
            OptionError: no test decides.
        """
        if not self.must_pass:
            raise OptionError(f"{self.problem_id}: no test decides; name some in must_pass")


class Part(Sequence[Problem]):
    """Some of the problems of a sequence, made when they are asked for."""

    def __init__(self, whole: Sequence[Problem], places: range) -> None:
        """Choose them.

        Args:
            whole: of which it is a part.
            places: in it; those beyond its end are left out.
        """
        self._whole, self._places = whole, places[: max(0, len(whole) - places.start)]

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Problem: ...
    @overload
    def __getitem__(self, index: slice) -> "Part": ...
    def __getitem__(self, index: int | slice) -> "Problem | Part":
        if isinstance(index, slice):
            return Part(self._whole, self._places[index])
        return self._whole[self._places[index]]


class Task(Protocol):
    """A source of problems."""

    @property
    def name(self) -> str:
        """Its kind."""
        ...

    @property
    def problems(self) -> Sequence[Problem]:
        """All of them, in an order that never changes; made when they are asked for."""
        ...

    def open(self, problem: Problem) -> Sandbox:
        """Open the workspace of a problem; whoever asks closes it."""
        ...

    def judge(self, problem: Problem, sandbox: Sandbox) -> Judgement:
        """Run the tests that decide on what the agent left behind."""
        ...


@dataclass(frozen=True, slots=True)
class FilesTask:
    """A task whose problems are files.

    Attributes:
        name: as of ``Task``.
        problems: as of ``Task``.
        opener: of the sandbox that the agent works in, and of the clean one that judges.
        seconds: wall time of the tests.
        memory: of what was judged, for problems whose tests say the same of the same files every
            time: what several rollouts left alike is judged once.
    """

    name: str
    problems: Sequence[Problem]
    opener: Opener
    seconds: float = 60.0
    memory: Memory[Judgement] | None = None

    def open(self, problem: Problem) -> Sandbox:
        """Open a sandbox and put the files there."""
        sandbox = self.opener()
        try:
            sandbox.put(problem.files)
        except BaseException:
            sandbox.close()
            raise
        return sandbox

    def judge(self, problem: Problem, sandbox: Sandbox) -> Judgement:
        """Judge in a sandbox that the agent has never seen, on a copy of its workspace."""
        workspace = sandbox.take()
        left = contents(workspace)

        def judge() -> Judgement:
            with self.opener() as clean:
                clean.put(workspace)
                judged = judge_by_pytest(
                    clean, left, problem.files, problem.tests, problem.must_pass, self.seconds
                )
            return msgspec.structs.replace(judged, patch=difference(problem.files, left))

        if self.memory is None:
            return judge()
        # why tests could not decide may lie with the machine, and is asked again
        return self.memory.of(
            (problem.problem_id, digest(workspace)), judge, lambda found: not found.reason
        )
