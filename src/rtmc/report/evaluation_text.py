"""Write evaluations, comparisons and checkpoints as tables for people."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rtmc.evaluation import Best, Change, Comparison, Evaluation, Figure, Flips
from rtmc.evaluation.changes import LEVEL

__all__ = ["checkpoint_lines", "comparison_lines", "conclusions", "evaluation_lines", "remarks"]

COLUMN = 17
FEW = 10
"""With fewer problems than this the intervals are said to be weak."""

SHOWN = 5
"""Ids or stop reasons that are named; the others are counted."""


def evaluation_lines(found: Evaluation) -> Iterator[str]:
    """Write one evaluation."""
    problems, settings = found.problems, found.settings
    sizes = [problem.runs for problem in problems]
    each = f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
    runs, counted = sum(sizes), sum(problem.counted for problem in problems)
    passed = sum(problem.passed for problem in problems)
    made_by = ", ".join(filter(None, (found.model, found.task)))
    yield found.name + (f" ({made_by})" if made_by else "")
    yield _row("problems", f"{len(problems)}, {each} run{'s' * (each != '1')} each")
    rest = f", {runs - counted} not counted" if runs > counted else ""
    yield _row("runs", f"{runs}: {passed} passed, {counted - passed} failed{rest}")
    for name, what, rule in (
        ("incomplete", "stopped by a limit", settings.incomplete),
        ("unknown", "of unknown outcome", settings.unknown),
        ("errors", "ended by an error that was not the agent's", settings.unknown),
    ):
        count = sum(getattr(problem, name) for problem in problems)
        if count:
            yield _row(name, f"{count} {what}: {'failed' if rule == 'fail' else 'not counted'}")
    yield from _stops(found.stop_reasons)
    means = ((found.steps, "steps"), (found.tokens, "sampled tokens"), (found.seconds, "seconds"))
    parts = [f"{value:,.1f} {what}" for value, what in means if value is not None]
    yield _row("a run takes", ", ".join(parts))
    yield ""
    yield "Per cent of the problems [95 % interval]"
    for k, figure in found.pass_at_k.items():
        yield _row(f"pass@{k}", _percent(figure) + _basis(figure))
    majority = found.majority
    yield _row(f"majority of {settings.majority}", _percent(majority) + _basis(majority))
    for remark in remarks(found):
        yield from _so(remark)


def remarks(found: Evaluation) -> Iterator[str]:
    """Say what stands against the figures of an evaluation."""
    if any(problem.counted < problem.runs for problem in found.problems):
        low, high = found.bounds
        yield (
            f"pass@1 is {100 * low:.1f} if every run that is not counted failed, {100 * high:.1f} "
            "if it passed."
        )
    few = found.pass_at_k[1].problems
    if few < FEW:
        yield f"{_problems(few)}: the intervals say little."


def _stops(reasons: dict[str, int]) -> Iterator[str]:
    named = [f"{count} {reason}" for reason, count in list(reasons.items())[:SHOWN]]
    others = sum(list(reasons.values())[SHOWN:])
    if others:
        named.append(f"{others} other")
    if named:
        yield from wrap(
            _row("stop reasons", ", ".join(named)), 100, subsequent_indent=" " * (COLUMN + 2)
        )


def comparison_lines(found: Comparison) -> Iterator[str]:
    """Write what was gained and lost."""
    yield f"{found.after} against {found.before}"
    yield _row("problems", f"{len(found.changes)} that both have runs of")
    for ids, what in (
        (found.only_before, f"only in {found.before}"),
        (found.only_after, f"only in {found.after}"),
        (found.left_out, "in both, without a counted run in one"),
    ):
        if ids:
            yield _row("left out", f"{len(ids)} {what}: {_named(ids)}")
    yield _row("pass@1 before", _percent(found.pass_before))
    yield _row("pass@1 after", _percent(found.pass_after))
    yield _row("difference", _percent(found.difference, sign="+"))
    yield _row("by problem", f"{found.better} better, {found.worse} worse; "
                             f"sign test p {_p(found.sign_p)}")  # fmt: skip
    yield _row("gained", _expected(found.gained))
    yield _row("lost", _expected(found.lost))
    for conclusion in conclusions(found):
        yield from _so(conclusion)
    yield from _table("Gained", found, found.gained.ids, sign=1)
    yield from _table("Lost", found, found.lost.ids, sign=-1)


def _expected(flips: Flips) -> str:
    return (
        f"{len(flips.ids)} by majority; {flips.expected:.1f} expected if nothing changed, "
        f"p {_p(flips.p)}"
    )


def conclusions(found: Comparison) -> Iterator[str]:
    """Say what a comparison shows, and what it cannot."""
    low, high = found.difference.low, found.difference.high
    if low is not None and high is not None:
        where = "above" if low > 0 else "below" if high < 0 else "within the noise of"
        yield f"pass@1 after is {where} pass@1 before."
    sure = sum(change.significant and change.difference < 0 for change in found.changes)
    if sure:
        yield f"{_problems(sure)} got worse beyond luck (marked !)."
    elif found.lost.p <= LEVEL:
        yield "More problems were lost than by luck; which of them, these runs cannot say."
    elif all(change.adjusted is None for change in found.changes):
        yield (
            "No single problem can be told from luck with these runs: it takes three on either "
            "side that all went one way, and eight to be of use."
        )
    else:
        yield "No sign that problems were lost other than by luck."


def _table(title: str, found: Comparison, ids: Sequence[str], sign: int) -> Iterator[str]:
    """List the problems whose majority turned one way, and others that changed for sure."""
    turned = set(ids)
    rows = [
        change
        for change in found.changes
        if change.id in turned or (change.significant and change.difference * sign > 0)
    ]
    if not rows:
        return
    width = max(COLUMN, *(len(change.id) + 2 for change in rows))
    yield ""
    yield f"{title:<{width + 2}}{'before':<9}{'after':<9}{'majority':<11}{'p':<9}adjusted"
    for change in sorted(rows, key=lambda change: (change.p, -sign * change.difference)):
        yield _change(change, width, change.id in turned, sign)


def _change(change: Change, width: int, turned: bool, sign: int) -> str:
    ratio = "{}/{}".format
    majority = ("no → yes" if sign > 0 else "yes → no") if turned else "same"
    adjusted = "–" if change.adjusted is None else _p(change.adjusted)
    mark = " !" if change.significant else ""
    return (
        f"  {change.id:<{width}}{ratio(*change.before):<9}{ratio(*change.after):<9}"
        f"{majority:<11}{_p(change.p):<9}{adjusted}{mark}"
    )


def checkpoint_lines(checkpoints: Sequence[Evaluation], best: Best) -> Iterator[str]:
    """Write several checkpoints, the best one marked, and by how much its figure is too high."""
    shared = best.pass_at_1[0].problems
    yield f"{len(checkpoints)} checkpoints on {_problems(shared)} that all have runs of"
    if best.left_out:
        yield _row("left out", f"{len(best.left_out)} without runs in all: {_named(best.left_out)}")
    width = max(COLUMN, *(len(one.name) + 4 for one in checkpoints))
    yield f"  {'':<{width}}pass@1, per cent [95 % interval]"
    for at, (one, figure) in enumerate(zip(checkpoints, best.pass_at_1, strict=True)):
        mark = " ←" if at == best.at else ""
        yield f"  {one.name + mark:<{width}}{_percent(figure)}"
    yield _row("best", f"{best.name}; again in {best.again:.2f} of resamples of the problems")
    yield _row(
        "too high by",
        f"{100 * max(best.optimism, 0.0):.1f} if the checkpoints differ as seen, up to "
        f"{100 * best.optimism_if_equal:.1f} if they do not",
    )
    if best.held_out:
        yield _row("held out", f"{_percent(best.held_out)} on problems that did not pick it")
    else:
        yield from _so(
            "The best was picked for its luck, too: its figure is too high. Report the one on "
            "problems that did not pick it (--held-out)."
        )


# --- words and columns -------------------------------------------------------------------------


def _row(name: str, text: str) -> str:
    return f"  {name:<{COLUMN}}{text}".rstrip()


def _percent(figure: Figure, sign: str = "") -> str:
    if figure.value is None:
        return "–"
    text = f"{round(100 * figure.value, 1) + 0:{sign}.1f}"
    if figure.low is None or figure.high is None:
        return f"{text} [?]"
    low, high = (round(100 * bound, 1) + 0 for bound in (figure.low, figure.high))
    return f"{text} [{low:{sign}.1f}, {high:{sign}.1f}]"


def _basis(figure: Figure) -> str:
    """Say of how many problems a figure is, where it is not of all."""
    if not figure.left_out:
        return ""
    return f"   {figure.problems} problems; {figure.left_out} with too few runs left out"


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _problems(count: int) -> str:
    return f"{count} problem{'s' * (count != 1)}"


def _named(ids: Sequence[str]) -> str:
    return ", ".join(ids[:SHOWN]) + (" …" if len(ids) > SHOWN else "")


def _so(text: str) -> list[str]:
    return wrap(text, 98, initial_indent="  → ", subsequent_indent="    ")
