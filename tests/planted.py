"""Samples from hand-made keys: what the measurements of ``rtmc.guidance`` read."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

import rtmc
from rtmc.guidance import Findings
from rtmc.guidance.sample import CHAIN, LEVELS, Sample
from rtmc.rollouts import Group, Rollout, Step
from rtmc.signatures import Signatures

Keys = Mapping[str, Callable[[str], str]]
PLAIN = rtmc.Config(gamma=1.0, beta=0.0)


class Planted:
    """Sign steps whose thought is ``state.action``; a level may map the state to another key."""

    def __init__(self, own: str, keys: Keys) -> None:
        levels = dict.fromkeys((*LEVELS, *CHAIN))
        self.levels = (*(level for level in levels if level != own), own)
        self.keys = keys

    def sign(self, rollouts: Sequence[Rollout]) -> Signatures:
        pairs = [step.thought.split(".") for rollout in rollouts for step in rollout.steps]
        number: dict[str, int] = {}
        columns = [
            [number.setdefault(self.keys.get(level, str)(s), len(number)) for s, _ in pairs]
            for level in self.levels
        ]
        actions = [number.setdefault(f"act {a[0]}", len(number)) for _, a in pairs]
        return Signatures(
            np.array(columns, dtype=np.int64).T.reshape(len(pairs), len(columns)),
            np.repeat(np.array(actions, dtype=np.int64)[:, None], len(columns), axis=1),
            np.array([a.count("!") for _, a in pairs], dtype=np.int64),  # each ! is validated
            [""] * len(number),
            [""] * len(number),
        )


def group(name: str, *rollouts: tuple[str, float]) -> Group:
    """Make a group: each rollout is its steps, ``state.action`` each, and its reward."""
    return Group(
        name,
        tuple(
            Rollout(name, f"r{at:02}", tuple(Step(thought=word) for word in walk.split()), reward)
            for at, (walk, reward) in enumerate(rollouts)
        ),
    )


def sample(given: Group, config: rtmc.Config = PLAIN, keys: Keys | None = None) -> Sample:
    """Lay out and credit a group with hand-made keys, in the order given."""
    signer = Planted(config.level, keys or {})
    credit = rtmc.credit(given, config, signer)
    outcomes = credit.batch.outcomes
    return Sample(
        config=config,
        levels=signer.levels,
        steps=credit.steps,
        batch=credit.batch,
        validated=signer.sign(given.rollouts).validated,
        advantages=np.concatenate([np.zeros(0), *credit.advantages]),
        passed=np.array([r.status == "passed" for r in given.rollouts], dtype=bool),
        ids=tuple(r.rollout_id for r in given.rollouts),
        live=len(set(outcomes.tolist())) > 1,
        problem_id=given.problem_id,
    )


def findings(
    groups: Sequence[Group], config: rtmc.Config = PLAIN, keys: Keys | None = None
) -> Findings:
    """Collect the sums of several groups."""
    found = Findings()
    for one in groups:
        found.add(sample(one, config, keys))
    return found
