"""Let these tests import ``engine``, and the scripted Docker client that it extends."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rtmc.agent.sandbox import Sandbox
from rtmc.agent.tasks.base import Problem
from rtmc.agent.tasks.images import ImageTask
from rtmc.errors import SandboxError

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "sandbox")]

Start = Callable[..., tuple[ImageTask, Problem, Sandbox]]


@pytest.fixture(scope="session")
def containers() -> None:
    """Skip where bubblewrap cannot stand in for a container."""
    from rtmc.agent.sandbox import open_sandbox

    try:
        open_sandbox("bwrap").close()
    except SandboxError as error:
        pytest.skip(f"a container of these tests is a bubblewrap sandbox: {error}")


@pytest.fixture
def start() -> Iterator[Start]:
    """Open a problem of a task, the first or a named one; closed after the test."""
    with ExitStack() as stack:

        def start(task: ImageTask, at: int = 0) -> tuple[ImageTask, Problem, Sandbox]:
            problem = task.problems[at]
            return task, problem, stack.enter_context(task.open(problem))

        yield start
