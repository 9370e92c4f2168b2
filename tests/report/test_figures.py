"""Figures: what is in them, on real groups and on hostile texts, and that they are reproducible."""

import io
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import rtmc
from rtmc.diagnostics import overlap_by_index
from rtmc.errors import AlignmentError
from rtmc.report.figures import (
    comparison,
    count_quadrants,
    draw_quadrants,
    overlap,
    quadrant_bars,
    save,
    spread,
    tree,
)
from rtmc.report.graph import merge
from rtmc.report.ink import advantage_colours, cut, text, text_width
from rtmc.rollouts import Group, Rollout, Step

EXAMPLE = Path(__file__).parents[2] / "examples" / "group.jsonl"
MIXED = [
    "blind-maze-explorer-algorithm", "blind-maze-explorer-algorithm.easy",
    "cartpole-rl-training", "incompatible-python-fasttext", "sanitize-git-repo",
]  # fmt: skip
HOSTILE = [
    "$x^2$ $\\frac{", "<script>alert(1)</script> & -->", "nul\0 esc\x1b[31m",
    "\u202eright \u05d0\u05d1", "x" * 300, "漢字 🎉 \ud800", "", "a\nb\tc", "%s {} \\n",
]  # fmt: skip


def example(estimator: rtmc.RTMC | rtmc.GRPO | rtmc.GRPOStep = rtmc.RTMC()) -> rtmc.Credit:
    (group,) = rtmc.read(EXAMPLE)
    return rtmc.credit(group, rtmc.Config(estimator=estimator))


def three(group: Group) -> dict[str, rtmc.Credit]:
    names = {"GRPO": rtmc.GRPO(), "GRPO+Step": rtmc.GRPOStep(), "RTMC": rtmc.RTMC()}
    return {n: rtmc.credit(group, rtmc.Config(estimator=e)) for n, e in names.items()}


def rollout(name: str, reward: float | None, *actions: str) -> Rollout:
    return Rollout("p", name, tuple(Step(thought=action) for action in actions), reward)


def keyed(*rollouts: Rollout, config: rtmc.Config = rtmc.Config()) -> rtmc.Credit:
    """Credit rollouts whose state is what they did before."""

    def keys(one: Rollout) -> list[tuple[str, str]]:
        done = [step.thought for step in one.steps]
        return [("/".join(done[:t]), action) for t, action in enumerate(done)]

    return rtmc.credit(Group("p", rollouts), config, rtmc.KeySigner(keys))


def texts(figure: Figure) -> list[str]:
    return [t.get_text() for axes in figure.axes for t in axes.texts]


def strips(axes: Axes) -> list[LineCollection]:
    return [c for c in axes.collections if isinstance(c, LineCollection)]


def written(figure: Figure, kind: str) -> bytes:
    file = io.BytesIO()
    save(figure, file, kind)
    return file.getvalue()


# --- the tree ----------------------------------------------------------------------------------


def test_the_tree_of_the_example_group_shows_every_rollout_and_its_end() -> None:
    credit = example()
    shown = Counter(texts(tree(credit)))
    assert shown["dayplan__back-to-back"] == 1
    for r in credit.rollouts:
        assert shown[r.rollout.rollout_id] == 1
    assert (shown["✔"], shown["✘"]) == (4 + 1, 4 + 1)  # one each in the legend
    assert "8 rollouts: 4 passed, 4 failed · RTMC, level paper" in shown
    assert shown["view:full@dayplan/interval.py"] == 1
    assert shown["10 steps"] == 1
    assert shown["8 rollouts"] == 1


def test_every_line_of_the_graph_is_drawn_and_every_step_of_a_chain_has_its_colour() -> None:
    credit = example()
    graph = merge(credit)
    drawn = strips(tree(credit).axes[0])
    sizes = Counter(len(c.get_segments()) for c in drawn)
    for chain in graph.chains:
        assert sizes[len(chain.steps)] >= 1
    assert len(drawn) >= len(graph.edges) + len(graph.chains)
    colours = advantage_colours([credit])
    longest = max(graph.chains, key=lambda chain: len(chain.steps))
    expected = colours.to_rgba(np.array([step.advantage for step in longest.steps]))
    assert any(np.array_equal(c.get_colors(), expected) for c in drawn)


def test_the_line_of_more_rollouts_is_wider() -> None:
    credit = example()
    widths = [float(c.get_linewidths()[0]) for c in strips(tree(credit).axes[0])]
    assert max(widths) == 7.0  # the first step, of all eight rollouts
    assert min(widths) == 1.6  # of one


def test_no_two_texts_of_the_example_lie_on_one_another() -> None:
    for width in (None, 3.5, 7.0, 20.0):
        figure = tree(example(), width)
        boxes = [t.get_window_extent() for t in figure.axes[0].texts]
        for i, one in enumerate(boxes):
            for other in boxes[:i]:
                shared = one.intersection(one, other)
                assert shared is None or shared.width < 1 or shared.height < 1.5
        right = max(box.x1 for box in boxes)
        assert right <= figure.bbox.width


def test_a_narrow_tree_is_as_narrow_as_asked() -> None:
    for width in (3.0, 5.0, 12.0):
        assert tree(example(), width).get_figwidth() == width
        assert comparison(three(*rtmc.read(EXAMPLE)), width).get_figwidth() == width


def test_rollouts_without_credit_are_dotted() -> None:
    credit = keyed(rollout("a", 1.0, "x"), rollout("b", None, "y"))
    first = strips(tree(credit).axes[0])[:2]
    assert sorted(c.get_linestyle()[0][1] is not None for c in first) == [False, True]
    assert "○" in texts(tree(credit))


def test_the_height_follows_the_rows() -> None:
    def height(count: int) -> float:
        return tree(keyed(*(rollout(f"r{i}", 1.0, str(i)) for i in range(count)))).get_figheight()

    assert height(20) - height(10) == pytest.approx(10 * 0.38)
    assert height(300) < 45  # a png can be 65,535 dots high


def test_lines_that_lead_back_and_loops_are_drawn() -> None:
    signer = rtmc.KeySigner(lambda r: [(step.thought[0], step.thought[1]) for step in r.steps])
    walks = ("sx ax sy bx", "sx ax bx sy cx", "sy sx bx ay")
    rollouts = [
        Rollout("p", walk, tuple(Step(thought=w) for w in walk.split()), float(i == 0))
        for i, walk in enumerate(walks)
    ]
    credit = rtmc.credit(Group("p", tuple(rollouts)), signer=signer)
    graph = merge(credit)
    assert not all(edge.forward for edge in graph.edges)
    for kind in ("png", "svg"):
        assert written(tree(credit), kind)
    assert "↻1" in texts(tree(credit))


@pytest.mark.parametrize(
    "rollouts",
    [(), (rollout("a", 1.0),), (rollout("a", None), rollout("b", 0.0)), (rollout("a", 1.0, "x"),)],
    ids=["empty", "no step", "no steps", "one step"],
)
def test_degenerate_groups_are_drawn(rollouts: tuple[Rollout, ...]) -> None:
    credit = keyed(*rollouts)
    for figure in (
        tree(credit),
        comparison({"a": credit, "b": credit}),
        quadrant_bars(credit, credit),
    ):
        assert written(figure, "png").startswith(b"\x89PNG")


def test_a_large_group_is_drawn() -> None:
    rollouts = [
        rollout(f"r{i}", float(i % 2), *(f"a{t % 3 if t < 6 else i}.{t}" for t in range(100)))
        for i in range(64)
    ]
    credit = keyed(*rollouts)
    assert written(tree(credit), "png")
    figure = comparison({"RTMC": credit})
    assert written(figure, "png")
    assert figure.get_figheight() < 15


# --- the comparison ----------------------------------------------------------------------------


def test_a_panel_an_estimator_with_passing_rollouts_first_on_one_scale() -> None:
    credits = three(*rtmc.read(EXAMPLE))
    figure = comparison(credits)
    panels = [
        axes for axes in figure.axes if any(isinstance(c, QuadMesh) for c in axes.collections)
    ]
    panels = [axes for axes in panels if len(axes.get_yticks()) == 0 and axes.get_ylim() == (8, 0)]
    assert len(panels) == 3
    meshes = [next(c for c in p.collections if isinstance(c, QuadMesh)) for p in panels]
    assert len({mesh.get_clim() for mesh in meshes}) == 1
    order = [
        "shell",
        "reproduce",
        "repeat",
        "refused_edit",
        "one_place",
        "off_by_one",
        "edit_tests",
        "give_up",
    ]
    shown = texts(figure)
    assert [t for t in shown if t in order] == order
    for name in credits:
        assert name in shown
    first_row = np.ma.filled(np.ma.asarray(meshes[2].get_array(), dtype=float), np.nan).reshape(
        8, -1
    )[0]
    np.testing.assert_array_equal(first_row[:11], credits["RTMC"].rollouts[0].advantages)
    assert np.isnan(first_row[11:]).all()


def test_a_dot_marks_a_sign_that_differs_from_the_first_panel() -> None:
    # two of three that begin with x fail: by RTMC, x is bad for the one that passes, too
    credit = [
        keyed(
            rollout("a", 1.0, "x", "g"), rollout("b", 0.0, "x", "h"), rollout("c", 0.0, "x", "h"),
            rollout("d", 1.0, "y"), config=rtmc.Config(estimator=estimator, beta=0),
        )
        for estimator in (rtmc.GRPO(), rtmc.RTMC())
    ]  # fmt: skip
    figure = comparison({"GRPO": credit[0], "RTMC": credit[1]})
    dots = [line.get_xydata().tolist() for axes in figure.axes for line in axes.lines]
    assert [[0.5, 0.5]] in dots  # a, step 0
    assert sum(map(len, dots)) == 1


def test_steps_without_credit_are_hatched_and_what_is_no_step_is_blank() -> None:
    credit = keyed(rollout("a", 1.0, "x", "y"), rollout("b", 0.0, "x"), rollout("c", None, "x"))
    figure = comparison({"RTMC": credit})
    hatched = [
        p
        for axes in figure.axes
        for p in axes.patches
        if isinstance(p, Rectangle) and p.get_hatch()
    ]
    assert [(p.get_xy(), p.get_width()) for p in hatched] == [((0, 2), 1)]
    assert "hatched: no credit" in texts(figure)


def test_credits_of_different_rollouts_are_refused() -> None:
    one, other = keyed(rollout("a", 1.0, "x")), keyed(rollout("a", 1.0, "x", "y"))
    with pytest.raises(
        AlignmentError, match="the credit by B is not of the same rollouts as the first"
    ):
        comparison({"A": one, "B": other})
    with pytest.raises(AlignmentError, match="the reference is not of the same rollouts"):
        quadrant_bars(one, other)


# --- quadrants and overlap ---------------------------------------------------------------------


def test_quadrants_of_the_example_group_are_written_into_the_bars() -> None:
    rtmc_credit, reference = example(), example(rtmc.GRPOStep())
    counts = count_quadrants(rtmc_credit, reference)
    assert sum(sum(of.values()) for of in counts.values()) == 81
    shown = texts(quadrant_bars(rtmc_credit, reference))
    assert "Signs of the steps: RTMC against GRPO+Step" in shown
    assert "49 steps" in shown
    assert "32 steps" in shown
    for of in counts.values():
        for count in filter(None, of.values()):
            assert str(count) in shown or any(t.endswith(f" · {count}") for t in shown)
    assert any("rescued: GRPO+Step −, RTMC +" in t for t in shown)


def test_a_share_too_narrow_for_its_number_has_it_below() -> None:
    zeros = dict.fromkeys(("rescued", "neutral"), 0)
    counts = {
        "passing": {"both +": 995, "both −": 1, "penalised": 4} | zeros,
        "failing": {"both +": 0, "both −": 0, "penalised": 0} | zeros,
    }
    shown = texts(draw_quadrants(counts, "A", "B"))
    assert {"995", "< 1 % · 1", "< 1 % · 4", "none", "1000 steps", "0 steps"} <= set(shown)


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0.05, 0.4)), max_size=6))
def test_spread_labels_do_not_meet(labels: list[tuple[float, float]]) -> None:
    labels.sort()
    centres = spread([centre for centre, _ in labels], [half for _, half in labels], 0, 10)
    boxes = [(c - half, c + half) for c, (_, half) in zip(centres, labels, strict=True)]
    assert all(a[1] < b[0] for a, b in pairwise(boxes))
    assert all(low >= -1e-9 and high <= 10 + 1e-9 for low, high in boxes)


def test_overlap_draws_a_line_a_level() -> None:
    # states "", x of both; x/y of a alone
    found = overlap_by_index(keyed(rollout("a", 1.0, "x", "y", "z"), rollout("b", 0.0, "x", "w")))
    assert found.tolist() == [[2, 2, 0], [2, 2, 1]]
    figure = overlap({"paper": found, "full": found[:, :2]})
    upper, lower = figure.axes
    assert [line.get_ydata().tolist() for line in upper.lines] == [[1, 1, 0], [1, 1]]
    assert [entry.get_text() for entry in upper.get_legend().get_texts()] == ["paper", "full"]
    assert len({line.get_linestyle() for line in upper.lines}) == 2  # never colour alone
    assert lower.get_xlabel() == "step"
    assert written(overlap({}), "svg")


def test_overlap_by_index_of_nothing_is_empty() -> None:
    assert overlap_by_index(keyed()).shape == (2, 0)


# --- files -------------------------------------------------------------------------------------


def test_the_same_figure_is_the_same_bytes() -> None:
    for kind in ("svg", "pdf", "png"):
        assert written(tree(example()), kind) == written(tree(example()), kind)
    svg = written(tree(example()), "svg")
    assert b"<dc:date>" not in svg
    assert b"CreationDate" not in written(tree(example()), "pdf")


def test_the_settings_of_the_user_do_not_matter() -> None:
    plain = written(tree(example()), "svg")
    with mpl.rc_context({"text.usetex": True, "font.family": "serif", "svg.fonttype": "none"}):
        assert written(tree(example()), "svg") == plain


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_texts_are_drawn_as_they_are(hostile: str) -> None:
    def keys(one: Rollout) -> list[tuple[str, str]]:
        return [(hostile + str(t), hostile) for t in range(len(one.steps))]

    rollouts = [Rollout(hostile, hostile + str(i), (Step(),) * 3, float(i)) for i in range(2)]
    credit = rtmc.credit(Group(hostile, tuple(rollouts)), signer=rtmc.KeySigner(keys, hostile))
    for figure in (
        tree(credit), comparison({hostile: credit, "b": credit}),
        draw_quadrants(count_quadrants(credit, credit), hostile, hostile),
        overlap({hostile: overlap_by_index(credit)}),
    ):  # fmt: skip
        for kind in ("svg", "pdf"):
            assert b"<script>" not in written(figure, kind)
        assert figure.get_figwidth() <= 13


def test_text_keeps_what_the_font_has() -> None:
    assert text("$a$ ✔ é") == "$a$ ✔ é"
    assert text("漢a🎉") == "□a□"
    assert text("a\0b\u202e") == r"a\x00b\u202e"
    assert text("y" * 500) == "y" * 399 + "…"


def test_cut_fits_the_room() -> None:
    whole = "modify:ac61@dayplan/interval.py"
    assert cut(whole, 10, 7) == whole
    shorter = cut(whole, 1.0, 7)
    assert shorter.endswith("…")
    assert text_width(shorter, 7) <= 1.0
    assert cut(whole, 0.1, 7) == ""


def test_without_matplotlib_the_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from rtmc.errors import MissingExtraError\n"
        "try:\n    import rtmc.report.figures\n"
        "except MissingExtraError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "matplotlib is not installed; this needs the extra 'figures': pip install 'rtmc[figures]'\n"
    )


@pytest.mark.parametrize("problem", MIXED)
def test_real_groups_are_drawn(real: Path, problem: str) -> None:
    groups = rtmc.read(real / "groups" / "terminal-bench.jsonl")
    group = next(g for g in groups if g.problem_id == problem)
    credits = three(group)
    figure = tree(credits["RTMC"])
    shown = texts(figure)
    assert {r.rollout_id for r in group.rollouts} <= set(shown)
    for one in (figure, comparison(credits)):
        assert one.get_figwidth() <= 13
        assert written(one, "svg")
