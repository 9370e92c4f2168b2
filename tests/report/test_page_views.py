"""Every part of the page in a real browser: what it shows is what the Python package says."""

import json
import math
import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from browser import Opened, chromium, number, write_page
from rtmc import Config, Credit, credit, read
from rtmc.advantages import ESTIMATORS, GRPO, RTMC, GRPOStep
from rtmc.cli import main
from rtmc.diagnostics import diagnose, overlap_by_index, quadrants
from rtmc.report.page import open_page
from rtmc.report.page.data import Keys, Known, SignedGroup, sign_group
from rtmc.rollouts import Group, Rollout, Step, ToolCall, encode_rollout
from rtmc.signatures import Signatures

EXAMPLE = Path(__file__).parents[2] / "examples" / "group.jsonl"
REAL = {
    "blind-maze-explorer-algorithm",
    "blind-maze-explorer-algorithm.easy",
    "cartpole-rl-training",
    "incompatible-python-fasttext",
    "sanitize-git-repo",
}
"""The real groups with rollouts of different known outcome."""


@pytest.fixture(scope="module")
def chrome() -> Iterator[Opened]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def browser(chrome: Opened) -> Iterator[Opened]:
    """Lend the browser, which must have logged nothing and asked the network for nothing."""
    chrome.forget()
    yield chrome
    assert chrome.problems == []
    assert chrome.requests == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def example() -> Group:
    (group,) = read(str(EXAMPLE))
    return group


@pytest.fixture(scope="module")
def example_page(folder: Path, example: Group) -> Path:
    return write_page(folder / "example.html", [example])


@pytest.fixture(scope="module")
def kinds_page(folder: Path) -> Path:
    return write_page(folder / "kinds.html", kinds())


_cache: dict[str, Any] = {}


@pytest.fixture
def real_groups(real: Path) -> list[Group]:
    if "groups" not in _cache:
        _cache["groups"] = read(str(real / "groups" / "terminal-bench.jsonl"))
    return _cache["groups"]


@pytest.fixture
def real_page(folder: Path, real_groups: list[Group]) -> Path:
    path = folder / "real.html"
    return path if path.exists() else write_page(path, real_groups, title="real groups")


def bash(command: str, output: str = "") -> Step:
    return Step((ToolCall("bash", {"command": command}, output, 0),), thought=f"I run {command}")


def rollout(name: str, commands: str, reward: float | None, stop: str | None = None) -> Rollout:
    steps = tuple(bash(command) for command in commands.split(";") if command)
    return Rollout("p", name, steps, reward, stop_reason=stop)


def kinds() -> list[Group]:
    """Groups of every kind of outcome."""
    mixed = (
        rollout("a", "ls;pytest;pytest;ls", 1.0),
        rollout("b", "ls;cat x.py;sed -i s/a/b/ x.py;pytest;submit", 0.0),
        rollout("c", "", 0.0),
        rollout("d", "ls;cat x.py;pytest", 0.2, "max_steps"),
        rollout("e", "ls;cat x.py;cat y.py", None),
        rollout("f", "ls", 1.0),
    )
    return [
        Group("mixed", mixed),
        Group("all passed", (rollout("a", "ls;pytest", 1.0), rollout("b", "ls;ls", 1.0))),
        Group("none passed", (rollout("a", "ls;pytest", 0.0), rollout("b", "ls;ls", 0.0))),
        Group("unknown", (rollout("a", "ls", None), rollout("b", "cat x.py;ls", None))),
        Group("single", (rollout("a", "ls;pytest", 1.0),)),
        Group("No step", (rollout("a", "", 1.0), rollout("b", "", 0.0))),
    ]


def plain(text: str) -> str:
    return text.replace("−", "-")


def near(text: str, value: float, digits: int = 4) -> bool:
    """Tell whether a text shows a value, rounded; a dash shows that there is none."""
    shown = number(text)
    if shown is None or math.isnan(value):
        return shown is None and math.isnan(value)
    return abs(shown - value) <= 0.5 * 10**-digits + 1e-9


def percent(part: float, whole: float) -> str:
    return f"{math.floor(100 * part / whole + 0.5)} %" if whole else "–"


# --- the overview ------------------------------------------------------------------------------

COLUMNS = ["Problem", "Rollouts", "Outcomes", "Steps", "Overlap", "Branching", "Partings",
           "Winners’ A < 0", "Largest |A|"]  # fmt: skip


def row_values(group: Group) -> tuple[Any, ...]:
    """Compute what the overview sorts a group by, in the order of its columns."""
    found = credit(group)
    d = diagnose(found)
    overlap = d.overlap["paper"]
    a = np.concatenate([np.zeros(0), *found.advantages])
    done: dict[Any, dict[int, set[str]]] = {}
    for r, one in enumerate(found.rollouts):
        for state, action in zip(one.states, one.actions, strict=True):
            done.setdefault(state, {}).setdefault(r, set()).add(action)
    live = not (d.uniform_groups or d.singleton_groups or d.empty_groups)
    return (
        group.problem_id,
        d.rollouts,
        d.passed / max(d.rollouts, 1),
        d.steps,
        overlap.share,
        overlap.branching,
        sum(len({frozenset(what) for what in by.values()}) > 1 for by in done.values()),
        d.winner_negative / d.winner_steps if d.winner_steps else -1,
        float(np.abs(a[~np.isnan(a)]).max(initial=0)) if live else -1,
    )


def check_overview(browser: Opened, groups: list[Group], level: str = "paper") -> None:
    found = credit(groups)
    d = diagnose(found)
    tiles = dict(zip(browser.texts(".tiles dt"), browser.texts(".tiles div"), strict=True))
    overlap = d.overlap[level]
    assert tiles["groups"] == f"groups{len(groups)}"
    statuses = [f"{getattr(d, s)} {s}" for s in ("passed", "failed", "incomplete", "unknown")
                if getattr(d, s)]  # fmt: skip
    assert tiles["rollouts"] == f"rollouts{d.rollouts}{', '.join(statuses)}"
    assert tiles["steps"] == f"steps{d.steps}"
    assert tiles["overlap"].startswith(f"overlap{percent(overlap.share, 1)}")
    assert tiles["singleton states"] == (
        f"singleton states{percent(overlap.singletons, overlap.states)}of {overlap.states} states"
    )
    assert tiles["winners’ steps with A < 0"].startswith(
        f"winners’ steps with A < 0{percent(d.winner_negative, d.winner_steps)}of {d.winner_steps}"
    )
    curve = browser.page.get_attribute(".curve svg[role=img]", "aria-label")
    for name in ("work", "content", "coarse", "paper", "full"):
        shared, steps = overlap_by_index(credit(groups, Config(level=name)))
        said = re.search(rf"\b{name}: ([^;]*)", curve)
        assert said is not None
        shown = dict(re.findall(r"step (\d+) ([^,]+)", said.group(1)))
        assert "1" in shown
        for t, share in shown.items():
            assert share == percent(shared[int(t)], steps[int(t)]), f"{name} at {t}"


def check_sorting(browser: Opened, groups: list[Group]) -> None:
    values = {group.problem_id: row_values(group) for group in groups}
    at_first = list(values)
    for at, button in enumerate(browser.page.locator(".groups thead button").all()):
        head = browser.page.locator(".groups thead th").nth(at)
        seen = set()
        for _ in range(2):
            button.click()
            way = head.get_attribute("aria-sort")
            seen.add(way)
            ids = browser.texts(".groups tbody th")
            assert sorted(ids) == sorted(values)
            for one, other in pairwise(ids):
                x, y = values[one][at], values[other][at]
                if isinstance(x, float) and math.isclose(x, y, rel_tol=1e-9):
                    continue
                if x == y:  # where nothing decides, the order of the input
                    assert at_first.index(one) < at_first.index(other)
                assert x <= y if way == "ascending" else x >= y, f"column {at} {way}"
        assert seen == {"ascending", "descending"}
        others = browser.page.locator('.groups thead th[aria-sort="none"]')
        assert others.count() == len(browser.texts(".groups thead th")) - 1


def test_overview_of_the_example(browser: Opened, example_page: Path, example: Group) -> None:
    browser.open(example_page)
    check_overview(browser, [example])
    assert browser.texts(".groups thead th") == COLUMNS
    cells = browser.texts(".groups tbody td")
    _, n, _, steps, overlap, branching, partings, negative, largest = row_values(example)
    assert browser.text(".groups tbody th") == "dayplan__back-to-back"
    assert [cells[0], cells[2], cells[4], cells[5]] == [
        str(x) for x in (n, steps, branching, partings)
    ]
    assert cells[1].split() == ["✔", "4", "✘", "4"]
    assert cells[3] == percent(overlap, 1)
    assert cells[6] == percent(negative, 1)
    assert near(cells[7], largest, 2)


def test_overview_of_the_real_groups(
    browser: Opened, real_page: Path, real_groups: list[Group]
) -> None:
    browser.open(real_page)
    assert browser.text("#title") == "real groups"
    assert len(browser.texts(".groups tbody tr")) == len(real_groups) == 32
    check_overview(browser, real_groups)
    check_sorting(browser, real_groups)
    # filter and search, together and alone
    status = browser.page.locator(".overview [role=status]")
    browser.page.select_option("#kind", "mixed")
    assert set(browser.texts(".groups tbody th")) == REAL
    assert status.text_content() == "5 of 32 groups"
    assert "mixed outcomes (5)" in browser.texts("#kind option")
    browser.page.fill("#search", "MAZE")
    assert {row for row in REAL if "maze" in row} == set(browser.texts(".groups tbody th"))
    browser.page.select_option("#kind", "all")
    browser.page.fill("#search", "no such problem")
    assert browser.texts(".groups tbody tr") == []
    assert status.text_content() == "0 of 32 groups"
    browser.page.fill("#search", "")
    assert status.text_content() == "32 groups"


def test_overview_of_groups_of_every_kind(browser: Opened, kinds_page: Path) -> None:
    browser.open(kinds_page)
    options = browser.texts("#kind option")
    assert [re.findall(r"\((\d+)\)", option) for option in options] == [
        [str(n)] for n in (6, 2, 1, 1, 1, 1)
    ]
    assert options[:4] == [
        "all groups (6)", "mixed outcomes (2)", "all passed (1)", "none passed (1)",
    ]  # fmt: skip
    check_sorting(browser, kinds())
    browser.page.fill("#search", "nO Step")
    assert browser.texts(".groups tbody th") == ["No step"]


def test_a_group_opens_by_click_and_by_key_and_back_leads_home(
    browser: Opened, kinds_page: Path
) -> None:
    browser.open(kinds_page)
    browser.page.get_by_role("link", name="all passed").click()
    browser.page.wait_for_selector(".problem")
    assert browser.text(".problem") == "all passed"
    assert browser.page.url.endswith("#/group/1/tree")
    browser.page.go_back()
    browser.page.wait_for_selector(".overview")
    browser.page.get_by_role("link", name="unknown").focus()
    browser.page.keyboard.press("Enter")
    browser.page.wait_for_selector(".problem")
    assert browser.text(".problem") == "unknown"
    browser.page.get_by_role("link", name="next").click()
    browser.page.wait_for_selector(".problem:has-text('single')")
    browser.page.get_by_role("link", name="previous").click()
    browser.page.wait_for_selector(".problem:has-text('unknown')")
    browser.page.get_by_role("link", name="All groups").click()
    browser.page.wait_for_selector(".overview")


def test_an_address_that_leads_nowhere_shows_the_overview(
    browser: Opened, kinds_page: Path
) -> None:
    for where in ("#/group/99/tree", "#/group/-1", "#/group/x", "#/group/1.5/tree", "#nonsense"):
        browser.open(kinds_page, where)
        assert browser.page.locator(".overview").count() == 1
    browser.open(kinds_page, "#/group/0/nonsense")
    assert browser.page.get_attribute("#tab-tree", "aria-selected") == "true"


def test_leaving_while_a_group_is_unpacked_leaves(browser: Opened, kinds_page: Path) -> None:
    browser.open(kinds_page)
    browser.page.evaluate(
        """async () => {
          const once = { once: true };
          const routed = new Promise((done) => addEventListener('hashchange', done, once));
          location.hash = '#/group/0/tree';
          await routed;
          location.hash = '#/';
          await openGroup(0);
        }"""
    )
    browser.settled()
    assert browser.page.evaluate("location.hash") == "#/"
    assert browser.page.locator(".overview").count() == 1


# --- the tree ----------------------------------------------------------------------------------

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


STATUS = ".tree-view [role=status]"
EDGE = "svg.tree [role=button]:not([aria-label*=' the state as it is'])"


def unfold_all(browser: Opened) -> None:
    browser.page.get_by_role("button", name="Unfold all").click()


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


# --- a number and where it comes from ----------------------------------------------------------

# Open every edge in turn, then every action of every state, and read what stands beside the tree.
OPEN_ALL = """(edge) => {
  const detail = document.querySelector('.detail');
  const texts = (selector) => [...detail.querySelectorAll(selector)].map((e) => e.textContent);
  const cells = (rows) => [...rows].map((row) => [...row.children].map((c) => c.textContent));
  const read = (name, label) => {
    const table = detail.querySelector('.arithmetic > table');
    return {
      name, label, note: texts('.note'), title: texts('h2')[0], quiet: texts('p.quiet')[0],
      lines: cells(detail.querySelectorAll('.line')),
      heads: table ? [...table.querySelectorAll('th')].map((c) => c.textContent) : [],
      steps: table ? cells(table.querySelectorAll('tbody tr')) : [],
      others: [...detail.querySelectorAll('.arithmetic div > table tbody tr')].map(
        (row) => [row.className, ...[...row.children].map((c) => c.textContent)]),
    };
  };
  const click = (node) => node.dispatchEvent(new MouseEvent('click'));
  const out = [...document.querySelectorAll(edge)].map((item) => {
    click(item);
    const label = item.querySelector('.label');
    return read(item.getAttribute('aria-label'), label && label.textContent);
  });
  for (const state of document.querySelectorAll('circle.state')) {
    click(state);
    const links = detail.querySelectorAll('tbody .link').length;
    for (let at = 0; at < links; at++) {
      click(state);
      click(detail.querySelectorAll('tbody .link')[at]);
      out.push(read(null, null));
    }
  }
  return out;
}"""


def every_edge(browser: Opened, path: Path, at: int = 0) -> list[dict[str, Any]]:
    browser.open(path, f"#/group/{at}/tree")
    unfold_all(browser)
    return browser.page.evaluate(OPEN_ALL, EDGE)


def check_edges(found: list[dict[str, Any]], group: Group, computed: Credit) -> None:
    """Compare what stands beside each edge with the package, number by number."""
    config = computed.config
    index = {r.rollout_id: i for i, r in enumerate(group.rollouts)}
    seen = set()
    for edge in found:
        steps = [(index[name.split(" ", 1)[1]], int(t)) for name, t, *_ in edge["steps"]]
        seen |= set(steps)
        rows = [computed.rollouts[r] for r, _ in steps]
        own = [row.advantages[t] for row, (_, t) in zip(rows, steps, strict=True)]
        for cells, row, (_, t) in zip(edge["steps"], rows, steps, strict=True):
            if not isinstance(config.estimator, GRPO):
                assert near(cells[2], row.returns[t])
            assert near(cells[-1].split(" repeat")[0], row.advantages[t])
        # its name: action, count, outcomes, advantage
        of = {r for r, _ in steps}
        taken = f"{len(of)} rollout{'s' * (len(of) > 1)} ("
        assert f"taken by {taken}" in edge["quiet"]
        passed = sum(group.rollouts[r].status == "passed" for r in of)
        assert (f"{passed} passed" in edge["quiet"]) == bool(passed)
        if edge["name"]:
            assert edge["name"].startswith(edge["title"][:100])
            firsts = [a for a, row, (_, t) in zip(own, rows, steps, strict=True)
                      if not math.isnan(a) and row.first_visit[t] != 0]  # fmt: skip
            if taken in edge["name"]:  # else several edges share what is opened
                worth = edge["name"].rsplit("advantage ", 1)[1]
                assert near(worth, float(np.mean(firsts)) if firsts else math.nan, 3)
                if firsts and edge["label"]:
                    assert abs((number(edge["label"]) or 0) - np.mean(firsts)) < 0.0051
        if not isinstance(config.estimator, RTMC):
            continue
        row, (_, t) = rows[0], steps[0]
        lines = dict(edge["lines"])
        if math.isnan(row.q_values[t]):
            continue
        count, visits = re.findall(r"\d+", lines["N(s,a)"])
        assert (int(count), int(visits)) == (row.action_visits[t], row.state_visits[t])
        assert near(lines["Q(s,a)"].split("=")[1], row.q_values[t])
        q, v = row.q_values[t], row.state_values[t]
        if config.estimator.leave_one_out:
            assert "A" not in lines
            assert edge["heads"] == ["rollout", "t", "return G", "V′", "A"]
            for cells, own_row, (_, at) in zip(edge["steps"], rows, steps, strict=True):
                assert near(cells[3], own_row.state_values[at])
            continue
        if config.estimator.prior == "none":
            assert "prior p" not in lines
            assert near(lines["V(s)"].split("=")[1], v)
        else:
            weight = config.estimator.n_prior
            prior = number(lines["prior p"])
            share = int(re.findall(r"= (\d+) %", lines["prior p"])[0])
            assert abs(share - 100 * weight / (int(visits) + weight)) <= 0.5 + 1e-9
            plain_v = number(lines["V(s)"].split("=")[1])
            assert prior is not None
            assert plain_v is not None
            mixed = (int(visits) * plain_v + weight * prior) / (int(visits) + weight)
            assert abs(mixed - v) < 1e-3
            assert near(lines["V′(s)"].rsplit("=", 1)[1], v)
        assert near(lines["A"].split("=")[1], q - v)
        scale = 1.0
        if config.normalize == "problem":
            bare = msgspec.structs.replace(config, normalize="none")
            scale = float(np.nanstd(np.concatenate(credit(group, bare).advantages)))
            assert near(lines["normaliser"], scale)
            assert near(lines["normaliser"].split("→")[1], (q - v) / scale)
        else:
            assert "normaliser" not in lines
        if edge["others"]:
            assert sum(int(one[2]) for one in edge["others"]) == int(visits)
            assert [float(one[3]) for one in edge["others"]] == sorted(
                (float(one[3]) for one in edge["others"]), reverse=True
            )
            (this,) = (one for one in edge["others"] if one[0] == "this")
            assert near(this[4], (q - v) / scale, 3)
    assert len(seen) == sum(len(r.steps) for r in group.rollouts)


SETTINGS = {
    "default": Config(),
    "leave one out": Config(estimator=RTMC(leave_one_out=True), normalize="problem"),
    "discounted": Config(estimator=RTMC(prior="discounted", n_prior=3.5), gamma=0.9),
    "no prior": Config(estimator=RTMC(prior="none")),
    "paper": Config.paper(),
    "grpo": Config(estimator=GRPO()),
    "grpo_step": Config(estimator=GRPOStep()),
}


@pytest.mark.parametrize("config", SETTINGS.values(), ids=SETTINGS.keys())
def test_every_number_beside_the_tree(
    config: Config, browser: Opened, tmp_path: Path, example: Group
) -> None:
    found = every_edge(browser, write_page(tmp_path / "r.html", [example], config))
    check_edges(found, example, credit(example, config))


def test_every_number_of_the_real_groups(
    browser: Opened, real_page: Path, real_groups: list[Group]
) -> None:
    sizes = {
        at: sum(len(one.steps) for one in group.rollouts)
        for at, group in enumerate(real_groups)
        if group.problem_id in REAL
    }
    at = min(sizes, key=sizes.__getitem__)
    check_edges(every_edge(browser, real_page, at), real_groups[at], credit(real_groups[at]))


def test_an_edge_opens_where_one_clicks_it(browser: Opened, example_page: Path) -> None:
    browser.open(example_page, "#/group/0/tree")
    browser.page.locator(f"{EDGE}[aria-label^='view:full@dayplan/schedule.py'] .label").click()
    assert browser.text(".detail h2") == "view:full@dayplan/schedule.py"
    assert browser.page.locator(".item.chosen").count() == 1
    # its state, by the circle before it; and back
    browser.page.locator("circle.state").first.click()
    assert browser.texts(".detail h2") == ["State"]
    browser.page.get_by_role("button", name="Where they part").click()
    assert browser.texts(".detail h2") == ["Where they part", "What repeats"]


def test_grpo_shows_mean_and_divisor(browser: Opened, tmp_path: Path, example: Group) -> None:
    path = write_page(tmp_path / "r.html", [example], Config(estimator=GRPO()))
    browser.open(path, "#/group/0/tree")
    browser.page.locator(EDGE).first.dispatch_event("click")
    cells = browser.texts(".detail .line > span")
    lines = dict(zip(cells[::2], cells[1::2], strict=True))
    assert number(lines["mean"]) == 0.5  # four of eight passed
    assert number(lines["divisor"]) == 0.5
    assert plain(lines["A"]) == "(R - 0.5000) / 0.5000"


def test_groups_without_a_difference_say_why(browser: Opened, kinds_page: Path) -> None:
    for at in (1, 2, 4):
        for edge in every_edge(browser, kinds_page, at):
            assert edge["note"][0].startswith("Every rollout that counts had the same outcome")
            assert edge["lines"] == []
    for edge in every_edge(browser, kinds_page, 3):
        assert edge["note"][0].startswith("No rollout here has an outcome that counts")
        assert edge["lines"] == []
    browser.open(kinds_page, "#/group/5/tree")
    assert browser.text(STATUS) == "No rollout of this group has a step."
    assert "nothing to tell apart" in browser.text(".tree-view .tools")


# Open a step of a rollout from its list, and unfold everything beside it.
READ_RAW = """async ([id, t]) => {
  const button = [...document.querySelectorAll('.rollouts button')].find(
    (one) => one.querySelector('bdi').textContent === id);
  if (button.getAttribute('aria-pressed') === 'true') button.click();
  button.click();
  document.querySelectorAll('.detail .steps .link')[t].click();
  const boxes = [...document.querySelectorAll('.detail details.raw')];
  const opened = boxes.filter((box) => !box.open).map(
    (box) => new Promise((done) => box.addEventListener('toggle', done)));
  boxes.forEach((box) => { box.open = true; });
  await Promise.all(opened);
  return boxes.map((box) => {
    box.querySelectorAll('button').forEach((more) => more.click());
    return [box.querySelector('summary').textContent,
      [...box.querySelectorAll('pre')].map((pre) => pre.textContent)];
  });
}"""


def raw_texts(step: Step) -> list[str]:
    """Write a step's texts as the page does, as far as these groups need it."""
    out = [step.thought] if step.thought else []
    for call in step.calls:
        arguments = call.arguments
        if isinstance(arguments, dict):
            values = [
                value if isinstance(value, str) else json.dumps(value, indent=1)
                for value in arguments.values()
            ]
            named = [f"{k}: {v}" for k, v in zip(arguments, values, strict=True)]
            arguments = values[0] if len(values) == 1 else "\n".join(named)
        out += [arguments, *([] if call.output is None else [call.output])]
    return [text.replace("\r", "") for text in out]


def test_raw_texts_are_those_of_the_rollouts(
    browser: Opened, example_page: Path, example: Group
) -> None:
    browser.open(example_page, "#/group/0/tree")
    by_id = {r.rollout_id: r for r in example.rollouts}
    seen = set()
    for one in example.rollouts:
        for t, step in enumerate(one.steps):
            if (one.rollout_id, t) in seen:
                continue
            found = browser.page.evaluate(READ_RAW, [one.rollout_id, t])
            assert f"{one.rollout_id}, step {t}" in {name[2:] for name, _ in found}
            for name, texts in found:
                rollout_id, _, at = name[2:].rpartition(", step ")
                seen.add((rollout_id, int(at)))
                assert texts == raw_texts(by_id[rollout_id].steps[int(at)])
            assert step.calls == () or found[0][1]


def test_a_long_text_is_cut_and_shown_on_demand(browser: Opened, tmp_path: Path) -> None:
    long = "".join(f"line {i}\n" for i in range(2000))
    group = Group("p", (Rollout("p", "a", (bash("ls", long),), 1.0), rollout("b", "ls", 0.0)))
    browser.open(write_page(tmp_path / "r.html", [group], text_limit=10_000), "#/group/0/tree")
    browser.page.locator(".item").first.dispatch_event("click")
    shown = browser.page.locator(".detail pre").nth(2)
    left = len(long) - 10_000
    cut = f"{long[:5000]}\n… {left} characters left out …\n{long[-5000:]}"
    assert shown.text_content() == cut[:6000]
    browser.page.get_by_role("button", name=re.compile("show .* more characters")).click()
    assert shown.text_content() == cut


# --- why merged --------------------------------------------------------------------------------

READ_KEYS = """() => [...document.querySelectorAll('.key-table tbody tr')].map((row) => {
  const [level, what, verdict, one, other] = row.children;
  return [level.textContent, what.textContent, verdict.textContent,
    one.textContent, other.textContent, row.querySelectorAll('mark').length];
})"""


def short(key: str) -> str:
    return re.sub(r"(?<![0-9A-Za-z])([0-9a-f]{4})[0-9a-f]{12}(?![0-9a-f])", r"\1", key)


def check_keys(browser: Opened, group: Group, pairs: int, seed: int) -> None:
    chance = random.Random(seed)
    signed = sign_group(group, Config())
    places = [(r, t) for r, one in enumerate(group.rollouts) for t in range(len(one.steps))]
    starts = np.cumsum([0, *(len(one.steps) for one in group.rollouts)])
    early = [place for place in places if place[1] < 3]  # there they meet
    paper = next(keys for keys in signed.keys if keys.level == "paper")
    for k in range(pairs):
        chosen = chance.sample(early if k % 2 else places, 2)
        steps = [int(starts[r]) + t for r, t in chosen]
        for side, (r, _) in enumerate(chosen):
            browser.page.select_option(f"#pick-rollout-{side}", str(r))
            browser.page.select_option(f"#pick-step-{side}", str(steps[side]))
        a, b = steps
        rows = browser.page.evaluate(READ_KEYS)
        expected = [keys for keys in signed.keys if keys.level != "root"]
        assert [row[0] for row in rows] == [keys.level for keys in expected for _ in "sa"]
        for keys, (state_row, action_row) in zip(
            expected, zip(rows[::2], rows[1::2], strict=True), strict=True
        ):
            for row, ids, names, what in (
                (state_row, keys.states, keys.state_keys, "state"),
                (action_row, keys.actions, keys.action_keys, "action"),
            ):
                one, other = names[ids[a]], names[ids[b]]
                assert row[1] == what
                assert row[2] == ("= equal" if one == other else "≠ differs")
                assert [row[3], row[4]] == [" ".join(short(x).split()) for x in (one, other)]
                assert (row[5] > 0) == (one != other), f"{one!r} {other!r}: {row[5]} marks"
        said = browser.text(".keys .note")
        same_state = paper.states[a] == paper.states[b]
        same_action = paper.actions[a] == paper.actions[b]
        assert ("the same edge" in said) == (same_state and same_action)
        assert ("where they part" in said) == (same_state and not same_action)
        assert ("not merged" in said) == (not same_state)
        sides = browser.page.locator(".sides > div")
        for side, (r, t) in enumerate(chosen):
            one = group.rollouts[r]
            assert sides.nth(side).locator("h4").first.text_content() == (
                f"{one.rollout_id[:40]}, step {t}"
            )
            found = sides.nth(side).locator("pre").all_text_contents()
            assert [x[:6000] for x in found] == [x[:6000] for x in raw_texts(one.steps[t])]


def test_why_two_steps_of_the_example_were_merged(
    browser: Opened, example_page: Path, example: Group
) -> None:
    browser.open(example_page, "#/group/0/keys")
    assert "the same node, different actions" in browser.text(".keys .note")
    check_keys(browser, example, 10, seed=1)


def test_why_two_real_steps_were_merged(
    browser: Opened, real_page: Path, real_groups: list[Group]
) -> None:
    at = [group.problem_id for group in real_groups].index("sanitize-git-repo")
    browser.open(real_page, f"#/group/{at}/keys")
    check_keys(browser, real_groups[at], 6, seed=2)


def test_the_verdict_follows_the_level(browser: Opened, example_page: Path) -> None:
    browser.open(example_page, "#/group/0/keys")
    browser.page.select_option("#level", "root")
    assert browser.text(".keys .note").startswith("At level root: the same")
    browser.page.select_option("#level", "paper")
    assert browser.text(".keys .note").startswith("At level paper: the same node")


@pytest.mark.parametrize(
    "rollouts",
    [(rollout("a", "", 1.0), rollout("b", "", 0.0)), (rollout("a", "", None),), ()],
    ids=["no step", "no outcome", "no rollout"],
)
def test_every_view_of_a_group_without_steps_opens(
    rollouts: tuple[Rollout, ...], browser: Opened, tmp_path: Path
) -> None:
    path = write_page(tmp_path / "r.html", [Group("p", rollouts)])
    for view in ("tree", "rollouts", "quadrants", "keys"):
        browser.open(path)
        browser.page.locator(".groups tbody a").click()
        browser.page.locator(f"#tab-{view}").click()
        browser.page.wait_for_selector(f"#tab-{view}[aria-selected=true]")
        assert browser.problems == []
        for canvas in browser.page.locator("#view svg[tabindex]").all():
            canvas.focus()
            for key in ("ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft", "Enter"):
                browser.page.keyboard.press(key)


# --- rollout by rollout ------------------------------------------------------------------------


def flips(one: Credit, other: Credit) -> int:
    a, b = (np.concatenate(found.advantages) for found in (one, other))
    return int(((a * b < 0) & (np.abs(a) > 0.01) & (np.abs(b) > 0.01)).sum())


def test_rollouts_under_every_estimator(
    browser: Opened, example_page: Path, example: Group
) -> None:
    browser.open(example_page, "#/group/0/rollouts")
    names = browser.texts(".names li")
    passing = [r.rollout_id for r in example.rollouts if r.status == "passed"]
    failing = [r.rollout_id for r in example.rollouts if r.status == "failed"]
    assert names == [*(f"✔ {r}" for r in passing), *(f"✘ {r}" for r in failing)]
    first, *others = browser.texts(".panel h3")
    assert first == "grpo"
    assert [name.split()[0] for name in (others[0], others[-1])] == ["grpo_step", "rtmc"]
    grpo = credit(example, Config(estimator=GRPO()))
    counts = [0]
    for heading in others:
        name, _, said = heading.partition(" ")
        counts.append(flips(grpo, credit(example, Config(estimator=ESTIMATORS[name]()))))
        assert said == f"{counts[-1]} signs differ"
    assert counts[-1] > 5
    dots = browser.page.locator(".panel .dots").evaluate_all(
        "(all) => all.map((dots) => (dots.getAttribute('d').match(/M/g) || []).length)"
    )
    assert dots == counts
    # a cell a step, in every panel
    cells = browser.page.locator(".panel svg").evaluate_all(
        "(all) => all.map((svg) => [...svg.querySelectorAll('.fill')].reduce("
        "(sum, path) => sum + path.getAttribute('d').match(/M/g).length, 0))"
    )
    assert cells == [sum(len(r.steps) for r in example.rollouts)] * len(counts)


def test_the_keyboard_reads_cells_and_opens_steps(
    browser: Opened, example_page: Path, example: Group
) -> None:
    browser.open(example_page, "#/group/0/rollouts")
    mine = credit(example)
    order = sorted(range(8), key=lambda r: example.rollouts[r].status != "passed")
    browser.page.locator(".panel svg").last.focus()
    live = browser.page.locator(".compare [aria-live]")
    row = t = 0
    browser.page.keyboard.press("ArrowRight")
    moves = {"Right": (0, 1), "Down": (1, 0), "Up": (-1, 0), "Left": (0, -1)}
    for way in ("Right", "Down", "Down", "Right", "Up", "Left"):
        browser.page.keyboard.press(f"Arrow{way}")
        row, t = row + moves[way][0], t + moves[way][1]
        one = mine.rollouts[order[row]]
        said = live.text_content()
        name, _, rest = said.partition(": rtmc ")
        assert name == f"{one.rollout.rollout_id}, step {t}"
        assert near(rest, one.advantages[t], 3)
        assert short(one.actions[t])[:30] in rest
    browser.page.keyboard.press("Enter")
    assert f"{one.rollout.rollout_id}" in browser.text(".detail .arithmetic > table")
    assert browser.text(".detail h2") == short(one.actions[t])


def test_the_keyboard_passes_a_rollout_without_steps(browser: Opened, kinds_page: Path) -> None:
    browser.open(kinds_page, "#/group/0/rollouts")
    names = [name.split()[1] for name in browser.texts(".names li")]
    assert names == ["a", "f", "b", "c", "d", "e"]  # c has no steps
    browser.page.locator(".panel svg").last.focus()
    said = []
    for _ in range(6):
        browser.page.keyboard.press("ArrowDown")
        said.append(browser.text(".compare [aria-live]").split(",")[0])
    assert {"d", "e"} <= set(said)


def test_a_click_on_a_cell_opens_its_step(
    browser: Opened, example_page: Path, example: Group
) -> None:
    browser.open(example_page, "#/group/0/rollouts")
    picture = browser.page.locator(".panel svg").last
    box = picture.bounding_box()
    browser.page.mouse.click(box["x"] + 8, box["y"] + 8)
    assert browser.text(".detail h2") == "view:full@dayplan/schedule.py"
    first = credit(example).rollouts[0]
    assert near(browser.text(".compare [aria-live]").split("rtmc")[1], first.advantages[0], 3)


# --- quadrants ---------------------------------------------------------------------------------


def expected_quadrants(group: Group, reference: Any) -> dict[str, dict[str, int]]:
    mine, other = credit(group), credit(group, Config(estimator=reference))
    won = [r.rollout.status == "passed" for r in mine.rollouts for _ in r.advantages]
    return quadrants(np.concatenate(mine.advantages), np.concatenate(other.advantages), won)


def check_quadrants(browser: Opened, group: Group) -> None:
    for name, reference in (("grpo_step", GRPOStep()), ("grpo", GRPO())):
        browser.page.select_option("#reference", name)
        found = browser.page.evaluate(
            """() => [...document.querySelectorAll('.quadrant-table tbody tr')].map(
              (row) => [...row.querySelectorAll('button')].map((b) => Number(b.textContent)))"""
        )
        expected = expected_quadrants(group, reference)
        assert found == [list(expected[of].values()) for of in ("passing", "failing")]


def test_quadrants_of_the_example(browser: Opened, example_page: Path, example: Group) -> None:
    browser.open(example_page, "#/group/0/quadrants")
    assert browser.page.locator("#reference").input_value() == "grpo_step"
    check_quadrants(browser, example)
    expected = expected_quadrants(example, GRPO())["failing"]["rescued"]
    assert expected > 2
    button = browser.page.get_by_role(
        "button", name=f"{expected} steps of failing rollouts, rescued"
    )
    button.click()
    rows = browser.page.locator(".quadrant-steps tbody tr")
    assert rows.count() == expected
    for row in rows.all():
        _, _, mine, other = row.locator("td").all_text_contents()
        assert float(plain(mine)) > 0.01
        assert float(plain(other)) < -0.01
    step, action, *_ = rows.nth(1).locator("td").all_text_contents()
    rows.nth(1).locator("button").click()
    assert browser.text(".detail h2") == action
    name, t = step.split(", step ")
    cells = browser.texts(".detail .arithmetic > table tbody tr")
    assert any(cell.startswith(f"✘ {name}{t}") for cell in cells)
    # what is empty cannot be opened
    for button in browser.page.locator(".quadrant-table button").all():
        assert button.is_disabled() == (button.text_content() == "0")


def test_quadrants_of_the_real_groups(
    browser: Opened, real_page: Path, real_groups: list[Group]
) -> None:
    for at, group in enumerate(real_groups):
        if group.problem_id in REAL:
            browser.open(real_page, f"#/group/{at}/quadrants")
            check_quadrants(browser, group)


# --- what if -----------------------------------------------------------------------------------


SHOWN = """(ids) => ids.flatMap((id) => {
  const button = [...document.querySelectorAll('.rollouts button')].find(
    (one) => one.querySelector('bdi').textContent === id);
  button.click();
  const values = [...document.querySelectorAll('.detail .steps .value')].map((e) => e.textContent);
  button.click();
  return values;
})"""


def shown_advantages(browser: Opened, group: Group) -> list[str]:
    """Read every advantage from the lists of steps that the page shows beside the tree."""
    return browser.page.evaluate(SHOWN, [one.rollout_id for one in group.rollouts])


def check_shown(browser: Opened, group: Group, config: Config) -> None:
    shown = shown_advantages(browser, group)
    expected = np.concatenate(credit(group, config).advantages)
    assert len(shown) == len(expected)
    for text, value in zip(shown, expected, strict=True):
        assert near(text, value, 3), f"{text} for {value}"


def test_other_settings_give_what_python_gives(
    browser: Opened, example_page: Path, example: Group
) -> None:
    page = browser.page
    browser.open(example_page, "#/group/0/tree")
    reset = page.get_by_role("button", name="Reset")
    assert not reset.is_visible()
    check_shown(browser, example, Config())
    page.locator("#gamma").fill("0.8")
    assert page.locator("#gamma-number").input_value() == "0.8"
    assert reset.is_visible()
    check_shown(browser, example, Config(gamma=0.8))
    page.locator("#n-prior-number").fill("7")
    page.keyboard.press("Tab")
    assert page.locator("#n-prior").input_value() == "7"
    check_shown(browser, example, Config(gamma=0.8, estimator=RTMC(n_prior=7)))
    page.select_option("#prior", "discounted")
    discounted = RTMC(n_prior=7, prior="discounted")
    check_shown(browser, example, Config(gamma=0.8, estimator=discounted))
    page.select_option("#level", "coarse")
    check_shown(browser, example, Config(gamma=0.8, estimator=discounted, level="coarse"))
    page.select_option("#estimator", "grpo_step")
    check_shown(browser, example, Config(gamma=0.8, estimator=GRPOStep()))
    reset.click()
    assert not reset.is_visible()
    assert page.locator("#gamma-number").input_value() == "0.99"
    assert page.locator("#level").input_value() == "paper"
    check_shown(browser, example, Config())


def test_settings_without_effect_are_disabled(browser: Opened, example_page: Path) -> None:
    page = browser.page
    browser.open(example_page, "#/group/0/tree")
    controls = ("gamma", "gamma-number", "n-prior", "n-prior-number", "prior")

    def disabled() -> list[str]:
        return [name for name in controls if page.locator(f"#{name}").is_disabled()]

    assert disabled() == []
    page.select_option("#prior", "none")
    assert disabled() == ["n-prior", "n-prior-number"]
    page.select_option("#estimator", "grpo")
    assert disabled() == list(controls)
    page.select_option("#estimator", "grpo_step")
    assert disabled() == ["n-prior", "n-prior-number", "prior"]


@pytest.mark.parametrize(
    ("name", "typed"),
    [("gamma", "0"), ("gamma", "2"), ("gamma", "e"), ("n-prior", "-1"), ("n-prior", "")],
)  # fmt: skip
def test_a_number_out_of_range_is_refused(
    name: str, typed: str, browser: Opened, example_page: Path, example: Group
) -> None:
    browser.open(example_page, "#/group/0/tree")
    box = browser.page.locator(f"#{name}-number")
    before = shown_advantages(browser, example)
    box.click()
    box.press("Control+A")
    box.press("Delete")
    box.press_sequentially(typed)
    box.press("Enter")
    box.press("Tab")
    assert box.get_attribute("aria-invalid") == "true"
    assert shown_advantages(browser, example) == before
    # and a good one is taken again
    box.fill("1")
    box.press("Tab")
    assert box.get_attribute("aria-invalid") is None
    assert shown_advantages(browser, example) != before


@pytest.mark.parametrize("view", ["tree", "quadrants"])
def test_an_open_step_outlives_a_change_of_level(
    view: str, browser: Opened, example_page: Path, example: Group
) -> None:
    """Numbers of states are those of one level: another level must not be asked for them."""
    browser.open(example_page, "#/group/0/tree")
    page = browser.page
    finish = page.locator(".item", has_text="modify:ac61").first
    finish.dispatch_event("click")
    step = browser.texts(".detail .raw summary")[0]
    page.locator(f"#tab-{view}").click()
    for level in ("root", "work", "coarse", "full", "paper"):
        page.select_option("#level", level)
        browser.settled()
        assert browser.problems == []
        # either nothing is chosen any more, or what is shown holds the same step
        assert "Where they part" in browser.texts(".detail h2") or step in browser.texts(
            ".detail .raw summary"
        )
    for chain in (page.locator('.item[aria-label^="Folded chain"]'),) * (view == "tree"):
        chain.first.dispatch_event("click")
        page.select_option("#level", "root")
        page.select_option("#level", "full")
    browser.settled()


# --- a credited file ---------------------------------------------------------------------------

CREDITED = """async (at) => {
  const group = await openGroup(at);
  const { advantages } = creditOf(group, store.settings.estimator);
  return [...group.rollouts.keys()].map((r) => [group.rollouts[r].id,
    [...advantages.slice(group.starts[r], group.starts[r + 1])].map(
      (value) => (Number.isNaN(value) ? null : value))]);
}"""


def run(*args: str) -> str:
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("suffix", "flags"),
    [
        ("jsonl", []),
        ("jsonl", ["--preset", "paper"]),
        ("jsonl", ["--level", "content,paper"]),
        ("jsonl", ["--incomplete", "mask"]),
        ("jsonl", ["--estimator", "grpo", "--std", "sample"]),
        ("jsonl", ["--leave-one-out", "--gamma", "0.9"]),
        ("jsonl.gz", ["--preset", "paper"]),
        ("parquet", ["--level", "content,paper"]),
        ("parquet", ["--incomplete", "mask"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_credited_file_keeps_its_numbers(
    suffix: str, flags: list[str], browser: Opened, tmp_path: Path, example: Group
) -> None:
    # every kind of rollout; a table has no row for one without steps
    mixed = Group("mixed", kinds()[0].rollouts)
    if suffix == "parquet":
        mixed = Group("mixed", tuple(one for one in mixed.rollouts if one.steps))
    source = tmp_path / "in.jsonl"
    source.write_bytes(
        b"".join(encode_rollout(r) + b"\n" for r in (*example.rollouts, *mixed.rollouts))
    )
    credited, again = tmp_path / f"c.{suffix}", tmp_path / "again.jsonl"
    run("credit", str(source), *flags, "-o", str(credited))
    run("credit", str(source), *flags, "-o", str(again))
    run("report", str(credited), "-o", str(tmp_path / "r.html"))
    records = [json.loads(line) for line in again.read_text().splitlines()]
    expected = {r["rollout_id"]: [s["advantage"] for s in r["steps"]] for r in records}
    for at, group in enumerate((example, mixed)):
        browser.open(tmp_path / "r.html", f"#/group/{at}/tree")
        found = dict(browser.page.evaluate(CREDITED, at))
        assert list(found) == [one.rollout_id for one in group.rollouts]
        for name, values in found.items():
            assert len(values) == len(expected[name])
            for got, value in zip(values, expected[name], strict=True):
                assert (got is None) == (value is None)
                assert value is None or got == pytest.approx(value, abs=1e-9)
        shown = shown_advantages(browser, group)
        flat = [a for one in group.rollouts for a in expected[one.rollout_id]]
        assert all(near(text, math.nan if a is None else a, 3)
                   for text, a in zip(shown, flat, strict=True))  # fmt: skip
    browser.page.locator(EDGE).first.dispatch_event("click")
    assert "The raw texts are not in a credited file" in browser.text(".detail")
    browser.page.locator("#tab-keys").click()
    browser.page.wait_for_selector(".key-table")
    assert browser.text(".sides").count("The raw texts are not in a credited file") == 2


def test_the_settings_of_a_credited_file_are_printed(browser: Opened, tmp_path: Path) -> None:
    run("credit", str(EXAMPLE), "--gamma", "0.9", "-o", str(tmp_path / "c.jsonl"))
    run("report", str(tmp_path / "c.jsonl"), "-o", str(tmp_path / "r.html"))
    browser.open(tmp_path / "r.html")
    used = browser.text("#settings-used")
    assert "gamma 0.9," in used
    assert "beta 0.05" in used


# --- small, dark and printed -------------------------------------------------------------------


def test_a_phone_shows_the_overview_without_scrolling_sideways(
    browser: Opened, real_page: Path
) -> None:
    browser.page.set_viewport_size({"width": 390, "height": 844})
    browser.open(real_page)
    assert browser.page.evaluate("document.scrollingElement.scrollWidth") <= 390
    # every cell of a row lies in the picture, wide enough, and says what it is
    cells = browser.page.locator(".groups tbody tr").first.locator("th, td").all()
    assert len(cells) == len(COLUMNS)
    boxes = [cell.bounding_box() for cell in cells]
    for cell, box in zip(cells, boxes, strict=True):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["height"] >= 16
        assert not cell.evaluate("(e) => e.scrollWidth > e.clientWidth + 1")
    for one, other in product(boxes, boxes):
        if one is not other:
            assert not overlaps(one, other)
    name = cells[1].evaluate("(e) => getComputedStyle(e, '::before').content")
    assert name == '"Rollouts" " "' or "Rollouts" in name
    # a group, too
    browser.page.locator(".groups tbody a").first.click()
    browser.page.wait_for_selector(".problem")
    for view in ("tree", "rollouts", "quadrants", "keys"):
        browser.page.locator(f"#tab-{view}").click()
        browser.settled()
        assert browser.page.evaluate("document.scrollingElement.scrollWidth") <= 390, view


def overlaps(one: dict[str, float], other: dict[str, float]) -> bool:
    return (
        one["x"] + 1 < other["x"] + other["width"]
        and other["x"] + 1 < one["x"] + one["width"]
        and one["y"] + 1 < other["y"] + other["height"]
        and other["y"] + 1 < one["y"] + one["height"]
    )


CONTRAST = """() => {
  const light = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (color !== 'rgba(0, 0, 0, 0)') return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const low = [];
  for (const e of document.querySelectorAll('header *, #app *')) {
    if (e instanceof SVGElement || !e.checkVisibility() || e.matches(':disabled')) continue;
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const pair = [getComputedStyle(e).color, ground(e)];
    const [a, b] = pair.map(light).sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.push([e.tagName, e.className, e.textContent, pair]);
  }
  return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_schemes(
    scheme: str, browser: Opened, example_page: Path, example: Group
) -> None:
    browser.page.emulate_media(color_scheme=scheme)
    for where in ("", *(f"#/group/0/{view}" for view in ("tree", "rollouts", "quadrants", "keys"))):
        browser.open(example_page, where)
        ground = browser.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", ground))) < 200) == (scheme == "dark")
        assert browser.page.evaluate(CONTRAST) == []
    # the button turns it over, and back
    browser.page.click("#theme")
    turned = browser.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert turned != ground
    assert browser.page.evaluate(CONTRAST) == []
    browser.page.click("#theme")
    assert ground == browser.page.evaluate(
        "getComputedStyle(document.documentElement).backgroundColor"
    )


def test_paper_has_no_controls(browser: Opened, example_page: Path) -> None:
    for where in ("", *(f"#/group/0/{view}" for view in ("tree", "rollouts", "quadrants", "keys"))):
        browser.open(example_page, where)
        if where.endswith("tree"):
            browser.page.locator(".item").first.dispatch_event("click")
        browser.page.emulate_media(media="print")
        shown = browser.page.evaluate(
            """() => [...document.querySelectorAll(
              'button:not(.link, th button), input, .tools select'
            )].filter((e) => e.checkVisibility()).map((e) => e.outerHTML.slice(0, 80))"""
        )
        assert shown == []
        assert browser.page.locator("main").is_visible()
        browser.page.emulate_media(media="screen")
    assert browser.page.locator("#tab-tree").is_visible()


# --- for everybody -----------------------------------------------------------------------------

NAMELESS = """() => {
  const name = (e) => {
    const by = e.getAttribute('aria-labelledby');
    if (by) return by.split(' ').map((id) => document.getElementById(id).textContent).join(' ');
    if (e.getAttribute('aria-label')) return e.getAttribute('aria-label');
    if (e.labels && e.labels.length) return [...e.labels].map((l) => l.textContent).join(' ');
    return e.matches('button, a, summary, legend') ? e.textContent : '';
  };
  const roles = ['button', 'tab', 'application', 'img', 'tablist', 'tabpanel'];
  const wanted = ['button, a[href], input, select, textarea, summary, nav, aside, form',
    '[tabindex="0"]', ...roles.map((role) => `[role=${role}]`)].join();
  const nameless = [...document.querySelectorAll(wanted)].filter((e) => !name(e).trim()
    && !e.matches('pre'));
  const pictures = [...document.querySelectorAll('svg:not([aria-hidden=true])')].filter(
    (e) => !(e.getAttribute('role') && e.getAttribute('aria-label')));
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  return [...nameless, ...pictures].map((e) => e.outerHTML.slice(0, 200))
    .concat(ids.filter((id, at) => ids.indexOf(id) !== at));
}"""


@pytest.mark.parametrize("where", ["", "tree", "rollouts", "quadrants", "keys"])
def test_everything_has_a_name_and_headings_are_in_order(
    where: str, browser: Opened, example_page: Path
) -> None:
    browser.open(example_page, where and f"#/group/0/{where}")
    if where == "tree":
        browser.page.locator(".item").first.dispatch_event("click")
    if where == "quadrants":
        browser.page.locator(".quadrant-table button:enabled").first.click()
    assert browser.page.evaluate(NAMELESS) == []
    assert browser.page.get_attribute("html", "lang") == "en"
    assert browser.page.title() == "rtmc report"
    levels = browser.page.locator("h1, h2, h3, h4").evaluate_all(
        "(all) => all.map((e) => Number(e.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert 2 in levels
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    heads = browser.page.locator("th:not([scope])")
    assert heads.count() == 0
    assert browser.page.locator("main").count() == 1


def test_tabs_are_tabs(browser: Opened, example_page: Path) -> None:
    browser.open(example_page, "#/group/0/tree")
    tabs = browser.page.get_by_role("tab")
    panel = browser.page.get_by_role("tabpanel")
    assert tabs.all_text_contents() == ["Tree", "Rollouts", "Quadrants", "Why merged"]
    names = ("tree", "rollouts", "quadrants", "keys")

    def check(name: str) -> None:
        browser.page.wait_for_selector(f"#tab-{name}[aria-selected=true]")
        for tab, other in zip(tabs.all(), names, strict=True):
            assert tab.get_attribute("aria-selected") == str(name == other).lower()
            assert tab.get_attribute("tabindex") == ("0" if name == other else "-1")
            assert tab.get_attribute("aria-controls") == panel.get_attribute("id")
        assert panel.get_attribute("aria-labelledby") == f"tab-{name}"
        assert browser.page.url.endswith(f"/{name}")

    check("tree")
    tabs.first.focus()
    for key, name in [("ArrowRight", "rollouts"), ("ArrowRight", "quadrants"),
                      ("ArrowRight", "keys"), ("ArrowRight", "tree"),
                      ("ArrowLeft", "keys")]:  # fmt: skip
        browser.page.keyboard.press(key)
        check(name)
        assert browser.page.evaluate("document.activeElement.id") == f"tab-{name}"
    tabs.nth(1).click()
    check("rollouts")


def test_focus_can_be_seen(browser: Opened, example_page: Path) -> None:
    seen = """() => {
      const e = document.activeElement, style = getComputedStyle(e);
      const mark = e.closest('.item') ? getComputedStyle(e.querySelector('.hit')) : null;
      return [e.tagName, e.className.baseVal ?? e.className, mark
        ? mark.stroke !== 'rgba(0, 0, 0, 0)' && mark.strokeOpacity !== '0'
        : style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0];
    }"""
    for where in ("", "#/group/0/tree", "#/group/0/rollouts", "#/group/0/keys"):
        browser.open(example_page, where)
        kinds_seen = set()
        for _ in range(24):
            browser.page.keyboard.press("Tab")
            tag, name, is_visible = browser.page.evaluate(seen)
            if tag == "BODY":
                break
            kinds_seen.add(tag)
            assert is_visible, f"{where}: {tag} {name}"
        assert len(kinds_seen) > 2


def test_every_edge_can_be_reached_by_keys(browser: Opened, example_page: Path) -> None:
    """Arrow keys lead from the first edge to each other one."""
    browser.open(example_page, "#/group/0/tree")
    unreached = browser.page.evaluate(
        """() => {
          const items = [...document.querySelectorAll('.item')];
          const canvas = document.querySelector('svg.tree');
          const press = (from, key) => {
            items[from].focus();
            canvas.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
            return items.indexOf(document.activeElement);
          };
          const first = items.findIndex((item) => item.getAttribute('tabindex') === '0');
          const seen = new Set([first]), waiting = [first];
          while (waiting.length) {
            const from = waiting.pop();
            for (const key of ['ArrowRight', 'ArrowLeft', 'ArrowUp', 'ArrowDown']) {
              const to = press(from, key);
              if (to >= 0 && !seen.has(to)) { seen.add(to); waiting.push(to); }
            }
          }
          return items.length - seen.size;
        }"""
    )
    assert unreached == 0
