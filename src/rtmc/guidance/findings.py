"""Collect the sums of groups, and make figures and advice of them."""

from collections.abc import Sequence

import msgspec
import numpy as np

from rtmc.batch import Floats, sum_by
from rtmc.errors import FormatError
from rtmc.guidance.advice import advise
from rtmc.guidance.lambdas import Lambdas, lambda_sums, lambdas
from rtmc.guidance.measured import Measured, Sums, measured, ratio
from rtmc.guidance.noise import Noise, noise, noise_sums
from rtmc.guidance.prediction import Growth, Levels, growth, levels, prediction_sums
from rtmc.guidance.rewards import Bonus, Length, bonus, bonus_sums, length, length_sums
from rtmc.guidance.sample import Sample
from rtmc.guidance.support import (
    Overlaps,
    Support,
    overlap_sums,
    overlaps,
    support,
    support_sums,
)

__all__ = ["Findings", "Guidance", "Signal"]


class Signal(msgspec.Struct, frozen=True):
    """What there is, and how much of it can carry a signal.

    Attributes:
        groups: all groups.
        live: groups whose rollouts differ in outcome: only there A differs from 0.
        uniform: groups of several rollouts and one outcome.
        singletons: groups in which one rollout votes.
        empty: groups without a known outcome.
        rollouts: all rollouts.
        voting: those with a known outcome.
        live_rollouts: those in live groups.
        per_group: fewest, median and most voting rollouts of a group that has any.
        share: live_rollouts / voting.
    """

    groups: int
    live: int
    uniform: int
    singletons: int
    empty: int
    rollouts: int
    voting: int
    live_rollouts: int
    per_group: tuple[int, float, int]
    share: Measured


class Guidance(msgspec.Struct, frozen=True):
    """Everything that ``rtmc diagnose`` says; ``advice`` is what follows from the rest."""

    signal: Signal
    overlap: dict[str, Overlaps]
    support: Support
    noise: Noise
    levels: Levels
    growth: Growth
    lambdas: Lambdas
    bonus: Bonus
    length: Length
    advice: tuple[str, ...]


class Findings:
    """The sums of the groups seen so far; the order in which they come changes nothing."""

    def __init__(self) -> None:
        self._groups: list[tuple[str, dict[str, Sums]]] = []
        self._validated: list[Floats] = []
        self._distances: list[Floats] = []
        self._sample: Sample | None = None
        self._low, self._high = np.inf, -np.inf

    def add(self, sample: Sample) -> None:
        """Reduce one group to its sums."""
        batch, n = sample.batch, sample.n_rollouts
        found: dict[str, Sums] = {
            "overlap": overlap_sums(sample),
            "rollouts": {
                "all": np.array(len(sample.steps.starts) - 1.0),
                "voting": np.array(float(n)),
                "live": np.array(float(n if sample.live else 0)),
            },
        }
        if n:
            self._low = min(self._low, float(batch.outcomes.min()))
            self._high = max(self._high, float(batch.outcomes.max()))
            validated = sample.validated.astype(np.float64)
            self._validated.append(sum_by(validated, batch.rollout_of_step, n))
            found["bonus"] = bonus_sums(sample)
        if sample.live:
            found |= {
                "support": support_sums(sample),
                "noise": noise_sums(sample),
                "prediction": prediction_sums(sample),
                "lambdas": lambda_sums(sample),
            }
            found["length"], distances = length_sums(sample)
            self._distances.append(distances)
        self._groups.append((sample.problem_id, found))
        self._config, self._level = sample.config, sample.levels[-1]

    def guidance(self) -> Guidance:
        """Make figures of the sums, and advice of the figures.

        Raises:
            FormatError: no group can tell anything; the message says why and what to do.
        """
        signal = self._signal()
        _refuse_nothing(signal)
        overlap = overlaps(self._named("overlap"), self._level)
        compared = levels(self._named("prediction"), self._level)
        share = {name: one.share.value for name, one in overlap.items()}
        unlimited = self._config.beta * np.concatenate(self._validated)
        guidance = Guidance(
            signal=signal,
            overlap=overlap,
            support=support(self._named("support")),
            noise=noise(self._named("noise")),
            levels=compared,
            growth=growth(self._named("prediction"), compared, share),
            lambdas=lambdas(self._named("lambdas")),
            bonus=bonus(self._named("bonus"), unlimited, self._high - self._low),
            length=length(self._named("length"), np.concatenate(self._distances)),
            advice=(),
        )
        return msgspec.structs.replace(guidance, advice=advise(guidance, self._config))

    def _named(self, name: str) -> Sequence[Sums]:
        """Give the sums of one kind, in an order that does not depend on the input's."""
        groups = sorted(self._groups, key=lambda one: one[0])
        return [found[name] for _, found in groups if name in found]

    def _signal(self) -> Signal:
        rows = self._named("rollouts")
        total, voting, live = (
            np.array([row[name] for row in rows], dtype=int) for name in ("all", "voting", "live")
        )
        sizes = voting[voting > 0]
        (share,) = measured(rows, lambda s: ratio(s["live"], s["voting"]))
        return Signal(
            groups=len(rows),
            live=int((live > 0).sum()),
            uniform=int(((voting > 1) & (live == 0)).sum()),
            singletons=int((voting == 1).sum()),
            empty=int((voting == 0).sum()),
            rollouts=int(total.sum()),
            voting=int(voting.sum()),
            live_rollouts=int(live.sum()),
            per_group=(
                int(sizes.min(initial=int(1e9))),
                float(np.median(sizes)),
                int(sizes.max(initial=0)),
            )
            if len(sizes)
            else (0, 0.0, 0),
            share=share,
        )


def _refuse_nothing(signal: Signal) -> None:
    """Say why nothing can be told, and what would help."""
    if signal.live:
        return
    if not signal.groups:
        raise FormatError(
            "no rollout in the input; `rtmc formats` lists what is read, --format forces one"
        )
    if not signal.voting:
        raise FormatError(
            f"none of the {signal.rollouts} rollouts has a known outcome, and credit starts from "
            "outcomes; give them with --outcomes, or count unknown ones as failed with "
            "--unknown fail"
        )
    if not signal.uniform:
        raise FormatError(
            f"every one of the {signal.singletons} problems with a known outcome has one rollout, "
            "and credit comes from comparing rollouts of one problem; record several, or say with "
            "--group-by what belongs together"
        )
    raise FormatError(
        f"in none of the {signal.groups} groups do the outcomes differ ({signal.uniform} of one "
        f"outcome, {signal.singletons} of one rollout, {signal.empty} without a known outcome), so "
        "every advantage is 0; take problems that some rollouts solve and some do not, or more "
        "rollouts of each"
    )
