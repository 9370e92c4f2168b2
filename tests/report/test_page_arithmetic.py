"""Beside the tree: every number is what the Python package says, every text the rollout's own."""

import math
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from browser import Opened, number, write_page
from pages import (
    EDGE,
    REAL,
    STATUS,
    bash,
    near,
    plain,
    raw_texts,
    rollout,
    unfold_all,
)
from rtmc import Config, Credit, credit
from rtmc.advantages import GRPO, RTMC, GRPOStep
from rtmc.rollouts import Group, Rollout

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
