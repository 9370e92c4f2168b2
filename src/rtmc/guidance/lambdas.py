"""Which λ: do the advantages of the other rollouts foretell the return of this one?

For a step of rollout i in the cell (s, a), from the group without i, at each λ:

    x = mean A^λ of the others in (s, a) − mean A^λ of the others in s
    y = G_i − p_{−i}

A baseline of the state cancels in x, and what luck rollout i had is not in it: given who went
where, E[Σ x·y] = Σ E[x]·(Q(s,a) − V(s)), whatever λ. So the correlation of x and y is highest for
the λ whose advantages are nearest, up to a common scale, to those of the truth. Only cells of at
least two rollouts count, in states with at least two of them; elsewhere the data have no say.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from rtmc.advantages import PooledGAE
from rtmc.advantages.bellman import advantages_of
from rtmc.batch import Floats, mean_by, sum_by
from rtmc.guidance.measured import WORTH, Measured, Sums, measured
from rtmc.guidance.sample import CHAIN, Sample, copies

__all__ = ["LAMBDAS", "Lambdas", "lambda_sums", "lambdas"]

LAMBDAS = (0.0, 0.25, 0.5, 0.75, 1.0)
DEFAULT = LAMBDAS.index(PooledGAE().lam)


class Lambdas(msgspec.Struct, frozen=True):
    """The comparison of λ for ``pooled_gae``.

    Attributes:
        correlation: of x and y at each λ.
        over_default: the same less that of λ = 0.5.
        best: the λ of the highest correlation; 0.5 if no other is higher by ``WORTH``.
        better: ``best`` beats 0.5 by more than noise (``Measured.exceeds``).
        steps: steps that could be judged.
        share: of all steps of live groups.
    """

    correlation: dict[str, Measured]
    over_default: dict[str, Measured]
    best: float
    better: bool
    steps: int
    share: Measured


def lambda_sums(sample: Sample) -> Sums:
    """Sum the products of x and y over a live group's steps, at each λ."""
    tree, batch, n = sample.tree, sample.batch, sample.n_rollouts
    rare = tree.visits < 2
    parts = np.bincount(tree.state_of_cell[~rare], minlength=tree.n_states)
    usable = tree.first_in_cell & ~rare[tree.cell_of_step]
    usable &= (parts >= 2)[tree.state_of_step]
    left_out = sample.left_out
    judged = np.flatnonzero(usable & np.isin(batch.rollout_of_step, left_out))
    nothing = np.zeros(len(LAMBDAS))
    sums = {"xy": nothing, "xx": nothing, "yy": np.zeros(1), "judged": np.zeros(1)}
    sums["steps"] = np.array([float(len(batch.returns))])
    if not len(judged):
        return sums
    others = np.arange(n) != left_out[:, None]
    chained, step_of, copy_of = copies(sample.at(*CHAIN), others)
    values = PooledGAE()(chained).state_values
    assert values is not None
    counts = usable[step_of]
    cells = (copy_of * tree.n_cells + tree.cell_of_step[step_of])[counts]
    states = (copy_of * tree.n_states + tree.state_of_step[step_of])[counts]
    own = batch.rollout_of_step[judged]
    copy = np.searchsorted(left_out, own)
    cell = copy * tree.n_cells + tree.cell_of_step[judged]
    state = copy * tree.n_states + tree.state_of_step[judged]
    size = len(left_out)
    x = np.stack(
        [
            mean_by(a, cells, size * tree.n_cells)[cell]
            - mean_by(a, states, size * tree.n_states)[state]
            for a in (advantages_of(chained, values, lam)[counts] for lam in LAMBDAS)
        ]
    )
    total = sum_by(batch.outcomes, np.zeros(n, dtype=np.int64), 1)
    y = batch.returns[judged] - ((total - batch.outcomes) / (n - 1))[own]
    return sums | {
        "xy": x @ y,
        "xx": (x * x).sum(1),
        "yy": np.array([y @ y]),
        "judged": np.array([float(len(judged))]),
    }


def lambdas(groups: Sequence[Sums]) -> Lambdas:
    """Compare the values of λ."""
    size = len(LAMBDAS)

    def figures(s: Sums) -> Floats:
        scale = np.sqrt(s["xx"] * s["yy"])
        tiny = s["xx"] <= 1e-18 * np.maximum(s["yy"], 1.0)  # nothing but rounding: no x at all
        r = np.where(tiny, 0.0, s["xy"] / np.where(tiny, 1.0, scale))
        r = np.where(s["yy"] > 0, r, np.nan)
        share = s["judged"] / s["steps"]
        return np.concatenate([r, r - r[:, [DEFAULT]], share], -1)

    found = measured(groups, figures, (2 * size + 1,))
    over = found[size : 2 * size]
    values = [one.value for one in found[:size]]
    equal = np.isnan(values[0]) or values[DEFAULT] >= max(values) - WORTH
    best = DEFAULT if equal else int(np.argmax(values))
    names = [f"{lam:g}" for lam in LAMBDAS]
    return Lambdas(
        correlation=dict(zip(names, found[:size], strict=True)),
        over_default=dict(zip(names, over, strict=True)),
        best=LAMBDAS[best],
        better=best != DEFAULT and over[best].exceeds(0.0, size - 1),
        steps=int(sum(g["judged"][0] for g in groups)),
        share=found[-1],
    )
