"""An independent, slow oracle of the method: plain dicts and floats, nothing from rtmc.

One group at a time. Follow the formulas, not the library:

    Q(s,a) = mean over the rollouts with (s,a) of G at its first visit
    V'(s)  = (Σ_a N(s,a)·Q(s,a) + n₀·prior) / (N(s) + n₀)
    A      = Q − V', then the repeats rule, then what is not credited and what is uniform, then
             normalisation

``Answer.divisor`` is what A was divided by at last. Compare A times it: where it is small, it
enlarges the rounding of both sides alike.

The end of the module hands the same input to the library (``library``).
"""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np

import rtmc
from rtmc.signatures import Signatures
from rtmc.signatures.signer import Interner


@dataclass(frozen=True)
class Turn:
    state: str
    action: str
    reward: float = 0.0
    validated: int = 0
    standing: int = 0


@dataclass(frozen=True)
class Attempt:
    outcome: float | None
    turns: tuple[Turn, ...] = ()
    incomplete: bool = False


def walk(outcome, words="", incomplete=False):
    """Write an attempt shortly: ``s:a t:b`` acts a in s, then b in t."""
    turns = tuple(Turn(*word.split(":")) for word in words.split())
    return Attempt(outcome, turns, incomplete)


@dataclass
class Answer:
    advantages: list[list[float | None]]
    q_values: list[list[float | None]]
    state_values: list[list[float | None]]
    flags: set[str] = field(default_factory=set)
    divisor: float = 1.0


@dataclass(frozen=True)
class Options:
    estimator: str = "rtmc"
    gamma: float = 0.99
    beta: float = 0.05
    max_bonuses: int | None = 1
    normalize: str = "none"
    incomplete: str = "fail"
    fail_reward: float = 0.0
    unknown: str = "exclude"
    n_prior: float = 2.0
    prior: str = "success_rate"
    leave_one_out: bool = False
    repeats: str = "first"
    std: str = "population"


def mean(numbers):
    return sum(numbers) / len(numbers)


def deviation(numbers, sample=False):
    if len(numbers) == 1:
        return 0.0
    middle = mean(numbers)
    return sqrt(sum((x - middle) ** 2 for x in numbers) / (len(numbers) - bool(sample)))


def outcome_of(attempt, o):
    """The reward with which an attempt votes, None if it does not; and whether it gets credit."""
    outcome = attempt.outcome
    if outcome is None:
        if o.unknown == "exclude":
            return None, False
        outcome = o.fail_reward
    if not attempt.incomplete:
        return outcome, True
    if o.incomplete == "exclude":
        return None, False
    return min(outcome, o.fail_reward), o.incomplete == "fail"


def returns_of(attempt, outcome, o):
    paid = 0
    rewards = []
    for turn in attempt.turns:
        bonuses = turn.validated
        if o.max_bonuses is not None:
            bonuses = min(bonuses, o.max_bonuses - paid)
        paid += bonuses
        rewards.append(turn.reward + o.beta * bonuses)
    if rewards:
        rewards[-1] += outcome
    return [
        sum(o.gamma**later * r for later, r in enumerate(rewards[t:])) for t in range(len(rewards))
    ]


def first_visits(attempt, key):
    """The index of the first turn with each key."""
    first = {}
    for t, turn in enumerate(attempt.turns):
        first.setdefault(key(turn), t)
    return first


def state(turn):
    return turn.state


def cell(turn):
    return turn.state, turn.action


def credit(group, o):
    judged = [outcome_of(attempt, o) for attempt in group]
    voters = [i for i, (outcome, _) in enumerate(judged) if outcome is not None]
    outcomes = {i: judged[i][0] for i in voters}
    returns = {i: returns_of(group[i], outcomes[i], o) for i in voters}
    nothing = [[None] * len(attempt.turns) for attempt in group]
    answer = Answer(*([list(row) for row in nothing] for _ in range(3)))
    if voters:
        estimator = {"rtmc": rtmc_values, "grpo": grpo_values, "grpo_step": grpo_step_values}[
            o.estimator
        ]
        estimator(group, voters, outcomes, returns, o, answer)

    if len(voters) == 1:
        answer.flags.add("singleton_group")
    elif voters:
        largest = max(abs(r) for r in outcomes.values())
        if max(outcomes.values()) - min(outcomes.values()) <= 1e-6 * max(1.0, largest):
            answer.flags.add("uniform")
    for i, (_, credited) in enumerate(judged):
        if not credited:
            answer.advantages[i] = nothing[i]
        elif answer.flags:
            answer.advantages[i] = [0.0] * len(group[i].turns)
    if answer.flags:
        answer.divisor = 1.0

    if o.normalize == "problem":
        numbers = [a for row in answer.advantages for a in row if a is not None]
        spread = deviation(numbers) if numbers else 0.0
        if spread >= 1e-8:
            answer.divisor *= spread
            answer.advantages = [
                [None if a is None else a / spread for a in row] for row in answer.advantages
            ]
    return answer


def rtmc_values(group, voters, outcomes, returns, o, answer):
    in_cell = {}  # (s, a) → rollout → G at the first visit
    in_state = {}  # s → rollout → (t, G) at the first visit
    for i in voters:
        for key, t in first_visits(group[i], cell).items():
            in_cell.setdefault(key, {})[i] = returns[i][t]
        for key, t in first_visits(group[i], state).items():
            in_state.setdefault(key, {})[i] = (t, returns[i][t])
    q = {key: mean(list(visits.values())) for key, visits in in_cell.items()}

    def start(i):
        return returns[i][0] if returns[i] else outcomes[i]

    def prior_of(s, among):
        if o.prior == "success_rate":
            return mean([outcomes[i] for i in among])
        time = mean([t for t, _ in in_state[s].values()])
        value = mean([start(i) for i in among]) / o.gamma**time
        return min(max(value, min(outcomes.values())), max(outcomes.values()))

    weight = 0.0 if o.prior == "none" else o.n_prior
    for i in voters:
        first = first_visits(group[i], cell)
        for t, turn in enumerate(group[i].turns):
            s = turn.state
            among = [j for j in voters if j != i] if o.leave_one_out else voters
            if o.leave_one_out:
                numbers = [g for j, (_, g) in in_state[s].items() if j != i]
            else:
                numbers = [g for (s2, _), v in in_cell.items() if s2 == s for g in v.values()]
            total, count = sum(numbers), float(len(numbers))
            if weight and among:
                total, count = total + weight * prior_of(s, among), count + weight
            value = total / count if count else q[cell(turn)]  # nothing to compare with: A = 0
            advantage = q[cell(turn)] - value
            if o.repeats == "first" and first[cell(turn)] != t:
                advantage = min(0.0, advantage)
            answer.q_values[i][t] = q[cell(turn)]
            answer.state_values[i][t] = value
            answer.advantages[i][t] = advantage


def grpo_values(group, voters, outcomes, returns, o, answer):
    numbers = [outcomes[i] for i in voters]
    answer.divisor = divisor(numbers, o.std)
    for i in voters:
        advantage = (outcomes[i] - mean(numbers)) / answer.divisor
        answer.advantages[i] = [advantage] * len(group[i].turns)


def grpo_step_values(group, voters, outcomes, returns, o, answer):
    numbers = [g for i in voters for g in returns[i]]
    if numbers:
        answer.divisor = divisor(numbers, o.std)
        for i in voters:
            answer.advantages[i] = [(g - mean(numbers)) / answer.divisor for g in returns[i]]


def divisor(numbers, std):
    return 1.0 if std == "none" else deviation(numbers, std == "sample") + 1e-6


# The same input for the library.


class ScriptedSigner:
    """Read the keys that ``rollout`` wrote into the steps."""

    levels = ("scripted",)

    def sign(self, rollouts):
        steps = [step for rollout in rollouts for step in rollout.steps]
        states, actions = Interner(), Interner()

        def column(interner, keys):
            return np.array(interner.ids([(k,) for k in keys]), dtype=np.int64).reshape(-1, 1)

        return Signatures(
            column(states, [step.env_state for step in steps]),
            column(actions, [step.thought for step in steps]),
            np.array([int(step.observation_key) for step in steps], dtype=np.int64),
            states.keys,
            actions.keys,
        )


def rollout(attempt, problem="p", name="r"):
    steps = tuple(
        rtmc.Step(
            thought=turn.action,
            env_state=turn.state,
            reward=turn.reward,
            observation_key=str(turn.validated),
        )
        for turn in attempt.turns
    )
    status = "incomplete" if attempt.incomplete else "failed"
    return rtmc.Rollout(problem, name, steps, attempt.outcome, status)


def config(o):
    estimator = {
        "rtmc": lambda: rtmc.RTMC(o.n_prior, o.prior, o.leave_one_out, o.repeats),
        "grpo": lambda: rtmc.GRPO(o.std),
        "grpo_step": lambda: rtmc.GRPOStep(o.std),
    }[o.estimator]()
    return rtmc.Config(
        estimator=estimator,
        gamma=o.gamma,
        beta=o.beta,
        max_bonuses=o.max_bonuses,
        normalize=o.normalize,
        incomplete=o.incomplete,
        fail_reward=o.fail_reward,
        unknown=o.unknown,
    )


def library(groups, o):
    """Give several groups of attempts to the library."""
    return rtmc.credit(
        [
            rtmc.Group(
                f"p{g}",
                tuple(rollout(attempt, f"p{g}", f"r{i}") for i, attempt in enumerate(group)),
            )
            for g, group in enumerate(groups)
        ],
        config(o),
        ScriptedSigner(),
    )
