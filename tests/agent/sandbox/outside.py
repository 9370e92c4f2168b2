"""Look at this machine from outside the sandboxes."""

import os
import time
from pathlib import Path


def alive(mark: str) -> list[int]:
    """List the processes of this machine, seen from outside, that have a mark in their command."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path("/proc", name, "cmdline").read_bytes()
            state = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark.encode() in command and state not in "ZX" and int(name) != os.getpid():
            found.append(int(name))
    return found


def gone(mark: str, seconds: float = 20) -> bool:
    """Wait until no process with the mark is left."""
    until = time.monotonic() + seconds
    while alive(mark) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(mark)
