"""What tasks of images share: open a container, take the patch out, judge it in a clean one.

Judging in a container that the agent has never seen is sounder than in the agent's own, and it is
what SWE-bench's harness does: what the agent did to the interpreter, to installed packages, to git
or to programs of the system does not count, its processes are gone, and the deciding tests are
where it cannot reach them. It costs a second start of the container and a patch. What a patch does
not carry (packages the agent installed, files that git ignores, rebuilt extension modules) does
not count either; reference solutions come as patches too, so none of it is needed.
"""

import functools
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from rtmc.agent.sandbox import Result, Sandbox
from rtmc.agent.tasks.base import Judgement, Opener, Problem
from rtmc.agent.tasks.images.repository import (
    apply_patch,
    forget_future,
    paths_of,
    settle,
    take_patch,
)
from rtmc.agent.tasks.images.rows import read_rows
from rtmc.errors import FormatError, OptionError, WorkspaceError
from rtmc.formats.base import REFUSALS
from rtmc.formats.read_report import Skipped

__all__ = ["WORKSPACE", "ImageTask"]

WORKSPACE = "/testbed"
"""Where the images of both benchmarks have the repository."""

_PATH = "/root/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ImageTask(ABC):
    """A task whose problems are rows of a dataset, each with an image.

    ``facts`` of a problem hold at least ``repo``, ``base_commit``, ``image`` and, where the row has
    it, ``patch``: the reference solution, for an oracle. ``open`` and ``judge`` read them, so
    a problem can be stored and judged later.

    Attributes:
        name: as of ``Task``.
        skipped: rows that hold no problem, and why; complete once ``problems`` was asked for.
        opener: of containers; takes ``image``, ``workspace``, ``env`` and ``python``.
        seconds: wall time of the tests.
    """

    dataset: ClassVar[str]
    row_type: ClassVar[type[msgspec.Struct]]
    bin: ClassVar[str]
    """Where the images have the interpreter that the repository is tested with."""

    def __init__(
        self, name: str, paths: Sequence[str | Path], opener: Opener, seconds: float
    ) -> None:
        self.name, self.opener, self.seconds = name, opener, seconds
        self.skipped: list[Skipped] = []
        self._paths = paths

    @functools.cached_property
    def problems(self) -> Sequence[Problem]:
        """The problems in the order of the files; read when they are first asked for.

        Raises:
            FormatError: a file cannot be read, or holds no problem.
            MissingExtraError: Parquet without pyarrow.
        """
        found: dict[str, Problem] = {}
        for item in read_rows(self._paths, self.row_type, self.dataset):
            if isinstance(item, Skipped):
                self.skipped.append(item)
                continue
            try:
                problem = self._problem(item.row)
            except (*REFUSALS, OptionError) as error:
                self.skipped.append(Skipped(item.source, str(error)))
                continue
            if problem is None:
                continue
            if problem.problem_id in found:
                self.skipped.append(Skipped(item.source, f"{problem.problem_id} for a second time"))
                continue
            found[problem.problem_id] = problem
        if not found:
            named = ", ".join(map(str, self._paths)) or "no file"
            skipped = [f"; the first of {len(self.skipped)} skipped: {s}" for s in self.skipped[:1]]
            raise FormatError(f"{named}: no problem of {self.dataset}{''.join(skipped)}")
        return tuple(found.values())

    def open(self, problem: Problem) -> Sandbox:
        """Start the problem's container for the agent; whoever asks closes it.

        The deciding tests are not in it, neither is the history after the problem, ``git status``
        is clean, and ``python`` and ``pytest`` in the shell are the repository's.

        Raises:
            SandboxError: the container does not start, or is not as the benchmark's are.
        """
        sandbox = self._start(problem)
        try:
            self._hide(sandbox)
            settle(sandbox)
            forget_future(sandbox)
        except BaseException:
            sandbox.close()
            raise
        return sandbox

    def patch(self, problem: Problem, sandbox: Sandbox) -> bytes:
        """Take the agent's work out of a sandbox of ``open``, as a patch for predictions.

        It is ``git diff`` against the start, with new files, without the deciding test files.

        Raises:
            WorkspaceError: there is no patch to be had, as when the agent removed ``.git``.
        """
        return take_patch(sandbox, self._deciding_files(problem))

    def judge(self, problem: Problem, sandbox: Sandbox) -> Judgement:
        """Judge by the tests in a clean container, to which the agent's patch is applied.

        A patch that cannot be taken or applied gets 0, and so does an empty one, without a run.
        Changes of files that steer pytest (``judge.STEERING``) count only where the reference
        solution changes them too.

        Raises:
            SandboxError: the agent's sandbox has ended, or the clean one does not start.
        """
        start, patch = time.perf_counter(), b""

        def judged(reward: float | None, failed: Sequence[str], reason: str = "") -> Judgement:
            return Judgement(reward, tuple(failed), reason, time.perf_counter() - start, patch)

        try:
            patch = self.patch(problem, sandbox)
            if not patch:
                return judged(0.0, problem.must_pass, "the agent changed nothing")
            with self._start(problem) as clean:
                settle(clean)
                if not apply_patch(
                    clean,
                    patch,
                    without=self._deciding_files(problem),
                    steering=paths_of(problem.facts.get("patch", "")),
                ):
                    return judged(0.0, problem.must_pass, "the agent changed nothing that counts")
                return judged(*self._run(problem, clean))
        except WorkspaceError as error:
            return judged(0.0, problem.must_pass, str(error))

    @abstractmethod
    def _problem(self, row: Any) -> Problem | None:
        """Make the problem of a row; None if it is not wanted."""

    @abstractmethod
    def _hide(self, sandbox: Sandbox) -> None:
        """Take out of the agent's container what it must not see."""

    @abstractmethod
    def _deciding_files(self, problem: Problem) -> Collection[str]:
        """Name the test files that decide."""

    @abstractmethod
    def _run(self, problem: Problem, clean: Sandbox) -> tuple[float | None, Sequence[str], str]:
        """Run the tests; give reward, failed tests and reason as of ``Judgement``."""

    def _start(self, problem: Problem) -> Sandbox:
        return self.opener(
            image=problem.facts["image"],
            workspace=WORKSPACE,
            env={"PATH": f"{self.bin}:{_PATH}"},
            python=f"{self.bin}/python",
        )

    def _logged(self, clean: Sandbox, script: str) -> tuple[str, str]:
        """Run a script; give all that it prints, and why it was stopped, if it was.

        ``exec`` keeps two ends of what is printed; the log of a large suite is longer.
        """
        name = f"rtmc-{secrets.token_hex(8)}"  # unknown to the code under test
        result = clean.exec(
            ["sh", "-c", f"cat > /tmp/{name}.sh; exec bash /tmp/{name}.sh > /tmp/{name} 2>&1"],
            script.encode(),
            self.seconds,
        )
        clean.exec(["cp", f"/tmp/{name}", name])
        return clean.read(name).decode(errors="replace"), self._stopped(result)

    def _stopped(self, result: Result) -> str:
        if result.timed_out:
            return f"the tests ran longer than {self.seconds:g} s"
        return "" if result.exit_code is not None else f"the tests were stopped: {result.output}"
