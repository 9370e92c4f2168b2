"""Containers, for problems that come as an image (R2E-Gym, SWE-bench).

Through the Docker SDK for Python and not SWE-ReX: the SDK is Docker's own, has two dependencies
against eight, was released in July 2026 (7.2.0) where SWE-ReX's last release, 1.4.0, is of August
2025, and has only to start ``init.py`` here and connect to it. SWE-ReX speaks HTTP to a server in
the container, which a container without a network cannot have.

The image needs bash, tar and Python 3.6 or newer.
"""

import contextlib
import functools
from collections.abc import Mapping
from typing import Any

from rtmc.agent.sandbox.base import ENVIRONMENT, Limits
from rtmc.agent.sandbox.hosted import BOOT_TEXT, Hosted, greet, receive
from rtmc.errors import MissingExtraError, SandboxError

__all__ = ["DockerSandbox", "options"]


class DockerSandbox(Hosted):
    """A container without a network."""

    def __init__(
        self,
        limits: Limits = Limits(),
        *,
        image: str,
        workspace: str = "/testbed",
        env: Mapping[str, str] | None = None,
        python: str = "python3",
        quota: bool = False,
        client: Any = None,
    ) -> None:
        """Create and start the container.

        Args:
            limits: what it may use.
            image: its name; it is not pulled.
            workspace: the folder in it where the agent works.
            env: variables besides those of the image.
            python: the interpreter in it that runs the first process.
            quota: have Docker limit the container's disk, which only some storage drivers can.
            client: a ``docker.DockerClient``; None = from the environment.

        Raises:
            MissingExtraError: the Docker SDK is not installed.
            SandboxError: Docker is not running, has no such image, or refuses.
        """
        try:
            import docker
            from docker.errors import APIError, DockerException, ImageNotFound
        except ImportError as error:
            raise MissingExtraError("docker", "docker") from error
        try:
            client = client or docker.from_env()
        except DockerException as error:
            raise SandboxError(
                f"Docker is not running, or this user may not use it ({error}); start it "
                "(systemctl start docker) or join the group docker, or use the sandbox 'bwrap'"
            ) from error
        container = channel = None
        try:
            container = client.containers.create(
                image, **options(limits, workspace=workspace, python=python, quota=quota)
            )
            streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            channel = Attached(container.attach_socket(params=streams))
            container.start()
        except DockerException as error:
            if channel is not None:
                channel.close()
            if container is not None:
                container.remove(force=True)
            if isinstance(error, ImageNotFound):
                raise SandboxError(
                    f"Docker has no image {image}; get it with: docker pull {image}"
                ) from error
            reason = error.explanation if isinstance(error, APIError) else None
            hint = "; leave quota off" if quota else ""
            raise SandboxError(
                f"Docker refused to start {image}: {reason or error}{hint}"
            ) from error
        end = functools.partial(_end, container, channel)
        try:
            greet(channel, limits, workspace, {**ENVIRONMENT, **(env or {})}, compiled=False)
            receive(channel)
        except (OSError, EOFError) as error:
            channel.drain()
            raise SandboxError(
                f"the first process in {image} did not start ({end() or 'it said nothing'}); an "
                f"image needs bash, tar and Python 3.6 or newer as {python!r} (see python=)"
            ) from error
        super().__init__(channel, limits, workspace, _notes(limits, quota), end)


def options(limits: Limits, *, workspace: str, python: str, quota: bool) -> dict[str, Any]:
    """Write the options of ``containers.create``."""
    return {
        "entrypoint": [python, "-I", "-S", "-c", BOOT_TEXT],
        "command": [],
        "working_dir": workspace,
        "stdin_open": True,
        "tty": False,
        "network_mode": "none",
        "hostname": "sandbox",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        # Files in /tmp and /dev/shm are memory too.
        "mem_limit": limits.memory + 2 * limits.disk,
        "memswap_limit": limits.memory + 2 * limits.disk,
        "pids_limit": limits.processes + 2,
        "shm_size": limits.disk,
        "tmpfs": {"/tmp": f"size={limits.disk},mode=1777"},
        "labels": {"rtmc": "sandbox"},
        **({"storage_opt": {"size": str(limits.disk)}} if quota else {}),
    }


class Attached:
    """The container's streams as one channel: Docker sends stdout and stderr in frames."""

    def __init__(self, stream: Any) -> None:
        """Take what ``attach_socket`` gave: a socket, or a wrapper around one."""
        self._stream, self._socket = stream, getattr(stream, "_sock", stream)
        self._frame = 0  # bytes left of the frame of stdout that is being read
        self.said = b""

    def sendall(self, data: bytes) -> None:
        """Send all of it."""
        self._socket.sendall(data)

    def recv(self, size: int) -> bytes:
        """Receive some bytes of stdout; what comes on stderr goes to ``said``."""
        while not self._frame:
            head = self._exactly(8)
            length = int.from_bytes(head[4:], "big")
            if head[:1] == b"\2":
                self.said = (self.said + self._exactly(length))[-4096:]
            elif head:
                self._frame = length
            else:
                return b""
        data = self._socket.recv(min(size, self._frame))
        self._frame -= len(data)
        return data

    def settimeout(self, seconds: float | None) -> None:
        """Limit each of the other two."""
        self._socket.settimeout(seconds)

    def drain(self) -> None:
        """Read to the end, for what is said on stderr there."""
        with contextlib.suppress(OSError):
            self.settimeout(5)
            while self.recv(4096):
                pass

    def close(self) -> None:
        """Close it."""
        self._socket.close()
        self._stream.close()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                return b""
            data += more
        return data


def _end(container: Any, channel: Attached) -> str:
    """Remove the container; give what was said on stderr."""
    channel.close()
    container.remove(force=True)
    return channel.said.decode(errors="replace").strip()[-500:]


def _notes(limits: Limits, quota: bool) -> list[str]:
    """Say how the limits hold."""
    return [
        f"memory: the engine holds {limits.memory >> 20} MiB and what files in /tmp and /dev/shm "
        "take; processes alone are looked at ten times a second, and killed if above",
        f"processes: the engine holds {limits.processes}",
        f"disk: {limits.disk >> 20} MiB in each of /tmp and /dev/shm"
        + (", and in the container" if quota else "; the workspace is not limited (see quota=)"),
        "file_size, cpu_seconds: the kernel holds them for each process",
        "files: nothing holds it",
    ]
