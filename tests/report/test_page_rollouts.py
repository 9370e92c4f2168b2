"""Every rollout under several estimators: panels, sign flips, the cursor of the keyboard."""

from pathlib import Path

import numpy as np

from browser import Opened
from pages import near, short
from rtmc import Config, Credit, credit
from rtmc.advantages import ESTIMATORS, GRPO
from rtmc.rollouts import Group


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
