"""The options that commands share, and what is made of them: a reader and a config."""

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from rtmc.errors import OptionError, OutputError

if TYPE_CHECKING:
    from rtmc.config import Config
    from rtmc.formats import GroupReader
    from rtmc.rollouts import Group

__all__ = [
    "config_options",
    "make_config",
    "make_reader",
    "print_skipped",
    "progress",
    "reading_options",
]

SHOWN_SKIPPED = 20


class _Late(click.ParamType):
    """A choice whose values are looked up only when it is used."""

    name = "choice"

    def __init__(self, metavar: str, values: Callable[[], Iterable[str]]) -> None:
        self.metavar = metavar
        self.values = values

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return self.metavar

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        known = list(self.values())
        if value not in known:
            self.fail(f"{value!r} is not one of {', '.join(known)}", param, ctx)
        return value


def _estimator_names() -> Iterable[str]:
    from rtmc.advantages import ESTIMATORS

    return ESTIMATORS


def _format_names() -> Iterable[str]:
    from rtmc.formats import FORMATS

    return FORMATS


def _options(*decorators: Callable[..., Any]) -> Callable[..., Any]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


_NONE = "none"


def _count_or_none(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> int | str | None:
    if value is None or value == _NONE:
        return value
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor none") from None


def _reading(format_flag: str) -> Callable[..., Any]:
    """Make the options of what is read; a command that writes formats calls that one otherwise."""
    return _options(
        click.argument("inputs", nargs=-1, required=True, metavar="INPUT..."),
        click.option(format_flag, "format_", type=_Late("NAME", _format_names),
                     help="Read every file in this format (`rtmc formats` lists them)."),
        click.option("--outcomes", multiple=True, metavar="PATH",
                     help="Outcomes by id: report.json, results.json, CSV … Repeatable."),
        click.option("--group-by", type=click.Choice(["problem", "problem,model"]),
                     default="problem", show_default=True, help="What makes a group."),
        click.option("--grouped", is_flag=True,
                     help="Promise that the rows of a problem are adjacent: one pass, no index."),
    )  # fmt: skip


reading_options = _reading("--format")
reading_options_for_pictures = _reading("--input-format")

config_options = _options(
    click.option("--preset", type=click.Choice(["paper"]),
                 help="The paper's settings: max-bonuses none, repeats paper, hash-chars 4, "
                      "normalize problem. A flag given beside it wins."),
    click.option("--estimator", type=_Late("NAME", _estimator_names), default="rtmc",
                 show_default=True,
                 help="grpo, dr_grpo, rloo, reinforce_pp_baseline, maxrl, grpo_step, mt_grpo, "
                      "rtmc, gigpo, hgpo, salt, graft, g2po, tempo, pooled_gae, graph_gae, "
                      "chain_gae."),
    click.option("--level", metavar="LEVEL", default="paper", show_default=True,
                 help="root, work, content, coarse, paper, full; exact (of rtmc rollout); "
                      "or a chain, as in content,paper."),
    click.option("--gamma", type=float, default=0.99, show_default=True, help="Discount per step."),
    click.option("--n-prior", type=float, help="Weight of the prior, in visits.  [rtmc: 2]"),
    click.option("--prior", type=click.Choice(["success_rate", "discounted", "none"]),
                 help="What V is pulled to.  [rtmc: success_rate]"),
    click.option("--repeats", type=click.Choice(["first", "paper"]),
                 help="Credit of a repeated step.  [rtmc: first]"),
    click.option("--leave-one-out/--no-leave-one-out", default=None,
                 help="Leave a rollout's own return out of its baseline.  [rtmc: no]"),
    click.option("--std", type=click.Choice(["population", "sample", "none"]),
                 help="Deviation to divide by.  [grpo, grpo_step: population]"),
    click.option("--param", "params", multiple=True, metavar="NAME=VALUE",
                 help="Any option of the estimator. Repeatable."),
    click.option("--beta", type=float, default=0.05, show_default=True,
                 help="Reward for the first validation after a code change."),
    click.option("--max-bonuses", callback=_count_or_none, default="1", show_default=True,
                 metavar="N|none", help="How often a rollout can earn it."),
    click.option("--normalize", type=click.Choice(["none", "problem"]), default="none",
                 show_default=True, help="Divide by the deviation of the problem's advantages."),
    click.option("--incomplete", type=click.Choice(["fail", "exclude", "mask"]), default="fail",
                 show_default=True,
                 help="Rollouts that a limit stopped: count as failures; leave out; let vote "
                      "without credit."),
    click.option("--fail-reward", type=float, default=0.0, show_default=True,
                 help="Reward of a rollout that counts as a failure."),
    click.option("--unknown", type=click.Choice(["exclude", "fail"]), default="exclude",
                 show_default=True, help="Rollouts of unknown outcome."),
    click.option("--hash-chars", type=click.IntRange(1, 16), default=16, show_default=True,
                 help="Hex digits of a digest that are compared."),
)  # fmt: skip

_ESTIMATOR_FLAGS = ("n_prior", "prior", "repeats", "leave_one_out", "std")


def make_config(given: dict[str, Any]) -> "Config":
    """Make the settings from the flags; those that were typed win over the preset."""
    from rtmc.config import Config, estimator_of

    context = click.get_current_context()

    def typed(name: str) -> bool:
        return context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE

    paper = given["preset"] == "paper"
    values: dict[str, Any] = {}
    if paper and given["estimator"] == "rtmc":
        values["repeats"] = "paper"
    values |= {name: given[name] for name in _ESTIMATOR_FLAGS if given[name] is not None}
    for param in given["params"]:
        name, equals, value = param.partition("=")
        name = name.replace("-", "_")
        if not equals:
            raise OptionError(f"--param {param}: expected NAME=VALUE")
        if given.get(name) is not None:
            raise OptionError(f"{name} is given twice: by --param and by its own flag")
        values[name] = value
    if values.get("prior") == "none" and "n_prior" in values:
        raise OptionError("n_prior has no effect with prior none; leave one of them out")
    estimator = estimator_of(given["estimator"], values)
    bonuses = None if given["max_bonuses"] == _NONE else given["max_bonuses"]
    changes: dict[str, Any] = {
        "level": given["level"],
        "gamma": given["gamma"],
        "beta": given["beta"],
        "max_bonuses": bonuses,
        "normalize": given["normalize"],
        "incomplete": given["incomplete"],
        "fail_reward": given["fail_reward"],
        "unknown": given["unknown"],
        "hash_chars": given["hash_chars"],
    }
    if paper:
        changes = {name: value for name, value in changes.items() if typed(name)}
        config = Config.paper(estimator=estimator, **changes)
    else:
        config = Config(estimator=estimator, **changes)
    config.signer()  # refuses unknown levels before anything is read
    return config


def make_reader(given: dict[str, Any]) -> "GroupReader":
    """Open the inputs as the flags say."""
    from rtmc.formats import read_groups

    return read_groups(
        list(given["inputs"]),
        format=given["format_"],
        outcomes=list(given["outcomes"]),
        group_by=given["group_by"],
        grouped=given["grouped"],
    )


def print_skipped(reader: "GroupReader") -> None:
    """Name the records that were not read, and why."""
    skipped = reader.report.skipped
    for entry in skipped[:SHOWN_SKIPPED]:
        click.echo(f"skipped {entry}", err=True)
    if len(skipped) > SHOWN_SKIPPED:
        click.echo(f"skipped {len(skipped) - SHOWN_SKIPPED} more (--json lists all)", err=True)


def progress(reader: "GroupReader", quiet: bool = False) -> "Iterable[Group]":
    """Show a progress bar on a terminal."""
    if quiet or not sys.stderr.isatty():
        return reader
    from tqdm import tqdm

    return tqdm(reader, total=reader.total, unit=" groups", leave=False, file=sys.stderr)


def refuse_input(output: str | None, inputs: Iterable[str]) -> None:
    """Refuse to write onto what is read."""
    for path in inputs:
        try:
            same = output is not None and os.path.samefile(output, path)
        except OSError:  # there is no such file yet
            continue
        if same:
            raise OutputError(f"{output} is among the inputs; choose another -o")
