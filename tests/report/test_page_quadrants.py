"""Quadrants: the counts are those of the Python package, and open their steps."""

from pathlib import Path
from typing import Any

import numpy as np

from browser import Opened
from pages import REAL, plain
from rtmc import Config, credit
from rtmc.advantages import GRPO, GRPOStep
from rtmc.diagnostics import quadrants
from rtmc.rollouts import Group


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
