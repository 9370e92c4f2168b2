"""The tree: its layout, folding, zoom, keys, and what a picked rollout lights up."""

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import Opened, number
from pages import EDGE, REAL, STATUS, kinds, near, rollout, unfold_all
from rtmc import Config, credit
from rtmc.report.page import open_page
from rtmc.report.page.data import Keys, Known, SignedGroup, sign_group
from rtmc.rollouts import Group, Rollout, Step
from rtmc.signatures import Signatures

LAYOUT = """async ([at, name, mode]) => {
  const group = await openGroup(at);
  const level = group.byName.get(name);
  const drawn = layOut(group, level, mode === 'all' ? 'all' : new Set());
  const states = [...drawn.order.keys()];
  return {
    edges: drawn.edges.map((edge) => ({
      from: edge.from, to: edge.to, steps: edge.steps, inner: edge.states || [],
      tree: drawn.isTree(edge),
    })),
    states, stays: states.flatMap((state) => drawn.nodes.get(state).stays),
    row: [...drawn.row], column: [...drawn.column],
  };
}"""


def graph_of(group: Group, keys: Keys) -> tuple[set[int], Counter[tuple[int, int, int]], int]:
    """Give the states, the edges (state, action, target) with their steps, and the stays."""
    states, edges, stays, at = set(), Counter[tuple[int, int, int]](), 0, 0
    for r, one in enumerate(group.rollouts):
        own = range(at, at + len(one.steps))
        at += len(one.steps)
        for i in own:
            here = int(keys.states[i])
            target = int(keys.states[i + 1]) if i + 1 in own else -1 - r
            states.add(here)
            if target == here:
                stays += 1
            else:
                edges[here, int(keys.actions[i]), target] += 1
    return states, edges, stays


def check_layout(browser: Opened, at: int, signed: SignedGroup, keys: Keys) -> None:
    states, edges, stays = graph_of(signed.group, keys)
    n = len(keys.states)
    for mode in ("all", "folded"):
        drawn = browser.page.evaluate(LAYOUT, [at, keys.level, mode])
        what = f"group {at} at {keys.level}, {mode}"
        inner = [state for edge in drawn["edges"] for state in edge["inner"]]
        # every step once: on an edge, in a chain, or a stay of a state that is drawn
        once = sorted([i for edge in drawn["edges"] for i in edge["steps"]] + drawn["stays"])
        assert once == list(range(n)), what
        assert sorted(drawn["states"] + inner) == sorted(states), what
        assert len(drawn["edges"]) + len(inner) == len(edges), what
        if mode == "all":
            assert inner == [], what
            assert len(drawn["stays"]) == stays, what
            shown = {
                (e["from"], int(keys.actions[e["steps"][0]]), e["to"]): len(e["steps"])
                for e in drawn["edges"]
            }
            assert shown == dict(edges), what
        row, column = dict(drawn["row"]), dict(drawn["column"])
        ends = [edge["to"] for edge in drawn["edges"] if edge["to"] < 0]
        assert sorted(ends) == sorted(-1 - r for r, one in enumerate(signed.group.rollouts)
                                      if one.steps), what  # fmt: skip
        assert len({row[end] for end in ends}) == len(ends), f"{what}: two ends in one row"
        places = [(row[p], column[p]) for p in [*drawn["states"], *ends]]
        assert len(set(places)) == len(places), f"{what}: two marks in one place"
        parents = Counter(edge["to"] for edge in drawn["edges"] if edge["tree"])
        for edge in drawn["edges"]:
            if edge["tree"]:
                assert column[edge["from"]] < column[edge["to"]], f"{what}: {edge} runs back"
        # each state but the first hangs on one other, by one or several actions
        assert set(parents) == {*drawn["states"], *ends} - roots(signed.group, keys), what


def roots(group: Group, keys: Keys) -> set[int]:
    at = np.cumsum([0, *(len(one.steps) for one in group.rollouts)])
    return {int(keys.states[i]) for i, one in zip(at, group.rollouts, strict=False) if one.steps}


def random_groups() -> list[SignedGroup]:
    """Groups of few files and commands, so that their rollouts meet, part and undo."""
    chance = random.Random(5)
    words = ["pytest", "ls", "submit", *(f"cat f{i}" for i in range(3)), "sed -i s/a/b/ f1",
             "git checkout f1", "echo 1 > f2", "rm f2"]  # fmt: skip
    groups = []
    for at in range(20):
        lead = chance.choices(words, k=chance.randrange(4))
        rollouts = tuple(
            rollout(
                str(r),
                ";".join([*lead, *chance.choices(words, k=chance.randrange(9))]),
                chance.choice([0.0, 1.0, None]),
            )
            for r in range(chance.randint(1, 6))
        )
        groups.append(sign_group(Group(f"random {at}", rollouts), Config()))
    return groups


def random_walks() -> list[SignedGroup]:
    """Groups whose states are those of random walks from one start: every kind of cycle."""
    chance = random.Random(6)
    groups = []
    for at in range(40):
        lengths = [chance.randrange(12) for _ in range(chance.randint(1, 9))]
        size, width = chance.randint(2, 9), chance.randint(1, 2)
        ways = [chance.choices(range(size), k=chance.randint(1, 3)) for _ in range(size)]
        numbers: dict[int, int] = {}
        states, actions = [], []
        for length in lengths:
            here = 0
            for _ in range(length):
                states.append(numbers.setdefault(here, len(numbers)))
                actions.append(chance.randrange(width))
                here = chance.choice(ways[here])
        found, back = np.unique(np.array(actions, dtype=int), return_inverse=True)
        keys = Keys("walk", np.array(states, dtype=int), back, [f"s{i}" for i in numbers],
                    [f"a{i}" for i in found])  # fmt: skip
        signatures = Signatures(
            keys.states[:, None], keys.actions[:, None], np.zeros(len(states), dtype=np.int64),
            keys.state_keys, keys.action_keys,
        )  # fmt: skip
        rollouts = tuple(
            Rollout("p", str(r), (Step(),) * length, float(chance.random() < 0.5))
            for r, length in enumerate(lengths)
        )
        signer = Known(("walk",), signatures)
        groups.append(SignedGroup(Group(f"walk {at}", rollouts), (keys,), "walk", signer))
    return groups


@pytest.mark.parametrize("make", [random_groups, random_walks])
def test_layout_of_random_groups(make: Any, browser: Opened, tmp_path: Path) -> None:
    groups = make()
    with open_page(tmp_path / "r.html", Config()) as page:
        for signed in groups:
            page.add(signed)
    browser.open(tmp_path / "r.html")
    for at, signed in enumerate(groups):
        for keys in signed.keys:
            check_layout(browser, at, signed, keys)


def test_layout_of_the_example_and_of_groups_of_every_kind(
    browser: Opened, example_page: Path, kinds_page: Path, example: Group
) -> None:
    for path, groups in ((example_page, [example]), (kinds_page, kinds())):
        browser.open(path)
        for at, group in enumerate(groups):
            signed = sign_group(group, Config())
            for keys in signed.keys:
                check_layout(browser, at, signed, keys)


def test_layout_of_the_real_groups(
    browser: Opened, real_page: Path, real_groups: list[Group]
) -> None:
    browser.open(real_page)
    for at, group in enumerate(real_groups):
        if group.problem_id in REAL:
            signed = sign_group(group, Config())
            for keys in signed.keys:
                check_layout(browser, at, signed, keys)
        else:
            assert browser.page.evaluate(LAYOUT, [at, "paper", "folded"])["edges"]


def test_the_tree_draws_every_state_and_edge(
    browser: Opened, example_page: Path, example: Group
) -> None:
    keys = next(k for k in sign_group(example, Config()).keys if k.level == "paper")
    states, edges, _ = graph_of(example, keys)
    browser.open(example_page, "#/group/0/tree")
    unfold_all(browser)
    assert browser.text(STATUS) == f"{len(states)} states and {len(edges)} edges drawn"
    assert browser.page.locator(EDGE).count() == len(edges)
    assert browser.page.locator("svg.tree circle.state").count() == len(states)
    # ends: a shape, and a name, of every rollout
    assert Counter(text[0] for text in browser.texts("svg.tree .end")) == {"✔": 4, "✘": 4}
    assert set(browser.texts("svg.tree .name")) == {r.rollout_id for r in example.rollouts}


def test_ends_of_other_kinds_have_shapes_of_their_own(browser: Opened, kinds_page: Path) -> None:
    browser.open(kinds_page, "#/group/0/tree")
    assert sorted(text[0] for text in browser.texts("svg.tree .end")) == ["?", "○", "✔", "✔", "✘"]
    said = [text.split(": ")[-1] for text in browser.texts("svg.tree .ending title")]
    assert sorted(said) == ["failed", "incomplete", "passed", "passed", "unknown"]


def test_chains_fold_and_unfold(browser: Opened, example_page: Path) -> None:
    browser.open(example_page, "#/group/0/tree")
    chains = browser.page.locator('.item[aria-label^="Folded chain"]')
    folded, edges = chains.count(), browser.page.locator(EDGE).count()
    assert folded > 2
    steps = number(chains.first.get_attribute("aria-label").removeprefix("Folded chain of "))
    chains.first.dispatch_event("click")
    assert browser.text(".detail h2") == f"{steps:.0f} steps in which nothing parts"
    assert browser.page.locator(".detail .steps li").count() == steps
    browser.page.get_by_role("button", name="Unfold in the tree").click()
    assert chains.count() == folded - 1
    assert browser.page.locator(EDGE).count() == edges + steps - 1
    unfold_all(browser)
    assert chains.count() == 0
    pressed = browser.page.get_by_role("button", name="Unfold all")
    assert pressed.get_attribute("aria-pressed") == "true"
    pressed.click()
    assert chains.count() == folded
    assert pressed.get_attribute("aria-pressed") == "false"


def test_the_picture_zooms_and_moves(browser: Opened, example_page: Path) -> None:
    browser.open(example_page, "#/group/0/tree")

    def place() -> list[float]:
        transform = browser.page.get_attribute("svg.tree > g", "transform")
        return [float(x) for x in re.findall(r"-?[\d.]+", transform)]

    def after(act: Any) -> list[float]:
        act()
        return place()

    first = place()
    press = browser.page.keyboard.press
    click = browser.page.get_by_role
    assert after(click("button", name="Zoom in").click)[2] == pytest.approx(first[2] * 1.25)
    assert after(click("button", name="Zoom out").click)[2] == pytest.approx(first[2], rel=1e-3)
    browser.page.focus("svg.tree")
    assert after(lambda: press("+"))[2] == pytest.approx(first[2] * 1.25, rel=1e-3)
    assert after(lambda: press("-"))[2] == pytest.approx(first[2], rel=1e-3)
    before = place()
    assert after(lambda: press("Shift+ArrowRight")) == [before[0] - 60, *before[1:]]
    assert after(lambda: press("Shift+ArrowDown"))[1] == pytest.approx(before[1] - 60)
    whole = after(lambda: press("0"))
    browser.page.focus("svg.tree")
    browser.page.hover("svg.tree")
    browser.page.mouse.wheel(0, -300)
    browser.settled()
    assert place()[2] > whole[2]
    assert after(click("button", name="Fit").click) == whole
    # fitted, all of it is in the picture
    inside = browser.page.evaluate(
        """() => {
          const room = document.querySelector('svg.tree').getBoundingClientRect();
          return [...document.querySelectorAll('.state, .end')].every((mark) => {
            const box = mark.getBoundingClientRect();
            return box.left >= room.left && box.right <= room.right
              && box.top >= room.top && box.bottom <= room.bottom;
          });
        }"""
    )
    assert inside
    # and a drag moves it, without opening what lies under the pointer
    box = browser.page.locator("svg.tree").bounding_box()
    browser.page.mouse.move(box["x"] + 300, box["y"] + 150)
    browser.page.mouse.down()
    browser.page.mouse.move(box["x"] + 340, box["y"] + 170, steps=4)
    browser.page.mouse.up()
    assert place()[:2] == [pytest.approx(whole[0] + 40), pytest.approx(whole[1] + 20)]
    assert browser.text(".detail h2 >> nth=0") == "Where they part"


def test_arrow_keys_walk_the_edges_and_enter_opens_one(browser: Opened, example_page: Path) -> None:
    browser.open(example_page, "#/group/0/tree")
    focused = "document.activeElement.getAttribute('aria-label')"
    press = browser.page.keyboard.press
    browser.page.focus("svg.tree")
    press("ArrowRight")
    first = browser.page.evaluate(focused)
    assert first.startswith("view:full@dayplan/schedule.py, taken by 8 rollouts")
    press("ArrowRight")
    second = browser.page.evaluate(focused)
    assert second != first
    press("ArrowDown")
    below = browser.page.evaluate(focused)
    assert below not in (first, second)
    press("ArrowUp")
    assert browser.page.evaluate(focused) == second
    press("ArrowLeft")
    assert browser.page.evaluate(focused) == first
    press("ArrowLeft")  # there is nothing before it
    assert browser.page.evaluate(focused) == first
    press("Enter")
    assert browser.text(".detail h2") == "view:full@dayplan/schedule.py"
    browser.page.locator(EDGE).first.focus()
    press("ArrowRight")
    press("Space")
    assert browser.text(".detail h2") == second.split(", taken")[0]
    # to the end of a rollout, and no further
    browser.page.locator(EDGE).first.focus()
    for _ in range(40):
        press("ArrowRight")
    end = browser.page.evaluate(focused)
    press("ArrowRight")
    assert browser.page.evaluate(focused) == end
    # focus stays in view, and only one edge is in the order of tabs
    assert browser.page.locator('.item[tabindex="0"]').count() == 1
    box = browser.page.evaluate(
        """() => {
          const room = document.querySelector('svg.tree').getBoundingClientRect();
          const box = document.activeElement.getBoundingClientRect();
          return box.right > room.left && box.left < room.right
            && box.bottom > room.top && box.top < room.bottom;
        }"""
    )
    assert box


def test_picking_a_rollout_lights_its_edges_and_no_other(
    browser: Opened, example_page: Path, example: Group
) -> None:
    keys = next(k for k in sign_group(example, Config()).keys if k.level == "paper")
    browser.open(example_page, "#/group/0/tree")
    unfold_all(browser)
    lit, dim = browser.page.locator(f"{EDGE}.lit"), browser.page.locator(f"{EDGE}.dim")
    at = np.cumsum([0, *(len(r.steps) for r in example.rollouts)])
    for r, one in enumerate(example.rollouts):
        alone = Group("p", (one,))
        own = slice(at[r], at[r + 1])
        _, edges, _ = graph_of(alone, Keys("paper", keys.states[own], keys.actions[own], [], []))
        button = browser.page.locator(".rollouts button", has_text=one.rollout_id)
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert browser.page.locator('.rollouts [aria-pressed="true"]').count() == 1
        assert lit.count() == len(edges)
        assert dim.count() == browser.page.locator(EDGE).count() - len(edges)
        names = browser.page.locator("svg.tree .name:not(.dim, .dim *)").all_text_contents()
        assert names == [one.rollout_id]
        # beside it: its steps with their advantages
        assert browser.text(".detail h2").strip() == f"✔ {one.rollout_id}".replace(
            "✔", "✔" if one.reward else "✘"
        )
        values = browser.texts(".detail .steps .value")
        expected = credit(example).rollouts[r].advantages
        assert len(values) == len(expected)
        assert all(near(v, a, 3) for v, a in zip(values, expected, strict=True))
    button.click()
    assert lit.count() == 0
    assert dim.count() == 0
