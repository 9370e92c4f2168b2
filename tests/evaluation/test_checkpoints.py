"""The best checkpoint, and how much too high its figure is: by hand and by simulation."""

import numpy as np
import pytest

from rtmc.errors import OptionError
from rtmc.evaluation import Evaluation, best_checkpoint
from tallies import tallied


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_highest_on_the_shared_problems_is_picked() -> None:
    first = tallied("first", p=(1, 4), q=(1, 4), easy=(4, 4))
    second = tallied("second", p=(3, 4), q=(1, 4), none=(0, 0))
    best = best_checkpoint([first, second], generator())
    assert (best.at, best.name) == (1, "second")
    assert [figure.value for figure in best.pass_at_1] == [0.25, 0.5]
    assert best.left_out == ("easy", "none")


def test_of_equal_ones_the_first_is_picked() -> None:
    # 0.1 + 0.2 and 0.3 are one rate
    equal = [tallied("x", p=(3, 10), q=(0, 10)), tallied("y", p=(1, 10), q=(2, 10))]
    assert best_checkpoint(equal, generator()).at == 0
    assert best_checkpoint([equal[0]] * 3, generator()).again == 1.0


def test_optimism_of_two_by_hand() -> None:
    # two problems, each solved by one checkpoint only. A resample has both (½): no luck, the
    # first is picked; or one twice (¼ each): the winner scores 1 instead of ½. Mean ½·½ = ¼.
    best = best_checkpoint([tallied("x", p=(1, 1), q=(0, 1)), tallied("y", p=(0, 1), q=(1, 1))],
                           generator())  # fmt: skip
    assert best.optimism == pytest.approx(0.25, abs=0.02)
    assert best.optimism_if_equal == pytest.approx(0.25, abs=0.02)
    assert best.again == pytest.approx(0.75, abs=0.03)


def test_a_clear_winner_is_hardly_flattered() -> None:
    worse = {f"p{i}": (i % 3 == 0, 1) for i in range(60)}
    better = {f"p{i}": (i % 3 != 0, 1) for i in range(60)}
    best = best_checkpoint([tallied("x", **worse), tallied("y", **better)], generator())
    assert best.name == "y"
    assert best.again > 0.97
    assert abs(best.optimism) < 0.01
    assert best.optimism_if_equal > 0.02


def drawn(random: np.random.Generator, spread: float) -> tuple[list[Evaluation], np.ndarray]:
    """Five checkpoints on 60 problems, and their true means."""
    ease = random.normal(0, 2, 60)
    shift = random.normal(0, spread, 5)
    of_each = ease + shift[:, None] + random.normal(0, 1, (5, 60))
    passed = random.binomial(3, 1 / (1 + np.exp(-of_each)))
    grid = random.normal(0, 5**0.5, 4_000)
    truth = np.array([(1 / (1 + np.exp(-(grid + s)))).mean() for s in shift])
    made = [tallied(f"c{b}", **{f"p{i}": (int(c), 3) for i, c in enumerate(row)})
            for b, row in enumerate(passed)]  # fmt: skip
    return made, truth


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_the_true_bias_lies_between_the_two_estimates(spread: float) -> None:
    random = generator(6)
    rows = []
    for _ in range(30):
        made, truth = drawn(random, spread)
        best = best_checkpoint(made, random)
        value = best.pass_at_1[best.at].value
        assert value is not None
        rows.append((value - truth[best.at], best.optimism, best.optimism_if_equal))
    bias, low, high = np.mean(rows, axis=0)
    error = np.std(rows, axis=0)[0] / len(rows) ** 0.5
    assert low - 2 * error < bias < high + 2 * error
    assert low < high


def test_held_out_is_that_of_the_picked_one() -> None:
    made = [tallied("x", p=(0, 1)), tallied("y", p=(1, 1))]
    others = [tallied("x", q=(1, 1), r=(1, 1)), tallied("y", q=(1, 1), r=(0, 1))]
    best = best_checkpoint(made, generator(), others)
    assert best.held_out is not None
    assert best.held_out.value == 0.5


def test_what_cannot_be_picked_from_is_refused() -> None:
    x, y = tallied("x", p=(0, 1)), tallied("y", p=(1, 1))
    with pytest.raises(OptionError, match="1 checkpoint to pick from"):
        best_checkpoint([x], generator())
    with pytest.raises(OptionError, match="share no problem"):
        best_checkpoint([x, tallied("y", q=(1, 1))], generator())
    with pytest.raises(OptionError, match="different --incomplete or --unknown"):
        best_checkpoint([x, tallied("y", incomplete="exclude", p=(1, 1))], generator())
    with pytest.raises(OptionError, match="1 evaluations on held-out problems for 2"):
        best_checkpoint([x, y], generator(), [tallied("x", q=(1, 1))])
    with pytest.raises(OptionError, match="x: problem 'p' was used to pick"):
        best_checkpoint([x, y], generator(), [x, tallied("y", q=(1, 1))])
