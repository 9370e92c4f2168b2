"""Names, headings, tabs, focus: the page for everybody."""

from itertools import pairwise
from pathlib import Path

import pytest

from browser import Opened
from pages import NAMELESS


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
