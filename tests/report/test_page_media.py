"""Phones, dark and light, and paper."""

import re
from itertools import product
from pathlib import Path

import pytest

from browser import Opened
from pages import COLUMNS, CONTRAST
from rtmc.rollouts import Group


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
