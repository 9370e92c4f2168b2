"""The overview: rows, sorting, search, totals, the curve, and the way to a group and back."""

import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from browser import Opened
from pages import (
    COLUMNS,
    REAL,
    kinds,
    near,
    percent,
)
from rtmc import Config, credit
from rtmc.diagnostics import diagnose, overlap_by_index
from rtmc.rollouts import Group


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
