"""Independent, slow oracles of the other estimators: plain dicts and floats, nothing from rtmc.

Each takes one group of attempts and gives the raw advantage of every turn, before the rules that
hold for all estimators (``reinforce_pp_baseline`` takes all groups of the batch). R: outcome.
r_t: reward with the bonus, and with R in the last turn. G_t = Σ γ^l r_{t+l}. s′: the state of the
next turn, END after the last. V(END) = 0. std: see ``oracle.divisor``.

A turn's state is one text; ``pooled_gae`` reads ``coarse/fine`` in it, two keys. ``tempo`` wants
full histories: ``histories`` writes them.
"""

from dataclasses import replace

from oracle import cell, deviation, divisor, first_visits, mean, state

BONUS = 0.05
FLOOR = 1e-6
END = None  # of all attempts of a group


def rewards_of(attempt):
    """Give r_t = what the environment gave + BONUS·validated, + R in the last turn."""
    rewards = [turn.reward + BONUS * turn.validated for turn in attempt.turns]
    if rewards:
        rewards[-1] += attempt.outcome
    return rewards


def discounted(numbers, factor):
    """Give Σ_l factor^l x_{t+l} of every t."""
    return [
        sum(factor**later * x for later, x in enumerate(numbers[t:])) for t in range(len(numbers))
    ]


def returns_of(attempt, gamma):
    return discounted(rewards_of(attempt), gamma)


def outcomes_of(group):
    return [attempt.outcome for attempt in group]


def last_alone(attempt):
    """Give r_t with R in the last turn and nothing else."""
    return [0.0] * (len(attempt.turns) - 1) + [attempt.outcome] if attempt.turns else []


def followed(attempt):
    """Give s_0 … s_T and END."""
    return [turn.state for turn in attempt.turns] + [END]


def pooled(pairs):
    """Collect (key, number) into key → numbers."""
    found = {}
    for key, number in pairs:
        found.setdefault(key, []).append(number)
    return found


def centred(numbers, std):
    """Give (x − mean)/divisor."""
    return [(x - mean(numbers)) / divisor(numbers, std) for x in numbers]


def spread(of_attempt, group):
    """Give every turn of an attempt the attempt's number."""
    return [[x] * len(attempt.turns) for x, attempt in zip(of_attempt, group, strict=True)]


def histories(group):
    """Name each turn's state by all states and actions before it."""
    made = []
    for attempt in group:
        before, turns = "", []
        for turn in attempt.turns:
            turns.append(replace(turn, state=before + turn.state))
            before += f"{turn.state}:{turn.action} "
        made.append(replace(attempt, turns=tuple(turns)))
    return made


def grpo(group, gamma, std="population"):
    """A = (R − mean R)/(std R + 1e-6)."""
    return spread(centred(outcomes_of(group), std), group)


def dr_grpo(group, gamma):
    """A = R − mean R."""
    return spread([r - mean(outcomes_of(group)) for r in outcomes_of(group)], group)


def rloo(group, gamma):
    """A = N/(N − 1)·(R − mean R), 0 in a group of one."""
    n = len(group)
    if n == 1:
        return spread([0.0], group)
    return spread([n / (n - 1) * (r - mean(outcomes_of(group))) for r in outcomes_of(group)], group)


def reinforce_pp_baseline(groups, gamma):
    """b = R − mean R of the group; A = (b − mean b)/(std b + 1e-6) over the batch's attempts."""
    beyond = [r - mean(outcomes_of(group)) for group in groups for r in outcomes_of(group)]
    return spread(centred(beyond, "population"), [attempt for group in groups for attempt in group])


def maxrl(group, gamma):
    """A = (R − mean R)/mean R, 0 where mean R ≤ 0."""
    middle = mean(outcomes_of(group))
    return spread([(r - middle) / middle if middle > 0 else 0.0 for r in outcomes_of(group)], group)


def gigpo(group, gamma, omega=1.0, divisor="std"):
    """A = A^E + ω·A^S.

    A^E = (R − mean R)/F, A^S = (G_t − mean G)/F over all turns of the group in the same state;
    F = std + 1e-6 of the numbers that are compared, or 1.
    """
    std = "population" if divisor == "std" else "none"
    returns = [returns_of(attempt, gamma) for attempt in group]
    in_state = pooled(
        (turn.state, g)
        for attempt, row in zip(group, returns, strict=True)
        for turn, g in zip(attempt.turns, row, strict=True)
    )
    rows = []
    for attempt, row, episode in zip(group, returns, grpo(group, gamma, std), strict=True):
        rows.append([])
        for turn, g, whole in zip(attempt.turns, row, episode, strict=True):
            numbers = in_state[turn.state]
            step = centred(numbers, std)[numbers.index(g)]
            rows[-1].append(whole + omega * step)
    return rows


def salt(group, gamma, std="population"):
    """A = mean GRPO advantage of the attempts with the edge (s, a, s′), each counted once."""
    whole = centred(outcomes_of(group), std)
    edges = [
        list(zip(map(cell, attempt.turns), followed(attempt)[1:], strict=True)) for attempt in group
    ]
    shared = pooled((e, a) for a, row in zip(whole, edges, strict=True) for e in dict.fromkeys(row))
    return [[mean(shared[e]) for e in row] for row in edges]


def graft(group, gamma, lam=0.0, n_prior=2.0, z_score=False):
    """A_t = Σ_l (γλ)^l δ_{t+l}, δ_t = r_t + γV(s′) − V(s).

    V(s) = (Σ over visits (r + γV(s′)) + n₀·p)/(visits + n₀), p = mean R: a linear system.
    z_score: (A − mean)/(std + 1e-6) over the visits of the state.
    """
    names = list(dict.fromkeys(turn.state for attempt in group for turn in attempt.turns))
    number = {name: k for k, name in enumerate(names)}
    left = [[0.0] * len(names) for _ in names]
    right = [n_prior * mean(outcomes_of(group)) for _ in names]
    for k in range(len(names)):
        left[k][k] = n_prior
    for attempt in group:
        way = followed(attempt)
        for r, here, there in zip(rewards_of(attempt), way, way[1:], strict=False):
            left[number[here]][number[here]] += 1
            right[number[here]] += r
            if there is not END:
                left[number[here]][number[there]] -= gamma
    value = dict(zip(names, solved(left, right), strict=True)) | {END: 0.0}
    rows = []
    for attempt in group:
        way = followed(attempt)
        deltas = [
            r + gamma * value[there] - value[here]
            for r, here, there in zip(rewards_of(attempt), way, way[1:], strict=False)
        ]
        rows.append(discounted(deltas, gamma * lam))
    return z_scores(group, rows) if z_score else rows


def solved(left, right):
    """Solve left·x = right by Gaussian elimination with pivots."""
    rows = [[*row, b] for row, b in zip(left, right, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    x = [0.0] * n
    for k in reversed(range(n)):
        x[k] = (rows[k][n] - sum(rows[k][j] * x[j] for j in range(k + 1, n))) / rows[k][k]
    return x


def z_scores(group, rows):
    """Give (A − mean)/(std + 1e-6) over the visits of each state."""
    every = [
        (turn.state, a)
        for attempt, row in zip(group, rows, strict=True)
        for turn, a in zip(attempt.turns, row, strict=True)
    ]
    numbers = pooled(every)
    return [
        [
            (a - mean(numbers[turn.state])) / (deviation(numbers[turn.state]) + FLOOR)
            for turn, a in zip(attempt.turns, row, strict=True)
        ]
        for attempt, row in zip(group, rows, strict=True)
    ]


def g2po(group, gamma, omega=1.0, std="population"):
    """A = A^E + ω·norm(d), d = V(s′) − V(s), + R at the last turn.

    V(s) = mean of γ^{turns still to come}·R over visits; norm: (d − mean)/(population std +
    1e-6) over all turns of the group. ``std`` is A^E's alone.
    """
    value = {
        name: mean(numbers)
        for name, numbers in pooled(
            (turn.state, gamma ** (len(attempt.turns) - 1 - t) * attempt.outcome)
            for attempt in group
            for t, turn in enumerate(attempt.turns)
        ).items()
    } | {END: 0.0}
    steps = [
        [
            r + value[there] - value[here]
            for r, here, there in zip(
                last_alone(attempt), followed(attempt), followed(attempt)[1:], strict=False
            )
        ]
        for attempt in group
    ]
    normed = iter(centred([d for row in steps for d in row], "population"))
    return [
        [whole + omega * next(normed) for whole in episode] for episode in grpo(group, gamma, std)
    ]


def tempo(group, gamma, std="population"):
    """A = GRPO, + r + V(s′) − V(s) where attempts in s took two actions or more.

    V(s) = mean R of the attempts through s. r = R at the last turn, else 0.
    """
    value = {END: 0.0}
    taken = {}
    for name in {turn.state for attempt in group for turn in attempt.turns}:
        through = [a for a in group if any(turn.state == name for turn in a.turns)]
        value[name] = mean(outcomes_of(through))
        taken[name] = {turn.action for a in through for turn in a.turns if turn.state == name}
    rows = []
    for attempt, episode in zip(group, grpo(group, gamma, std), strict=True):
        way = followed(attempt)
        rows.append(
            [
                a + r + value[there] - value[here] if len(taken[here]) > 1 else a
                for a, r, here, there in zip(
                    episode, last_alone(attempt), way, way[1:], strict=False
                )
            ]
        )
    return rows


def mt_grpo(group, gamma, lam=1.0, std="population"):
    """A = GRPO + λ·(r^T_t − mean)/(std + 1e-6) over the group's turns of the same index t.

    r^T: what the environment gave at the turn, without outcome and bonus.
    """
    at = pooled((t, turn.reward) for attempt in group for t, turn in enumerate(attempt.turns))
    return [
        [
            whole + lam * (turn.reward - mean(at[t])) / divisor(at[t], std)
            for t, (whole, turn) in enumerate(zip(episode, attempt.turns, strict=True))
        ]
        for attempt, episode in zip(group, grpo(group, gamma, std), strict=True)
    ]


def coarse(turn):
    return turn.state.split("/")[0]


def fine(turn):
    return turn.state.split("/")[1]


def pooled_gae(group, gamma, lam=0.5, n_prior=2.0):
    """A_t = Σ_l (γλ)^l δ_{t+l}, δ_t = r_t + γV_{t+1} − V_t, V after the last turn = 0.

    V_0(t) = clip(mean_{j≠i} G_0(j)/γ^t, least … largest R)
    V_l(s) = (N·mean G + n₀·V_{l−1})/(N + n₀) over the N other attempts that visit s, G at their
    first visit; V_{l−1} where N is 0.
    """
    returns = [returns_of(attempt, gamma) for attempt in group]
    start = [g[0] if g else attempt.outcome for attempt, g in zip(group, returns, strict=True)]
    rows = []
    for i, attempt in enumerate(group):
        others = [j for j in range(len(group)) if j != i]
        values = []
        for t, turn in enumerate(attempt.turns):
            v = mean([start[j] for j in others]) / gamma**t
            v = min(max(v, min(outcomes_of(group))), max(outcomes_of(group)))
            for key in (coarse, fine):
                first = {j: first_visits(group[j], key) for j in others}
                seen = [returns[j][first[j][key(turn)]] for j in others if key(turn) in first[j]]
                if seen:
                    v = (sum(seen) + n_prior * v) / (len(seen) + n_prior)
            values.append(v)
        values.append(0.0)
        deltas = [r + gamma * values[t + 1] - values[t] for t, r in enumerate(rewards_of(attempt))]
        rows.append(discounted(deltas, gamma * lam))
    return rows


def branching(group):
    """Give the states in which two actions or more were taken."""
    taken = pooled((state(turn), turn.action) for attempt in group for turn in attempt.turns)
    return {name for name, actions in taken.items() if len(set(actions)) > 1}
