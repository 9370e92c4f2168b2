"""Sandboxes as those of ``bwrap``, from a template that has pytest loaded already.

The template is one process in one bubblewrap. Each sandbox is a fork of it that takes namespaces
of its own (``template.py``), so that it starts in a few milliseconds, and in which a run of pytest
costs a fork and not the start and the imports of a Python. What keeps sandboxes apart from each
other is the kernel, as with ``bwrap``; what sets it up is ``template.py``. Out of all of them
bubblewrap keeps them.

So that the same run prints the same, whenever and wherever it runs, ``PYTHONHASHSEED`` is 0 in them
and pytest gives every duration as 0.00 s.
"""

import functools
import inspect
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rtmc.agent.sandbox import client, template
from rtmc.agent.sandbox.base import Limits
from rtmc.agent.sandbox.bwrap import (
    WORKSPACE,
    binds_of,
    counts_by_namespace,
    end_of,
    environment,
    hello,
    is_root,
    kill_all,
    notes_of,
    refused,
    start,
)
from rtmc.agent.sandbox.hosted import BOOT_CODE, PATIENCE, Hosted, greet, program
from rtmc.errors import SandboxError

__all__ = ["Template", "WarmSandbox"]

TOOLS = template.TOOLS

_templates: dict[tuple[int, tuple[str, ...]], "Template"] = {}
_starting = threading.Lock()


class WarmSandbox(Hosted):
    """A sandbox forked from a template."""

    python = (f"{TOOLS}/warm",)

    def __init__(
        self,
        limits: Limits = Limits(),
        *,
        env: Mapping[str, str] | None = None,
        readable: Sequence[str] = (),
    ) -> None:
        """Start it.

        Args:
            limits: what it may use.
            env: variables besides those of ``environment``.
            readable: as of ``BwrapSandbox``; sandboxes of one process with the same share a
                template.

        Raises:
            SandboxError: bubblewrap is missing or too old, or the kernel does not allow it.
        """
        channel, end = template_of(tuple(readable)).fork(limits, env)
        super().__init__(channel, limits, WORKSPACE, notes_of(limits), end)


class Template:
    """The process that sandboxes are forked from."""

    def __init__(self, readable: Sequence[str] = ()) -> None:
        """Start it, and have it load pytest.

        Args:
            readable: as of ``BwrapSandbox``.

        Raises:
            SandboxError: bubblewrap is missing or too old, or the kernel does not allow it, or
                pytest is not installed.
        """
        boot = ["/usr/bin/env", "PYTHONHASHSEED=0", sys.executable, "-c", BOOT_CODE]
        scripts = _scripts()
        binds = binds_of(readable) | {TOOLS: scripts.name}
        covered = [path for path in binds if path.startswith(("/tmp/", "/workspace/", "/dev/shm/"))]
        process, control = start(Limits(), binds, boot, nests=True)
        first: list[int] = []
        self._process, self._control, self._lock = process, control, threading.Lock()
        self._end = weakref.finalize(self, _end, process, control, first, scripts)
        try:
            control.settimeout(PATIENCE)
            control.sendall(program(template, compiled=True) + _framed(repr(covered).encode()))
            first.append(hello(control))
        except (OSError, EOFError) as error:
            said = self._end() or ""
            if "No module named 'pytest'" in said:
                raise SandboxError(
                    "pytest is not installed beside rtmc, and the sandbox 'warm' is there for it: "
                    "pip install 'rtmc[agent]'"
                ) from error
            raise refused(said, is_root()) from error

    @property
    def alive(self) -> bool:
        """Whether sandboxes can be forked."""
        return self._process.poll() is None

    def fork(
        self, limits: Limits, env: Mapping[str, str] | None
    ) -> tuple[socket.socket, Callable[[], str]]:
        """Fork a sandbox; give the channel to its first process, and what ends it.

        Args:
            limits: what it may use.
            env: variables besides those of ``environment``.

        Raises:
            SandboxError: the template is gone, or the kernel does not allow it.
        """
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        first: list[int] = []
        end = functools.partial(_kill, ours, first)
        try:
            with theirs, self._lock:
                socket.send_fds(self._control, [b"o"], [theirs.fileno()])
            ours.sendall(_framed(b"%d" % limits.disk))
            greet(
                ours,
                limits,
                WORKSPACE,
                warm_environment(env),
                compiled=True,
                bash="/bin/bash",
                kernel_processes=limits.processes + 1 if counts_by_namespace() else None,
                count_files=True,
            )
            first.append(hello(ours))
        except (OSError, EOFError) as error:
            end()
            raise SandboxError(f"the sandbox 'warm' could not start ({error})") from error
        return ours, end


def warm_environment(more: Mapping[str, str] | None) -> dict[str, str]:
    """Make the environment inside."""
    plain = environment(more)
    return plain | {"PATH": f"{TOOLS}:{plain['PATH']}", "PYTHONHASHSEED": "0"}


def template_of(readable: tuple[str, ...]) -> Template:
    """Give the template that this process has for sandboxes that see the same."""
    with _starting:
        key = (os.getpid(), readable)  # a process that was forked needs its own
        if key not in _templates or not _templates[key].alive:
            _templates[key] = Template(readable)
        return _templates[key]


def _scripts() -> tempfile.TemporaryDirectory[str]:
    """Write the programs that are found inside before those of the same names."""
    folder = tempfile.TemporaryDirectory(prefix="rtmc-", ignore_cleanup_errors=True)
    os.chmod(folder.name, 0o755)  # root becomes nobody inside
    asks = f"#!{os.path.realpath(sys.executable)} -IS\n{inspect.getsource(client)}"
    plain = f'exec {shlex.quote(sys.executable)} "$@"\n'
    chooses = f'[ "$1 $2" = "-m pytest" ] && exec {TOOLS}/warm "$@"\n{plain}'
    for name, text in {
        "warm": asks, "pytest": asks, "python": f"#!/bin/sh\n{chooses}",
        "python3": f"#!/bin/sh\n{chooses}", "plain": f"#!/bin/sh\n{plain}",
    }.items():  # fmt: skip
        path = Path(folder.name, name)
        path.write_text(text)
        path.chmod(0o755)
    return folder


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _end(
    process: subprocess.Popen[bytes],
    control: socket.socket,
    first: list[int],
    scripts: tempfile.TemporaryDirectory,
) -> str:
    """End the template, and with it all its sandboxes; give what was said on stderr."""
    said = end_of(process, control, first)
    scripts.cleanup()
    return said


def _kill(channel: socket.socket, first: list[int]) -> str:
    """End a sandbox."""
    channel.close()
    kill_all(first)
    return ""
