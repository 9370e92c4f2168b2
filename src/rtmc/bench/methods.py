"""What is compared: the estimators at given settings, and two sources that are no batch estimators.

``vineppo`` starts fresh rollouts from every state, which only a simulator can: an oracle that shows
what more rollouts buy ("VinePPO: Refining Credit Assignment in RL Training of LLMs", arXiv
2410.01679). ``critic`` is a learned linear value function with generalised advantages, as PPO has
it: it carries what it has learned from batch to batch, which no estimator here does.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numba import njit

from rtmc.advantages import (
    G2PO,
    GRPO,
    HGPO,
    MTGRPO,
    RLOO,
    RTMC,
    SALT,
    TEMPO,
    ChainGAE,
    DrGRPO,
    Estimator,
    GiGPO,
    GraFT,
    GraphGAE,
    GRPOStep,
    MaxRL,
    PooledGAE,
    ReinforcePPBaseline,
)
from rtmc.advantages.bellman import advantages_of
from rtmc.batch import Floats
from rtmc.bench.conditions import Condition
from rtmc.bench.policies import MOST_ACTIONS, MOST_FEATURES, phase_of
from rtmc.bench.simulate import Sample, successes
from rtmc.config import Config
from rtmc.outcomes import Verdict
from rtmc.rules import group_rules

__all__ = ["METHODS", "TRIED", "Batchwise", "Critic", "Method", "Vine", "fresh"]

BONUS = 0.05
TRIED = 99
"""Variants of ``graph_gae`` and ``chain_gae`` that were looked at, on other seeds and problems,
before ``chain_gae`` was settled: 90 by their cosines, 9 by learning curves."""


class Method(Protocol):
    """Gives the steps of a sample their advantages."""

    def __call__(
        self, sample: Sample, condition: Condition, theta: Floats, discount: float, seed: int
    ) -> Floats:
        """Give A of each step, shape (S,)."""
        ...


@dataclass(frozen=True, slots=True)
class Batchwise:
    """An estimator as ``rtmc credit`` runs it, the rules for groups included.

    Attributes:
        estimator: with its options.
        level: of the keys, where the estimator does not need others.
        bonus: β.
        normalize: by problem, or not.
    """

    estimator: Estimator
    level: str = "paper"
    bonus: float = 0.0
    normalize: Literal["none", "problem"] = "none"

    def __call__(
        self, sample: Sample, condition: Condition, theta: Floats, discount: float, seed: int
    ) -> Floats:
        """Estimate; policy and parameters are not looked at."""
        levels = self.estimator.reads.levels or (self.level,)
        batch = sample.batch(levels, discount, self.bonus)
        config = Config(estimator=self.estimator, normalize=self.normalize)
        verdicts = [Verdict(1.0, True)] * len(sample.outcomes)
        return group_rules(batch, self.estimator(batch).advantages, verdicts, config)[0]


@dataclass(frozen=True, slots=True)
class Vine:
    """A = r + V(s′) − V(s), V from ``n`` fresh rollouts of each state."""

    n: int = 4

    def __call__(
        self, sample: Sample, condition: Condition, theta: Floats, discount: float, seed: int
    ) -> Floats:
        """Roll out from each state."""
        group = sample.of_rollout[sample.rollout_of_step]
        solved = successes(
            condition.world, condition.policy, theta, sample.problems[group], sample.states,
            sample.time, np.full(len(group), -1), self.n, condition.horizon, discount, seed,
        )  # fmt: skip
        return advantages_of(sample.batch(("root",), discount), solved / self.n, 0.0)


@dataclass(slots=True)
class Critic:
    """V(s) = wᵀx(s), by least squares on the returns of all batches so far, then GAE.

    x(s) holds which features some legal action has: all that a policy could see of the state. Older
    batches count less, by ``memory`` each. Values of the present batch are given before it is
    learned from.

    Attributes:
        lam: λ.
        memory: in (0, 1].
        ridge: penalty.
        bonus: β.
    """

    lam: float = 0.8
    memory: float = 0.9
    ridge: float = 1.0
    bonus: float = 0.0
    gram: Floats | None = field(default=None, repr=False)
    moment: Floats | None = field(default=None, repr=False)

    def __call__(
        self, sample: Sample, condition: Condition, theta: Floats, discount: float, seed: int
    ) -> Floats:
        """Judge the batch by what is known, then learn from it."""
        x = _seen(
            condition.world.functions[0], condition.world.functions[1], sample.problems,
            sample.of_rollout[sample.rollout_of_step], sample.states, sample.time,
            condition.horizon, len(condition.world.features),
        )  # fmt: skip
        batch = sample.batch(("root",), discount, self.bonus)
        gram, moment = x.T @ x, x.T @ batch.returns
        if self.gram is None or self.moment is None:
            self.gram, self.moment = np.zeros_like(gram), np.zeros_like(moment)
            w = np.zeros(len(moment))
            w[0] = sample.outcomes.mean()
        else:
            w = np.linalg.solve(self.gram + self.ridge * np.eye(len(moment)), self.moment)
        self.gram = self.memory * self.gram + gram
        self.moment = self.memory * self.moment + moment
        return advantages_of(batch, np.clip(x @ w, 0.0, 1.0 + self.bonus), self.lam)


@njit
def _seen(moves, describe, problems, group, states, time, horizon, size):
    x = np.zeros((len(states), 1 + size))
    legal, features = np.empty(MOST_ACTIONS, np.int64), np.empty(MOST_FEATURES, np.int64)
    for step in range(len(states)):
        x[step, 0] = 1.0
        problem, phase = problems[group[step]], phase_of(time[step], horizon)
        for at in range(moves(problem, states[step], legal)):
            for k in range(describe(problem, states[step], phase, legal[at], features)):
                x[step, 1 + features[k]] = 1.0
    return x


METHODS: dict[str, Method] = {
    "grpo": Batchwise(GRPO()),
    "dr_grpo": Batchwise(DrGRPO()),
    "rloo": Batchwise(RLOO()),
    "reinforce_pp_baseline": Batchwise(ReinforcePPBaseline()),
    "maxrl": Batchwise(MaxRL()),
    "grpo_step": Batchwise(GRPOStep(), bonus=BONUS),
    "mt_grpo": Batchwise(MTGRPO(), bonus=BONUS),
    "rtmc": Batchwise(RTMC()),
    "rtmc, no smoothing": Batchwise(RTMC(n_prior=0)),
    "rtmc, leave one out": Batchwise(RTMC(leave_one_out=True)),
    "rtmc, content": Batchwise(RTMC(), level="content"),
    "rtmc, paper": Batchwise(RTMC(repeats="paper"), bonus=BONUS, normalize="problem"),
    "rtmc, bonus": Batchwise(RTMC(), bonus=BONUS),
    "gigpo": Batchwise(GiGPO()),
    "gigpo, content": Batchwise(GiGPO(), level="content"),
    "hgpo": Batchwise(HGPO()),
    "salt": Batchwise(SALT()),
    "salt, content": Batchwise(SALT(), level="content"),
    "graft": Batchwise(GraFT()),
    "graft, content": Batchwise(GraFT(), level="content"),
    "graft, content, λ = 0.8": Batchwise(GraFT(lam=0.8), level="content"),
    "g2po": Batchwise(G2PO()),
    "g2po, content": Batchwise(G2PO(), level="content"),
    "tempo": Batchwise(TEMPO()),
    "pooled_gae": Batchwise(PooledGAE()),
    "graph_gae": Batchwise(GraphGAE()),
    "chain_gae": Batchwise(ChainGAE()),
    "chain_gae, bonus": Batchwise(ChainGAE(), bonus=BONUS),
    "vineppo": Vine(),
    "critic": Critic(),
    "critic, bonus": Critic(bonus=BONUS),
}


def fresh(method: Method) -> Method:
    """Give a method that has learned nothing yet."""
    return (
        Critic(method.lam, method.memory, method.ridge, method.bonus)
        if isinstance(method, Critic)
        else method
    )
