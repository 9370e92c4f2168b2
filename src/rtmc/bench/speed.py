"""Print how fast rtmc is, as ratios within one run on one machine.

pipeline   the whole of ``rtmc credit`` in one process less its start-up, against
           ``json.loads`` on the same lines, on an input repeated with every command perturbed
           (so that no cache on the text can help across the copies; within one it can)
uncached   the same with no two commands alike, so that no cache on the text helps at all
doubling   twice the input against once
estimator  512 rollouts × 50 steps, against plain dicts
start-up   ``rtmc --help`` against ``python -c "import click"``
"""

import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import numpy as np

from rtmc.advantages import ESTIMATORS
from rtmc.batch import Batch
from rtmc.returns import discounted_returns

__all__ = ["machine", "measure", "table"]

REPEATS = 5
# A simple command, which may have an assignment in front.
_OPENING = re.compile(r'^\{"command": "(?=[\w./])(?!(?:for|while|until|if|case|function|select)\b)')


def measure(path: str | None, copies: int) -> dict[str, Any]:
    """Take all figures.

    Args:
        path: chat messages as JSON lines; None = made-up rollouts.
        copies: how often the input is repeated.
    """
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(path).read_bytes().splitlines() if path else list(_made_up())
        once, twice = Path(folder, "once.jsonl"), Path(folder, "twice.jsonl")
        once.write_bytes(b"\n".join(_perturbed(lines, copies)) + b"\n")
        twice.write_bytes(b"\n".join(_perturbed(lines, 2 * copies)) + b"\n")
        unlike = Path(folder, "unlike.jsonl")
        unlike.write_bytes(b"\n".join(_perturbed(lines, copies, unlike=True)) + b"\n")
        rows = once.read_bytes().splitlines()
        rounds = []
        for _ in range(REPEATS):  # in turn, so that the machine's moods strike all alike
            loads = _taken(lambda: _load_each(rows))
            rounds.append((loads, *_run(once), _run(twice)[0], _run(unlike)[0]))
        loads, pipeline, memory, doubled, uncached = (
            list(column) for column in zip(*rounds, strict=True)
        )
        size = once.stat().st_size
    return {
        "machine": machine(),
        "input": {"rows": len(lines) * copies, "bytes": size, "copies": copies},
        "json_loads_s": median(loads),
        "pipeline_s": median(pipeline),
        "pipeline_to_json_loads": _ratios(pipeline, loads),
        "uncached_to_json_loads": _ratios(uncached, loads),
        "pipeline_doubled": _ratios(doubled, pipeline),
        "peak_memory_bytes": max(memory),
        "estimators": {name: _estimator(name) for name in ESTIMATORS},
        "start_up_to_import_click": _start_up(),
    }


def table(figures: dict[str, Any]) -> Iterator[str]:
    """Write the figures for people."""
    given = figures["input"]
    yield f"machine     {figures['machine']}"
    yield (
        f"input       {given['rows']} rows, {given['bytes'] / 1e6:.1f} MB, "
        f"{given['copies']} copies, every command perturbed"
    )
    yield (
        f"pipeline    {figures['pipeline_s']:.2f} s = "
        f"{_spread(figures['pipeline_to_json_loads'], 1)} × "
        f"json.loads ({figures['json_loads_s']:.2f} s)"
    )
    yield (
        f"uncached    {_spread(figures['uncached_to_json_loads'], 1)} × json.loads "
        "where no two commands are alike"
    )
    yield f"doubling    {_spread(figures['pipeline_doubled'], 2)} × the time for twice the input"
    yield f"memory      {figures['peak_memory_bytes'] / 1e6:.0f} MB at most"
    sizes = next(iter(figures["estimators"].values()))
    yield f"estimators  on {sizes['rollouts']} rollouts × {sizes['steps']} steps"
    for name, one in figures["estimators"].items():
        yield f"            {name:<21} {one['s'] * 1e3:5.1f} ms{_beside_dicts(one)}"
    yield f"start-up    {figures['start_up_to_import_click']:.2f} × `import click`"


def _beside_dicts(one: dict[str, Any]) -> str:
    if one["dicts_s"] is None:
        return ""
    return f", {one['dicts_s'] / one['s']:.1f} × as fast as plain dicts"


def machine() -> str:
    """Name the machine, without anything that names its owner."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _taken(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _best(run: Callable[[], Any], repeats: int = REPEATS) -> float:
    return min(_taken(run) for _ in range(repeats))


def _ratios(above: list[float], below: list[float]) -> dict[str, float]:
    """Give the median of the ratios round by round, and the smallest and largest."""
    ratios = sorted(a / b for a, b in zip(above, below, strict=True))
    return {"median": median(ratios), "low": ratios[0], "high": ratios[-1]}


def _spread(ratio: dict[str, float], digits: int) -> str:
    low, middle, high = (f"{ratio[key]:.{digits}f}" for key in ("low", "median", "high"))
    return f"{middle} ({low} … {high})"


def _load_each(rows: list[bytes]) -> None:
    """Parse row after row and keep none, as the pipeline does: keeping all costs extra time."""
    for row in rows:
        json.loads(row)


# --- the pipeline ------------------------------------------------------------------------------

_CHILD = """
import resource, sys, time
from rtmc.cli import main
from rtmc.credit import credit
from rtmc.diagnostics import diagnose
from rtmc.formats import read_groups
from rtmc.output import open_writer
from rtmc.report import summary
from rtmc.rollouts import Group, Rollout, Step, ToolCall
call = ToolCall("bash", {"command": "for i in a; do ls; done"})
credit(Group("p", (Rollout("p", "r", (Step((call,)),), 1.0),)))
start = time.perf_counter()
main.main(["credit", sys.argv[1], "-o", sys.argv[1] + ".out.jsonl"], standalone_mode=False)
taken = time.perf_counter() - start
try:  # ru_maxrss would count the parent's memory from before exec
    status = open("/proc/self/status").read()
    peak = int(status.partition("VmHWM:")[2].split()[0])
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(taken, peak * 1024, file=sys.stderr)
"""


def _run(path: Path) -> tuple[float, int]:
    """Run the pipeline in a process of its own: seconds less start-up, and peak memory."""
    child = [sys.executable, "-c", _CHILD, str(path)]
    done = subprocess.run(child, check=True, capture_output=True, text=True)
    seconds, memory = done.stderr.split()
    return float(seconds), int(memory)


def _perturbed(lines: list[bytes], copies: int, unlike: bool = False) -> Iterator[bytes]:
    """Repeat the rows; in every copy each command is another text, of another problem.

    Within a copy equal commands stay equal, as rollouts of one problem share many; ``unlike``
    makes every single command another text.
    """
    number = 0
    for copy in range(copies):
        for line in lines:
            row = json.loads(line)
            row["problem_id"] = f"{row['problem_id']}#{copy}"
            for message in row["messages"]:
                for call in message.get("tool_calls") or ():
                    function = call["function"]
                    number += 1
                    mark = f"RUN={number if unlike else copy} "
                    function["arguments"] = _OPENING.sub(
                        lambda found, mark=mark: found[0] + mark, function["arguments"]
                    )
            yield msgspec.json.encode(row)


def _made_up(problems: int = 32, rollouts: int = 4, steps: int = 21) -> Iterator[bytes]:
    """Make rollouts in the shape of real ones."""
    chance = random.Random(0)
    commands = (
        "ls -la", "cat src/core.py", "sed -n '{a},{b}p' src/core.py", "grep -rn name{a} src/",
        "cd src && python -m pytest tests/test_{c}.py -x 2>&1 | tail -20", "python run_{c}.py",
        "cat <<'EOF' > repro_{c}.py\nimport core\nprint(core.f({a}))\nEOF\npython repro_{c}.py",
        "sed -i 's/return {a}/return {b}/' src/core.py", "git diff", "find . | head -5",
    )  # fmt: skip
    for problem in range(problems):
        for rollout in range(rollouts):
            messages = []
            for step in range(steps):
                a = chance.randrange(1, 900)
                text = chance.choice(commands).format(a=a, b=a + 40, c=chance.randrange(3))
                arguments = json.dumps({"command": text})
                call = {"id": f"c{step}", "type": "function",
                        "function": {"name": "bash", "arguments": arguments}}  # fmt: skip
                output = "\n".join(f"line {i} of what was printed here" for i in range(40))
                code = chance.choice((0, 0, 0, 1))
                messages += [
                    {"role": "assistant", "content": "Let me look.", "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": f"c{step}",
                     "content": f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>"},
                ]  # fmt: skip
            row = {"problem_id": f"problem-{problem}", "rollout_id": f"run-{rollout}",
                   "reward": float(chance.random() < 0.5), "messages": messages}  # fmt: skip
            yield json.dumps(row).encode()


# --- estimators alone --------------------------------------------------------------------------


def _estimator(name: str, rollouts: int = 512, steps: int = 50, group: int = 8) -> dict[str, Any]:
    chance = np.random.default_rng(0)
    size = rollouts * steps
    of_step = np.repeat(np.arange(rollouts), steps)
    problem = of_step // group
    time_of_step = np.tile(np.arange(steps), rollouts)
    spread = 1 + time_of_step // 4
    states = problem * 10_000 + time_of_step * 100 + (chance.random(size) * spread).astype(int)
    actions = (chance.random(size) * 4).astype(int)
    starts = np.arange(rollouts + 1) * steps
    outcomes = (chance.random(rollouts) < 0.5).astype(float)
    rewards = np.zeros(size)
    rewards[starts[1:] - 1] = outcomes
    estimator = ESTIMATORS[name]()
    levels = max(len(estimator.reads.levels), 1)
    standing = (time_of_step // 8 + of_step) % 4
    returns = discounted_returns(rewards, starts, 0.99)
    batch = Batch(
        group_of_rollout=np.arange(rollouts) // group,
        rollout_of_step=of_step,
        starts=starts,
        states=np.repeat(states[:, None], levels, axis=1),
        actions=np.repeat(actions[:, None], levels, axis=1),
        outcomes=outcomes,
        rewards=rewards,
        returns=returns,
        step_rewards=np.zeros(size),
        discount=0.99,
        observations=states,
        progress=(standing[:, None] == np.arange(4)).astype(float),
    )
    shape = (rollouts, steps)
    keys = (states.reshape(shape).tolist(), actions.reshape(shape).tolist())
    tables = (*keys, returns.reshape(shape).tolist(), outcomes.tolist())
    return {
        "s": _best(lambda: estimator(batch), 10),
        "dicts_s": _best(lambda: _DICTS[name](*tables, group)) if name in _DICTS else None,
        "rollouts": rollouts,
        "steps": steps,
    }


_Rows = list[list[float]]


def _dicts_rtmc(states: _Rows, actions: _Rows, returns: _Rows, outcomes: list, group: int) -> _Rows:
    """RTMC with plain dicts, as a trainer's own loop would have it."""
    advantages: _Rows = []
    for start in range(0, len(states), group):
        members = range(start, start + group)
        success = sum(outcomes[i] for i in members) / group
        table: dict[float, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
        for i in members:
            seen = set()
            for s, a, g in zip(states[i], actions[i], returns[i], strict=True):
                if (s, a) not in seen:
                    seen.add((s, a))
                    table[s][a].append(g)
        q = {(s, a): sum(g) / len(g) for s, of in table.items() for a, g in of.items()}
        v = {}
        for s, of in table.items():
            visits = sum(len(g) for g in of.values())
            v[s] = (sum(sum(g) for g in of.values()) + 2 * success) / (visits + 2)
        for i in members:
            seen = set()
            row = []
            for s, a in zip(states[i], actions[i], strict=True):
                value = q[s, a] - v[s]
                row.append(min(0.0, value) if (s, a) in seen else value)
                seen.add((s, a))
            advantages.append(row)
    return advantages


def _dicts_grpo(states: _Rows, actions: _Rows, returns: _Rows, outcomes: list, group: int) -> _Rows:
    advantages: _Rows = []
    for start in range(0, len(states), group):
        r = outcomes[start : start + group]
        mean = sum(r) / group
        std = (sum((x - mean) ** 2 for x in r) / group) ** 0.5 + 1e-6
        advantages += [[(x - mean) / std for _ in states[start]] for x in r]
    return advantages


def _dicts_grpo_step(
    states: _Rows, actions: _Rows, returns: _Rows, outcomes: list, group: int
) -> _Rows:
    advantages: _Rows = []
    for start in range(0, len(states), group):
        rows = returns[start : start + group]
        every = [g for row in rows for g in row]
        mean = sum(every) / len(every)
        std = (sum((g - mean) ** 2 for g in every) / len(every)) ** 0.5 + 1e-6
        advantages += [[(g - mean) / std for g in row] for row in rows]
    return advantages


_DICTS = {"rtmc": _dicts_rtmc, "grpo": _dicts_grpo, "grpo_step": _dicts_grpo_step}


# --- start-up ----------------------------------------------------------------------------------


def _start_up() -> float:
    """Compare ``rtmc --help`` with importing click, run in turn."""
    ours, theirs = [], []
    for _ in range(7):
        for taken, command in (
            (ours, ["-m", "rtmc.cli", "--help"]),
            (theirs, ["-c", "import click"]),
        ):
            start = time.perf_counter()
            subprocess.run([sys.executable, *command], check=True, capture_output=True)
            taken.append(time.perf_counter() - start)
    return sorted(ours)[3] / sorted(theirs)[3]
