"""What if: other settings give what Python gives; what has no effect is disabled."""

from pathlib import Path

import numpy as np
import pytest

from browser import Opened
from pages import near, shown_advantages
from rtmc import Config, credit
from rtmc.advantages import RTMC, GRPOStep
from rtmc.rollouts import Group


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
