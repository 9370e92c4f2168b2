"""Write what ``rtmc diagnose`` found, section by section, for people."""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from rtmc.config import Config
from rtmc.guidance import Guidance, Measured
from rtmc.guidance.measured import FEW_GROUPS
from rtmc.guidance.prediction import Levels

__all__ = ["lines"]

INDENT = 2
COLUMN = 15
FEWEST = 3
"""An error from two groups is no error."""


def lines(found: Guidance, config: Config) -> Iterator[str]:
    """Write every section: its figures ± standard error over groups, and what they mean."""
    sections = (
        ("What there is", _signal(found)),
        ("Overlap: share of later steps whose state two rollouts or more reached", _overlap(found)),
        ("Support: how many rollouts stand behind a credit (share of steps)", _support(found)),
        ("Luck: standard error of an advantage, and deviation of the advantages", _noise(found)),
        ("Level: error of predicting a return from its state, share of it saved", _levels(found)),
        ("Lambda (pooled_gae, graph_gae): do others' credits foretell a return?", _lambdas(found)),
        ("More rollouts, or a coarser level? Share of that error saved", _growth(found)),
        ("Validation bonus: who earns it", _bonus(found, config)),
        ("Length: what it does to outcome and credit", _length(found)),
    )
    for title, body in sections:
        yield title
        for line in body:
            yield " " * INDENT + line
        yield ""
    yield "What to do"
    for number, line in enumerate(found.advice, start=1):
        yield from _wrapped(f"{number}. ", line)


def _signal(found: Guidance) -> Iterator[str]:
    s = found.signal
    low, middle, high = s.per_group
    sizes = f"{low}" if low == high else f"{low} to {high}, median {middle:g}"
    yield f"rollouts       {s.voting} of {s.rollouts} with a known outcome, {sizes} a group"
    rest = (
        (s.uniform, "uniform"),
        (s.singletons, "of one rollout"),
        (s.empty, "without a known outcome"),
    )
    dead = ", ".join(f"{count} {what}" for count, what in rest if count)
    yield f"groups         {s.groups}: {s.live} of mixed outcome" + (f"; {dead}" if dead else "")
    yield f"with signal    {_of(s.share)} of the rollouts are in groups of mixed outcome"
    if s.live == 1:
        yield from _so("One group: no figure below can be given an error, and none is firm.")
    elif s.live < FEW_GROUPS:
        yield from _so(f"{s.live} groups of mixed outcome: every figure below is weak.")
    else:
        yield from _so("Only these get credit; everything from Support on is about them.")


def _overlap(found: Guidance) -> Iterator[str]:
    ranges = next(iter(found.overlap.values())).by_step_index
    yield _row("level", ["all", *ranges])
    for name, one in found.overlap.items():
        yield _row(name, [one.share, *one.by_step_index.values()])
    own = found.overlap[found.levels.own]
    thin = [name for name, share in own.by_step_index.items() if share.value < 0.25]
    if thin:
        yield from _so(
            f"At level {found.levels.own} rollouts hardly meet at steps {', '.join(thin)}: credit "
            "there rests on single rollouts and the prior."
        )
    else:
        yield from _so(f"At level {found.levels.own} rollouts meet at all distances.")


def _support(found: Guidance) -> Iterator[str]:
    s = found.support
    yield _row("rollouts", s.behind_q)
    yield _row("behind Q(s,a)", s.behind_q.values())
    yield _row("behind V(s)", s.behind_v.values())
    yield _row("step index", s.q_alone)
    yield _row("Q of one alone", s.q_alone.values())
    yield from _so(
        f"The median credit rests on {_rollouts(s.median_q)}. In {_of(s.no_choice)} of the steps "
        "no other rollout did anything else in the state: such a step is compared with the prior, "
        "not with another choice."
    )


def _noise(found: Guidance) -> Iterator[str]:
    n = found.noise
    yield _row("step index", ["steps", "error", "deviation", "signal"])
    for name, one in {"all": n.total, **n.by_step_index}.items():
        if one.steps:
            mark = "" if one.own else " ~"
            yield _row(name + mark, [str(one.steps), one.error, one.deviation, one.signal])
    shared = all(one.own for one in (n.total, *n.by_step_index.values()) if one.steps)
    if n.total.error.known and not shared:
        yield "~ too few shared steps to see the luck; it is taken from all steps together"
    signal = n.total.signal
    if not n.total.error.known:
        yield from _so(
            "No two rollouts did the same in the same state, so that their luck cannot be seen: "
            "any part of these advantages may be luck."
        )
        return
    if not signal.known:
        yield from _so("All rollouts did the same: there is nothing to tell apart.")
        return
    yield from _so(
        f"Of the variance of the advantages {_of(signal)} is signal, the rest luck of the "
        f"outcomes. Behind {n.assumed:.2f} of the steps stands one rollout, whose luck cannot be "
        "seen and is assumed: where outcomes are settled by then, there is less."
    )


def _levels(found: Guidance) -> Iterator[str]:
    of = found.levels
    yield _row("level", ["error", "saved", f"over {of.own}"])
    yield _row("no states", [_fine(of.prior_error)])
    for name, one in of.by_level.items():
        over = [] if name == of.own else [_fine(one.over_own)]
        yield _row(name, [_fine(one.error), _fine(one.saved), *over])
    yield from _so(_about_levels(of))


def _about_levels(of: Levels) -> str:
    best = of.by_level[of.best]
    if of.better:
        return f"Take {of.best}: what it saves over {of.own} exceeds the noise."
    if of.best == of.own:
        return f"Keep {of.own}: no level predicts better."
    why = (
        f"{best.over_own.groups} group{'s' * (best.over_own.groups != 1)} cannot tell"
        if best.over_own.weak
        else "that is within the noise"
    )
    return f"Keep {of.own}: {of.best} saves {_fine(best.over_own)} more, but {why}."


def _lambdas(found: Guidance) -> Iterator[str]:
    of = found.lambdas
    yield _row("lambda", of.correlation)
    yield _row("correlation", of.correlation.values())
    yield _row("over 0.5", ["" if name == "0.5" else m for name, m in of.over_default.items()])
    judged = f"{of.steps} step{'s' * (of.steps != 1)} can be judged ({_of(of.share)} of all)"
    if of.better:
        yield from _so(f"Take {of.best:g}: it beats 0.5 beyond the noise; {judged}.")
    else:
        groups = of.over_default["1"].groups
        yield from _so(
            f"The data cannot tell; keep 0.5: {judged}, in {groups} group{'s' * (groups != 1)}."
        )


def _growth(found: Guidance) -> Iterator[str]:
    g, s = found.growth, found.support
    yield f"all the others instead of half   {_fine(g.from_half)}"
    yield f"twice as many, if that goes on   {_fine(g.by_doubling)}"
    yield f"  the same for p alone           {_fine(g.by_rate)}"
    if g.coarser:
        yield f"{'level ' + g.coarser + ' instead':<32} {_fine(g.by_coarser)}"
    more = s.shared.value - s.shared_at_half.value
    yield (
        f"steps with two rollouts behind Q {s.shared_at_half.value:.2f} with half, "
        f"{s.shared.value:.2f} with all, about {min(s.shared.value + more, 1):.2f} with twice that"
    )
    less = Measured(-g.difference.value, g.difference.error, g.difference.groups)
    if g.coarser is None:
        yield from _so("No level overlaps more than this one: only more rollouts help.")
    elif g.difference.exceeds(0.0):
        yield from _so(f"More rollouts help more than the level {g.coarser}.")
    elif less.exceeds(0.0):
        yield from _so(f"The level {g.coarser} helps more than twice as many rollouts.")
    else:
        yield from _so("The data cannot tell which of the two helps more.")
    if s.median_q < 2 and s.shared.value + more < 0.5:
        yield from _so(
            "A median of two rollouts behind a credit is further away than one doubling; how far "
            "cannot be told from these rollouts."
        )


def _bonus(found: Guidance, config: Config) -> Iterator[str]:
    b = found.bonus
    yield _row("", ["passing", "failing"])
    yield _row("validations", [b.passing, b.failing])
    yield _row("bonus paid", [_fine(b.paid_passing), _fine(b.paid_failing)])
    yield f"failing − passing, same problem: {_of(b.failing_more)} validations a rollout"
    yield f"share of the reward that is bonus: {_fine(b.share_of_reward)}"
    yield f"how far it moves the advantages: {_fine(b.share_of_advantage)} of their size"
    if b.passing.value == 0 and b.failing.value == 0:
        yield from _so("No rollout validates a change of code: there is no bonus to earn.")
        return
    if b.failing_more.exceeds(0.0):
        yield from _so("Failing rollouts validate more than passing ones: the bonus pays failures.")
    elif b.failing_more.weak:
        yield from _so("Too few groups to tell whether failing rollouts earn more of it.")
    else:
        yield from _so("No sign that failing rollouts earn more of it.")
    if b.over_half and config.max_bonuses is None:
        yield from _so(
            f"It pays up to {b.largest_unlimited:.2f}, more than half of an outcome to "
            f"{b.over_half} rollouts: it can be farmed."
        )
    elif config.beta:
        bound = (
            "" if config.max_bonuses is None else f"--max-bonuses {config.max_bonuses} bounds it; "
        )
        yield from _so(
            f"{bound}without a limit it pays up to {b.largest_unlimited:.2f} a rollout, where "
            f"outcomes range over {b.outcome:g}"
            + (f", and more than half of that to {b.over_half}." if b.over_half else ".")
        )


def _length(found: Guidance) -> Iterator[str]:
    of = found.length
    yield _row("step index", of.by_step_index)
    yield _row("mean advantage", [_fine(m) for m in of.by_step_index.values()])
    yield f"length and outcome correlate by {_of(of.correlation)} within groups"
    yield f"a step more in a winner changes the sum of its advantages by {_fine(of.winners_slope)}"
    yield f"a step more in another rollout changes it by {_fine(of.losers_slope)}"
    yield f"winners' steps with A < 0: {_of(of.negative)}"
    yield (
        f"under --prior discounted: {_of(of.negative_discounted)}, and "
        f"{_fine(found.levels.discounted_prior)} of the error of prediction saved"
    )
    if of.too_far.value > 0:
        yield from _so(
            f"{_of(of.too_far)} of the winners' steps lie more than ln p / ln γ from the end: the "
            f"discounted outcome is below the prior there, and {_of(of.negative_too_far)} of them "
            f"are negative. All negative ones lie {of.median_distance} steps from it (median)."
        )
    elif of.median_distance >= 0:
        yield from _so(
            f"The winners' negative steps lie {of.median_distance} steps from the end (median). "
            "No winner's step lies more than ln p / ln γ from it, where γ alone makes it negative."
        )


# --- words and columns -------------------------------------------------------------------------


def _of(m: Measured, digits: int = 2) -> str:
    if not m.known:
        return "–"
    error = f"{m.error:.{digits}f}" if m.groups >= FEWEST and isfinite(m.error) else "?"
    return f"{round(m.value, digits) + 0:.{digits}f} ± {error}"


def _fine(m: Measured) -> str:
    return _of(m, 3)


def _rollouts(count: int) -> str:
    return "one rollout" if count == 1 else f"{count} rollouts"


def _row(name: str, cells: Iterable[str | Measured]) -> str:
    shown = [_of(cell) if isinstance(cell, Measured) else cell for cell in cells]
    return (f"{name:<{COLUMN}}" + "".join(f"{cell:<{COLUMN}}" for cell in shown)).rstrip()


def _so(text: str) -> Sequence[str]:
    return list(_wrapped("→ ", text, width=98))


def _wrapped(mark: str, text: str, width: int = 100) -> Iterator[str]:
    """Wrap a text behind a mark."""
    from textwrap import wrap

    gap = " " * len(mark)
    yield from wrap(text, width, initial_indent=mark, subsequent_indent=gap)
