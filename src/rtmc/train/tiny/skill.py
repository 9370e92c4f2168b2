"""What a policy can do on ``tiny``: how often it solves, and where its changes go.

    python -m rtmc.train.tiny.skill --model hf:tiny

A rollout's patch says which files and lines it changed; what was wrong is known.
"""

import functools
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

import click
import msgspec

from rtmc.agent.loop import Limits
from rtmc.agent.models import Sampling, open_model
from rtmc.agent.rollout import roll_out
from rtmc.agent.sandbox import open_sandbox
from rtmc.agent.tasks import Part, Problem, open_task
from rtmc.evaluation.rates import mean_over_problems, pass_at_k
from rtmc.rollouts import Rollout

__all__ = ["Skill", "skill_of"]

LIMITS = Limits(steps=16, tokens=900)
"""Those of the preset ``tiny``."""


class Skill(msgspec.Struct, frozen=True):
    """Shares of rollouts, but for the second and the last.

    Attributes:
        solved: passed, with the 95 % interval over problems.
        interval: of it.
        changed: changed some file.
        right_file: changed the file with the fault.
        right_line: changed the line with the fault.
        right_fix: wrote there what should stand there, and changed nothing else.
        mixed: share of problems that some rollouts solve and others do not.
    """

    solved: float
    interval: tuple[float, float]
    changed: float
    right_file: float
    right_line: float
    right_fix: float
    mixed: float


def skill_of(problems: Sequence[Problem], rollouts: Iterable[Rollout]) -> Skill:
    """Measure rollouts of tiny problems, as many of each.

    Args:
        problems: with the facts that the task gives.
        rollouts: of them, with patches.
    """
    facts = {problem.problem_id: problem.facts for problem in problems}
    count, passed, n = Counter[str](), Counter[str](), Counter[str]()
    for one in rollouts:
        known = facts[one.problem_id]
        n[one.problem_id] += 1
        passed[one.problem_id] += one.status == "passed"
        removed, added = _changes(one.patch or "")
        place, wrong = known["file"], known["wrong"].rstrip()
        count["changed"] += bool(removed or added)
        count["file"] += any(path == place for path, _ in removed)
        count["line"] += (place, wrong) in removed
        fixed = removed == [(place, wrong)] and len(added) == 1
        count["fix"] += fixed and added[0] == (place, known["right"].rstrip())
    total = sum(n.values())
    rates = [pass_at_k(n[name], passed[name], 1) for name in facts]
    figure = mean_over_problems(rates, [n[name] for name in facts])
    return Skill(
        figure.value or 0.0,
        (figure.low or 0.0, figure.high or 0.0),
        *(count[what] / total for what in ("changed", "file", "line", "fix")),
        sum(0 < passed[name] < n[name] for name in facts) / len(facts),
    )


Lines = list[tuple[str, str]]


def _changes(patch: str) -> tuple[Lines, Lines]:
    """List the lines that a patch removes and adds, with their files."""
    removed: Lines = []
    added: Lines = []
    path = ""
    for line in patch.splitlines():
        if line.startswith(("--- ", "+++ ")):
            path = line[4:].partition("/")[2] or path
        elif line.startswith("-"):
            removed.append((path, line[1:].rstrip()))
        elif line.startswith("+"):
            added.append((path, line[1:].rstrip()))
    return removed, added


@click.command()
@click.option("--model", required=True, help="As of rtmc rollout.")
@click.option("--task", default="tiny:split=test", show_default=True)
@click.option("--problems", default=500, show_default=True)
@click.option("--skip", default=1000, show_default=True,
              help="Left out at the start: other commands choose by those.")  # fmt: skip
@click.option("-n", "--rollouts", "n", default=8, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(model: str, task: str, problems: int, skip: int, n: int, seed: int) -> None:
    """Measure what a policy can do on tiny."""
    from tqdm import tqdm

    opened = open_task(task, functools.partial(open_sandbox, "warm"))
    chosen = Part(opened.problems, range(skip, skip + problems))
    policy = open_model(model, Sampling(max_tokens=40))
    made = roll_out(opened, chosen, policy, n, seed=seed, limits=LIMITS)
    bar = tqdm(made, total=problems * n, disable=not sys.stderr.isatty(), file=sys.stderr)
    skill = skill_of(chosen, bar)
    click.echo(
        f"problems {skip} to {skip + problems - 1} × {n} rollouts of {task} by {model}, seed {seed}"
    )
    low, high = skill.interval
    click.echo(f"  solved          {skill.solved:.3f}  [{low:.3f}, {high:.3f}]")
    for name in ("changed", "right_file", "right_line", "right_fix"):
        click.echo(f"  {name.replace('_', ' '):<14}  {getattr(skill, name):.3f}")
    click.echo(f"  mixed groups    {skill.mixed:.3f}")


if __name__ == "__main__":
    main()
