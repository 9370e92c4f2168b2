"""Why two steps were merged, or not: equal and differing keys, what is marked."""

import random
from pathlib import Path

import numpy as np
import pytest

from browser import Opened, write_page
from pages import raw_texts, rollout, short
from rtmc import Config
from rtmc.report.page.data import sign_group
from rtmc.rollouts import Group, Rollout

READ_KEYS = """() => [...document.querySelectorAll('.key-table tbody tr')].map((row) => {
  const [level, what, verdict, one, other] = row.children;
  return [level.textContent, what.textContent, verdict.textContent,
    one.textContent, other.textContent, row.querySelectorAll('mark').length];
})"""


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
