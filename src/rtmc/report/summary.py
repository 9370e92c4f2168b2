"""Write the summary of a run as a table for people, or as plain values for programs."""

from collections.abc import Iterable
from typing import Any

from rtmc.config import Config
from rtmc.diagnostics import INDEX_RANGES, Diagnostics, Overlap
from rtmc.signatures.coding import DIGEST_CHARS

__all__ = ["as_values", "lines"]


def as_values(found: Diagnostics, config: Config) -> dict[str, Any]:
    """Give all counts, and what follows from them, as plain values."""
    values: dict[str, Any] = {
        name: getattr(found, name)
        for name in found.__struct_fields__
        if name != "overlap" and not name.startswith("a_")
    }
    values["advantage"] = {
        "mean": found.mean,
        "deviation": found.deviation,
        "standard_error": found.standard_error,
    }
    values["overlap"] = {level: _overlap_values(o) for level, o in found.overlap.items()}
    values["config"] = config.as_dict()
    return values


def _overlap_values(o: Overlap) -> dict[str, Any]:
    return {
        "share": o.share,
        "by_step_index": {
            _range_name(bounds): shared / steps if steps else None
            for bounds, shared, steps in zip(INDEX_RANGES, o.shared, o.steps, strict=True)
        },
        "states": o.states,
        "singleton_states": o.singletons,
        "branching_states": o.branching,
    }


def _range_name(bounds: tuple[int, int | None]) -> str:
    low, high = bounds
    return f"{low}+" if high is None else f"{low}-{high}"


def lines(found: Diagnostics, config: Config) -> Iterable[str]:
    """Write the summary table, line by line."""
    options = config.as_dict()
    shown = (
        "level",
        "gamma",
        "n_prior",
        "prior",
        "beta",
        "max_bonuses",
        "repeats",
        "normalize",
        "std",
    )
    if config.estimator.reads.levels:
        options["level"] = ",".join(config.estimator.reads.levels)
    default = type(config.estimator)()
    own = [
        n for n in config.estimator.__struct_fields__
        if n not in shown and (options[n] or getattr(default, n))
    ]  # fmt: skip
    settings = ", ".join(f"{n} {_plain(options[n])}" for n in (*shown, *own) if n in options)
    if config.hash_chars < DIGEST_CHARS:
        settings += f", hash_chars {config.hash_chars}"
    yield f"  estimator      {options['estimator']} ({settings})"
    yield f"  groups         {found.groups}" + _noted(
        ("uniform" if options.get("uniform") == "keep" else "uniform: A = 0", found.uniform_groups),
        ("of one rollout: A = 0", found.singleton_groups),
        ("without a known outcome: no credit", found.empty_groups),
    )
    yield f"  rollouts       {found.rollouts}" + _noted(
        ("passed", found.passed),
        ("failed", found.failed),
        ("incomplete", found.incomplete),
        ("unknown", found.unknown),
        ("left out", found.excluded),
    )
    yield f"  steps          {found.steps}" + _noted(
        ("with credit", found.credited_steps),
        ("of them not 0", found.nonzero_steps),
        ("commands that no parser understood", found.unparsed),
    )
    for level, o in found.overlap.items():
        parts = " · ".join(
            f"{_range_name(bounds)}: {_share(shared, steps)}"
            for bounds, shared, steps in zip(INDEX_RANGES, o.shared, o.steps, strict=True)
        )
        yield f"  overlap        {o.share:.2f} of later steps start where ≥ 2 rollouts came by"
        yield f"  by step index  {parts}   (level {level})"
        yield (
            f"  states         {o.states}, {_share(o.singletons, o.states)} of one rollout only,"
            f" {_share(o.branching, o.states)} with several actions"
        )
    if not found.live_steps:
        what = "of uniform groups alone" if found.nonzero_steps else "0 everywhere"
        yield f"  advantage      {what}: no group has rollouts of different outcomes"
        return
    error = f" ± {found.standard_error:.4f} (error over groups)" if found.groups > 1 else ""
    yield f"  advantage      mean {found.mean + 0:+.4f}{error}, deviation {found.deviation:.4f}"
    negative = _share(found.winner_negative, found.winner_steps)
    positive = _share(found.loser_positive, found.loser_steps)
    yield f"  signs          winners' steps {negative} negative, the others' {positive} positive"


def _plain(value: object) -> str:
    return "none" if value is None else str(value)


def _noted(*counts: tuple[str, int]) -> str:
    noted = ", ".join(f"{count} {what}" for what, count in counts if count)
    return f" ({noted})" if noted else ""


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "–"
