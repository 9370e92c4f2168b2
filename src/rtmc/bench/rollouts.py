"""How fast are rollouts? The rules that play ``tiny``, in warm sandboxes.

rollouts   problems × 8 rollouts from open to judged
pytest     one run of a problem's tests in a warm sandbox, against a Python of its own, in turn
"""

import time
from statistics import median
from typing import Any

from rtmc.agent.models.rules import mixed
from rtmc.agent.models.scripted import Scripted
from rtmc.agent.rollout import roll_out
from rtmc.agent.sandbox import open_sandbox
from rtmc.agent.tasks import open_task
from rtmc.bench.speed import machine

__all__ = ["measure", "table"]

N = 8
ROUNDS = 20


def measure(rollouts: int, workers: int) -> dict[str, Any]:
    """Take all figures.

    Args:
        rollouts: how many, in groups of 8.
        workers: as of ``roll_out``.
    """
    task = open_task("tiny", lambda: open_sandbox("warm"))
    problems = task.problems[: -(-rollouts // N)]
    first = time.perf_counter()
    open_sandbox("warm").close()
    began = time.perf_counter()
    made = list(roll_out(task, problems, Scripted(mixed), N, workers=workers))
    took = time.perf_counter() - began
    runs: dict[str, list[float]] = {"warm": [], "fresh": []}
    with task.open(problems[0]) as sandbox:
        for _ in range(ROUNDS):
            runs["warm"].append(sandbox.run("pytest -q").duration)
            runs["fresh"].append(sandbox.run("/run/rtmc/plain -m pytest -q").duration)
    return {
        "machine": machine(),
        "template_s": began - first,
        "rollouts": len(made),
        "seconds": took,
        "steps": sum(len(one.steps) for one in made),
        "passed": sum(one.status == "passed" for one in made),
        "tools": sorted({call.name for one in made for step in one.steps for call in step.calls}),
        "pytest_s": {name: median(seconds) for name, seconds in runs.items()},
        "fresh_to_warm": median(f / w for f, w in zip(runs["fresh"], runs["warm"], strict=True)),
    }


def table(figures: dict[str, Any]) -> list[str]:
    """Write the figures for people."""
    pytest = figures["pytest_s"]
    return [
        f"machine     {figures['machine']}",
        f"template    {figures['template_s']:.2f} s, once",
        f"rollouts    {figures['rollouts']} in {figures['seconds']:.1f} s; "
        f"{figures['passed']} passed",
        f"steps       {figures['steps']} with {', '.join(figures['tools'])}",
        f"pytest      {1e3 * pytest['warm']:.0f} ms warm, {1e3 * pytest['fresh']:.0f} ms in a "
        f"Python of its own: {figures['fresh_to_warm']:.1f} ×",
    ]
