"""No sandbox at all: the same interface, on this machine and as this user.

For machines without bubblewrap whose owner trusts what the agent will do. Commands start in a
folder of their own with a clean environment and the limits of single processes; nothing else is
kept from them.
"""

import functools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rtmc.agent.sandbox.base import ENVIRONMENT, OF_OUR_PYTHON, Limits
from rtmc.agent.sandbox.hosted import BOOT_CODE, Hosted, greet, receive
from rtmc.errors import OptionError, SandboxError

__all__ = ["LocalSandbox"]


class LocalSandbox(Hosted):
    """A folder and a shell, and nothing that keeps the agent in."""

    def __init__(
        self,
        limits: Limits = Limits(),
        *,
        unsafe: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start it.

        Args:
            limits: what it may use, as far as ``notes`` says.
            unsafe: must be said.
            env: more variables.

        Raises:
            OptionError: it was not said.
            SandboxError: there is no bash, or it cannot start.
        """
        if not unsafe:
            raise OptionError(
                "the sandbox 'local' keeps nothing in: an agent's commands can read, change and "
                "send whatever you can; use 'bwrap' or 'docker', or say unsafe=True if you trust "
                "what it will do"
            )
        bash = shutil.which("bash")
        if bash is None:
            raise SandboxError("bash is not installed, and the sandbox 'local' needs it")
        folder = tempfile.TemporaryDirectory(prefix="rtmc-", ignore_cleanup_errors=True)
        workspace, home, tmp = (Path(folder.name, name) for name in ("workspace", "home", "tmp"))
        for path in (workspace, home, tmp):
            path.mkdir()
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [os.path.realpath(sys.executable), "-I", "-S", "-c", BOOT_CODE],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={},
            )
        end = functools.partial(_end, process, ours, folder)
        variables = {
            "PATH": f"{sys.prefix}/bin:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(home),
            "TMPDIR": str(tmp),
            **ENVIRONMENT,
            **OF_OUR_PYTHON,
            **(env or {}),
        }
        try:
            greet(ours, limits, str(workspace), variables, compiled=True, bash=bash)
            receive(ours)
        except (OSError, EOFError) as error:
            raise SandboxError(f"the sandbox 'local' could not start: {end()}") from error
        super().__init__(ours, limits, os.path.realpath(workspace), _NOTES, end)


_NOTES = (
    "nothing is kept in: network, files and processes of this user are open to it",
    "memory, processes: each process is held to the memory; all together are looked at ten times "
    "a second, and killed if above",
    "file_size, cpu_seconds: the kernel holds them for each process",
    "disk, files: nothing holds them",
)


def _end(
    process: subprocess.Popen[bytes], channel: socket.socket, folder: tempfile.TemporaryDirectory
) -> str:
    """End the first process, which ends the others; give what was said on stderr."""
    channel.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
    _, said = process.communicate()
    folder.cleanup()
    return said.decode(errors="replace").strip()[-500:]
