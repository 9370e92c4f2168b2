"""Sandboxes to test, and the skip where this machine cannot have one."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rtmc.agent.sandbox import Limits, Sandbox, open_sandbox

sys.path.insert(0, str(Path(__file__).parent))

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def bwrap_works() -> None:
    """Skip where bubblewrap is missing or forbidden, as it is without rtmc."""
    if shutil.which("bwrap") is None:
        pytest.skip("no bubblewrap here (Debian: apt-get install bubblewrap)")
    who = {} if os.geteuid() else {"user": 65533, "group": 65533, "extra_groups": []}
    least = "bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev true"
    done = subprocess.run(
        least.split(), capture_output=True, text=True, cwd="/", check=False, **who
    )
    if done.returncode:
        pytest.skip(f"bubblewrap may not be used here: {done.stderr.strip()}")


@pytest.fixture(params=["bwrap", "warm"])
def bwrap(request: pytest.FixtureRequest, bwrap_works: None) -> Iterator[Open]:
    """Open sandboxes of bubblewrap with some limits; they are closed after the test."""
    with ExitStack() as stack:
        yield lambda env=None, readable=(), **limits: stack.enter_context(
            open_sandbox(request.param, Limits(**limits), env=env, readable=readable)
        )


@pytest.fixture(params=["bwrap", "warm", "local", "docker"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sandbox]:
    """Give a sandbox of each kind; Docker's engine is a fake that runs the process here."""
    if request.param in ("bwrap", "warm"):
        request.getfixturevalue("bwrap_works")
        options: dict[str, Any] = {}
    elif request.param == "local":
        options = {"unsafe": True}
    else:
        from fake_docker import FakeDocker

        workspace = tmp_path / "testbed"
        workspace.mkdir()
        options = {"image": "known", "workspace": str(workspace), "client": FakeDocker("known")}
    with open_sandbox(request.param, Limits(), **options) as opened:
        yield opened
