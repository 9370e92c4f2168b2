"""Print how fast a sandbox of bubblewrap is, beside what there is without one, in one run.

start      from nothing to the hello of the process inside, against starting a bare Python
command    in an open shell, against the same in an open bash with pipes
state      the hash of a workspace with 20 small files
many       sandboxes at once, each in a thread: all start, then all run commands
"""

import functools
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

from rtmc.agent.sandbox import Sandbox, open_sandbox
from rtmc.bench.speed import machine

__all__ = ["measure", "table"]

ROUNDS = 40
FILES = {f"src/module_{n}.py": b"def f(x):\n    return x + 1\n" * 30 for n in range(20)}
COMMANDS = {"builtin": "true", "program": "ls >/dev/null", "10 KB": f": {'x' * 10_000}"}


def measure(many: int, kind: str = "bwrap") -> dict[str, Any]:
    """Take all figures.

    Args:
        many: how many sandboxes at once.
        kind: ``bwrap`` or ``warm``.
    """
    opens = functools.partial(open_sandbox, kind)
    opens().close()  # the template of warm ones is made once
    starts, python, ends = [], [], []
    for _ in range(ROUNDS):  # in turn, so that the machine's moods strike all alike
        sandbox, seconds = _timed(opens)
        starts.append(seconds)
        ends.append(_timed(sandbox.close)[1])
        python.append(_timed(_bare_python)[1])
    with opens() as sandbox, _Bash() as bash:
        sandbox.put(FILES)
        states = [_timed(sandbox.state)[1] for _ in range(5 * ROUNDS)]
        commands = {name: _commands(sandbox, bash, line) for name, line in COMMANDS.items()}
    return {
        "machine": machine(),
        "start_s": _spread(starts),
        "bare_python_s": _spread(python),
        "start_to_bare_python": median(a / b for a, b in zip(starts, python, strict=True)),
        "close_s": _spread(ends),
        "commands": commands,
        "state_20_files_s": _spread(states),
        "many": _many(many, opens),
    }


def table(figures: dict[str, Any]) -> list[str]:
    """Write the figures for people."""
    many = figures["many"]
    return [
        f"machine     {figures['machine']}",
        f"start       {_ms(figures['start_s'])} = {figures['start_to_bare_python']:.1f} × a bare "
        f"Python ({_ms(figures['bare_python_s'])})",
        f"close       {_ms(figures['close_s'])}",
        *(
            f"command     {name:<8} {_ms(one['sandbox_s'])}, {1e3 * one['over_bash_s']:+.2f} ms "
            f"over an open bash ({_ms(one['bash_s'])})"
            for name, one in figures["commands"].items()
        ),
        f"state       {_ms(figures['state_20_files_s'])} for 20 small files",
        f"many        {many['sandboxes']} at once: all started after "
        f"{many['all_started_s']:.2f} s, a command takes {_ms(many['command_s'])}",
        "            (median, and 10 to 90 % of the rounds)",
    ]


def _ms(spread: dict[str, float]) -> str:
    low, middle, high = (f"{1e3 * spread[key]:.2f}" for key in ("low", "median", "high"))
    return f"{middle} ms ({low} … {high})"


def _spread(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    tenth = len(ordered) // 10
    return {"low": ordered[tenth], "median": median(ordered), "high": ordered[-1 - tenth]}


def _timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def _bare_python() -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)


class _Bash:
    """A bash that reads commands from a pipe, without any sandbox."""

    def __enter__(self) -> "_Bash":
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return self

    def run(self, command: str) -> None:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{command}\necho $?\n".encode())
        process.stdin.flush()
        process.stdout.readline()

    def __exit__(self, *exc: object) -> None:
        self._process.communicate()


def _commands(sandbox: Sandbox, bash: _Bash, line: str) -> dict[str, Any]:
    ours, theirs = [], []
    for _ in range(5 * ROUNDS):
        ours.append(_timed(lambda: sandbox.run(line))[1])
        theirs.append(_timed(lambda: bash.run(line))[1])
    over = median(a - b for a, b in zip(ours, theirs, strict=True))
    return {"sandbox_s": _spread(ours), "bash_s": _spread(theirs), "over_bash_s": over}


def _many(sandboxes: int, opens: Callable[[], Sandbox]) -> dict[str, Any]:
    with ThreadPoolExecutor(sandboxes) as pool:
        opened, all_started = _timed(lambda: list(pool.map(lambda _: opens(), range(sandboxes))))
        try:
            taken = [
                seconds
                for _ in range(10)
                for _, seconds in pool.map(
                    lambda one: _timed(lambda: one.run("ls >/dev/null")), opened
                )
            ]
        finally:
            list(pool.map(lambda one: one.close(), opened))
    return {"sandboxes": sandboxes, "all_started_s": all_started, "command_s": _spread(taken)}
