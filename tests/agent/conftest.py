"""A workbench on a real sandbox: bubblewrap where this machine can have it, else none at all."""

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from rtmc.agent.sandbox import Limits, Sandbox, open_sandbox
from rtmc.agent.tools import TOOLS, Observation, Workbench
from rtmc.errors import SandboxError


@functools.cache
def bwrap_works() -> bool:
    try:
        with open_sandbox("bwrap"):
            return True
    except SandboxError:
        return False


def open_here(**limits: Any) -> Sandbox:
    if bwrap_works():
        return open_sandbox("bwrap", Limits(**limits))
    return open_sandbox("local", Limits(**limits), unsafe=True)


@pytest.fixture
def open_bench() -> Iterator[Callable[..., Workbench]]:
    """Open workbenches, which are closed after the test."""
    with ExitStack() as stack:
        yield lambda **limits: Workbench(stack.enter_context(open_here(**limits)))


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    with open_here() as sandbox:
        yield sandbox


@pytest.fixture
def bench(shared: Sandbox) -> Workbench:
    """Give a bench whose workspace and shell are as new."""
    shared.run("cd " + shared.workspace)
    shared.exec(["find", ".", "-mindepth", "1", "-delete"])
    return Workbench(shared)


@pytest.fixture
def edit(bench: Workbench) -> Callable[..., Observation]:
    return lambda command, path, **more: TOOLS["str_replace_editor"](
        {"command": command, "path": path, **more}, bench
    )
