"""``rtmc rollout``: attempt problems, N times each, and keep what happened."""

import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from rtmc.errors import OptionError, RolloutError

if TYPE_CHECKING:
    from rtmc.agent.models import Model
    from rtmc.agent.rollout import Place
    from rtmc.agent.tasks import Problem, Task
    from rtmc.rollouts import Rollout

__all__ = ["making_options", "rollout"]


def making_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of commands that make rollouts."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS = (
    click.option("--task", required=True, metavar="TASK",
                 help="tiny, tiny:KNOB=VALUE,…, seeded:FOLDER, r2e-gym:FILE or swe-bench:FILE."),
    click.option("--problems", type=click.IntRange(1), default=4, show_default=True,
                 help="How many."),
    click.option("--skip", type=click.IntRange(0), default=0, show_default=True,
                 help="So many of the task's first problems."),
    click.option("--model", required=True, metavar="MODEL",
                 help="scripted (plays tiny by rules, with mistakes), openai:NAME or hf:NAME."),
    click.option("-n", "--rollouts", "n", type=click.IntRange(1), default=8, show_default=True,
                 help="Of each problem."),
    click.option("--seed", type=int, default=0, show_default=True, help="Of what is sampled."),
    click.option("--base-url", metavar="URL", help="Of the endpoint of openai:NAME.  "
                 "[OPENAI_BASE_URL, or http://localhost:8000/v1]"),
    click.option("--temperature", type=click.FloatRange(0), default=1.0, show_default=True),
    click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), default=1.0,
                 show_default=True),
    click.option("--max-tokens", type=click.IntRange(1), default=1024, show_default=True,
                 help="Of one turn."),
    click.option("--max-steps", type=click.IntRange(1), default=40, show_default=True,
                 help="Turns of a rollout."),
    click.option("--max-length", type=click.IntRange(1), default=32_768, show_default=True,
                 help="Tokens of a rollout."),
    click.option("--max-seconds", type=click.FloatRange(0, min_open=True), default=1800.0,
                 show_default=True, help="Of a rollout."),
    click.option("--sandbox", metavar="KIND", help="bwrap, warm, docker or local (unsafe: it "
                 "keeps nothing in).  [warm; docker for images]"),
    click.option("--memory", type=click.IntRange(16), default=1024, show_default=True,
                 help="MiB that a sandbox may use."),
    click.option("--workers", type=click.IntRange(1), default=8, show_default=True,
                 help="Sandboxes that work at the same time."),
    click.option("--at-once", type=click.IntRange(1), default=64, show_default=True,
                 help="Rollouts that the model is asked to go on with at once."),
)  # fmt: skip


@click.command(
    epilog="Examples:\n\n"
    "\b\n"
    "  rtmc rollout --task tiny --model scripted -o rollouts.jsonl\n"
    "  rtmc rollout --task tiny:depth=2,cue=function --problems 100 --model hf:FOLDER -o r.jsonl\n"
    "  rtmc rollout --task seeded:problems --model openai:NAME --base-url URL -n 8 -o r.jsonl\n"
    "  rtmc credit rollouts.jsonl && rtmc report rollouts.jsonl -o report.html"
)
@making_options
@click.option("--keep-errors", is_flag=True, help="Write FILE also if rollouts ended with an error "
              "that is not the agent's.  [the same command tries them again]")  # fmt: skip
@click.option("-o", "--output", required=True, metavar="FILE",
              help="Write the rollouts there. A command that was stopped goes on when it is given "
              "again.")  # fmt: skip
def rollout(output: str, keep_errors: bool, **given: Any) -> None:
    """Attempt problems N times each, in a sandbox, and let their tests decide.

    Every step is kept with its calls, what came back, the exact tokens and log-probabilities
    where the model gives them, and a hash of the workspace. `rtmc credit`, `rtmc report` and
    `rtmc evaluate` read the file. Needs the extra `agent`, and `hf` for hf:NAME.
    """
    from rtmc.agent.journal import Journal, refuse_existing
    from rtmc.agent.tasks import sandbox_for

    refuse_existing(output)
    given["sandbox"] = given["sandbox"] or sandbox_for(given["task"])
    task, problems, model = made_of(given)
    settings = {name: value for name, value in given.items() if name not in _NO_DIFFERENCE}
    with Journal(output, settings) as journal:
        done = journal.done | (journal.errors if keep_errors else set())
        try:
            for one in roll_out_all(task, problems, model, done, given):
                journal.add(one)
        except KeyboardInterrupt:
            click.echo(
                f"stopped; {len(journal.done)} rollouts are kept in {journal.path}, and the same "
                "command goes on",
                err=True,
            )
            raise SystemExit(130) from None
        wanted = [(p.problem_id, str(k)) for p in problems for k in range(given["n"])]
        tally = Tally()
        for one in journal.read(wanted):
            tally.add(one)
        for line in tally.lines(len(problems)):
            click.echo(line)
        if tally.errors_of_ours and not keep_errors:
            raise RolloutError(
                f"{tally.errors_of_ours} of {len(wanted)} rollouts ended with an error that is not "
                f"the agent's; all are kept in {journal.path}. The same command tries those again; "
                "with --keep-errors it writes them as they are"
            )
        journal.finish(wanted)
    click.echo(f"  {'written':<12}{output}")
    click.echo(f"  {'next':<12}rtmc report {output} -o report.html")


_NO_DIFFERENCE = ("base_url", "workers", "at_once", "problems", "skip", "n")
"""Options that may differ when a run goes on: no rollout hangs on them."""


def made_of(given: dict[str, Any]) -> "tuple[Task, Sequence[Problem], Model]":
    """Make task, problems and model of the options.

    Raises:
        OptionError: they do not fit together.
    """
    from rtmc.agent.models import Sampling, open_model
    from rtmc.agent.tasks import TASKS, open_problems

    kind = given["task"].partition(":")[0]
    if kind in TASKS and given["model"] == "scripted" and kind != "tiny":
        raise OptionError(f"the model scripted plays tiny only, not {kind}")
    task, problems = open_problems(
        given["task"], given["sandbox"], given["memory"], given["skip"], given["problems"]
    )
    if len(problems) < given["problems"]:
        click.echo(f"{given['task']} has only {len(problems)} of the {given['problems']}", err=True)
    endpoint = {"base_url": given["base_url"], "concurrency": given["at_once"]}
    sampling = Sampling(given["temperature"], given["top_p"], given["max_tokens"])
    options = endpoint if given["model"].startswith("openai:") else {}
    return task, problems, open_model(given["model"], sampling, **options)


def roll_out_all(
    task: "Task",
    problems: "Sequence[Problem]",
    model: "Model",
    done: "Set[Place]",
    given: dict[str, Any],
) -> "Iterator[Rollout]":
    """Make the rollouts that are missing, and show how far it is."""
    from rtmc.agent.loop import Limits
    from rtmc.agent.rollout import roll_out

    total = len(problems) * given["n"]
    with _bar(total, len(done)) as show:
        rollouts = roll_out(
            task,
            problems,
            model,
            given["n"],
            seed=given["seed"],
            limits=Limits(given["max_steps"], given["max_length"], given["max_seconds"]),
            workers=given["workers"],
            at_once=given["at_once"],
            lockstep=not given["model"].startswith("openai:"),
            done=done,
        )
        for one in rollouts:
            show(one)
            yield one


@contextmanager
def _bar(total: int, done: int) -> "Generator[Callable[[Rollout], None]]":
    """Count rollouts on a terminal: passes, steps a second, failures."""
    from tqdm import tqdm

    tally, began = Tally(), time.monotonic()
    hidden = not sys.stderr.isatty()
    with tqdm(total=total, initial=done, unit=" rollouts", leave=False, file=sys.stderr,
              disable=hidden) as bar:  # fmt: skip

        def show(one: "Rollout") -> None:
            tally.add(one)
            pace = tally.steps / max(1e-9, time.monotonic() - began)
            words = f"{tally.passed} passed, {tally.failed} failed, {pace:.0f} steps/s"
            bar.set_postfix_str(words + (f", {tally.errors} errors" if tally.errors else ""))
            bar.update()

        yield show


class Tally:
    """Counts rollouts."""

    def __init__(self) -> None:
        self.rollouts = self.steps = self.passed = self.failed = self.incomplete = self.errors = 0
        self.errors_of_ours = 0
        self.why: dict[str, int] = {}

    def add(self, one: "Rollout") -> None:
        """Count one more."""
        self.rollouts += 1
        self.steps += len(one.steps)
        self.passed += one.status == "passed"
        self.failed += one.status == "failed"
        self.incomplete += one.status == "incomplete"
        self.errors += one.status == "unknown"
        self.errors_of_ours += (one.stop_reason or "").startswith("error:")
        if one.status == "unknown":
            why = (one.stop_reason or "")[:200]
            self.why[why] = self.why.get(why, 0) + 1

    def lines(self, problems: int) -> Iterator[str]:
        """Say what there is."""
        judged = self.rollouts - self.errors
        yield f"{_counted(self.rollouts, 'rollout')} of {_counted(problems, 'problem')}"
        if judged:
            yield f"  {'passed':<12}{self.passed} of {judged} ({100 * self.passed / judged:.0f} %)"
        if self.incomplete:
            yield f"  {'incomplete':<12}{self.incomplete} (a limit stopped them)"
        if self.errors:
            yield f"  {'no outcome':<12}{self.errors}"
            for why, count in sorted(self.why.items(), key=lambda item: -item[1])[:5]:
                yield f"  {'':<12}{count} × {why}"
        yield f"  {'steps':<12}{self.steps / max(1, self.rollouts):.1f} a rollout"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
