"""The page computes credit by itself: its numbers are those of the Python package."""

import math
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from browser import Opened
from rtmc import Config, credit, read
from rtmc.advantages import GRPO, RTMC, GRPOStep
from rtmc.report.page import open_page
from rtmc.report.page.data import sign_group
from rtmc.rollouts import Group, Rollout, Step, ToolCall

EXAMPLE = Path(__file__).parents[2] / "examples" / "group.jsonl"
MIXED = (
    "blind-maze-explorer-algorithm",
    "blind-maze-explorer-algorithm.easy",
    "cartpole-rl-training",
    "incompatible-python-fasttext",
    "sanitize-git-repo",
)
"""The real groups with rollouts of different known outcome."""

# Set what the page would set by its sliders, and read what it found for each step.
READ = """async ([at, settings, name]) => {
  const group = await openGroup(at);
  store.settings = { ...defaults(store.overview.config), ...settings };
  const found = creditOf(group, name);
  const plain = (values) => values && Array.from(values, (v) => (Number.isNaN(v) ? null : v));
  return {
    advantages: plain(found.advantages), q: plain(found.q), v: plain(found.v),
    returns: plain(found.returns),
  };
}"""

ESTIMATORS = {"rtmc": RTMC, "grpo": GRPO, "grpo_step": GRPOStep}
LEVELS = ("root", "work", "content", "coarse", "paper", "full")


def write(path: Path, groups: list[Group], config: Config) -> Path:
    with open_page(path, config) as page:
        for group in groups:
            page.add(sign_group(group, config))
    return path


def compare(browser: Opened, groups: list[Group], config: Config, at: int, **changes: Any) -> None:
    """Compare every number of one group under changed settings."""
    options = {k: v for k, v in changes.items() if k in RTMC.__struct_fields__}
    rest = {k: v for k, v in changes.items() if k in Config.__struct_fields__}
    for name, kind in ESTIMATORS.items():
        if name == "rtmc":
            base = config.estimator if isinstance(config.estimator, RTMC) else RTMC()
            estimator: Any = msgspec.structs.replace(base, **options)
        else:
            estimator = kind()
        expected = credit(
            groups[at], msgspec.structs.replace(config, estimator=estimator, **rest)
        ).rollouts
        found = browser.page.evaluate(READ, [at, changes, name])
        columns = {"advantages": [x for r in expected for x in r.advantages.tolist()]}
        if name == "rtmc":
            columns["q"] = [x for r in expected for x in r.q_values.tolist()]
            columns["v"] = [x for r in expected for x in r.state_values.tolist()]
        if name != "grpo":
            columns["returns"] = [x for r in expected for x in r.returns.tolist()]
        for column, values in columns.items():
            same(found[column], values, f"{name} {column} {changes}")


def same(found: list[float | None], expected: list[float], what: str) -> None:
    assert len(found) == len(expected), what
    for i, (got, wanted) in enumerate(zip(found, expected, strict=True)):
        if math.isnan(wanted):
            assert got is None, f"{what}: step {i} has {got}, expected none"
        else:
            assert got is not None, f"{what}: step {i} has none, expected {wanted}"
            assert abs(got - wanted) <= 1e-9 * max(1, abs(wanted)), f"{what}: step {i}"


def test_the_example_group_at_every_setting(browser: Opened, tmp_path: Path) -> None:
    groups = read(str(EXAMPLE))
    config = Config()
    browser.open(write(tmp_path / "r.html", groups, config))
    settings = product(
        (1.0, 0.99, 0.7), (0.0, 2.0, 7.5), ("success_rate", "discounted", "none"), LEVELS
    )
    for gamma, n_prior, prior, level in settings:
        compare(browser, groups, config, 0, gamma=gamma, n_prior=n_prior, prior=prior, level=level)
    assert browser.problems == []


@pytest.mark.parametrize(
    "config",
    [
        Config.paper(),
        Config(estimator=RTMC(leave_one_out=True)),
        Config(estimator=RTMC(leave_one_out=True, n_prior=0)),
        Config(estimator=RTMC(leave_one_out=True, prior="discounted", repeats="paper")),
        Config(normalize="problem", gamma=0.9),
        Config(level="content,paper"),
    ],
    ids=["paper", "loo", "loo no prior", "loo discounted", "normalised", "chain"],
)
def test_the_example_group_as_other_settings_wrote_it(
    config: Config, browser: Opened, tmp_path: Path
) -> None:
    groups = read(str(EXAMPLE))
    browser.open(write(tmp_path / "r.html", groups, config))
    compare(browser, groups, config, 0)
    compare(browser, groups, config, 0, gamma=0.8)
    compare(browser, groups, config, 0, level="work", gamma=1.0)


def made_up() -> list[Group]:
    """Groups of every kind of outcome; steps of bare names, so that states repeat."""

    def rollout(name: str, words: str, reward: float | None, stop: str | None = None) -> Rollout:
        steps = tuple(
            Step((ToolCall("bash", {"command": word}, "", 0),), reward=0.1 * (word == "pytest"))
            for word in words.split()
        )
        return Rollout("p", name, steps, reward, stop_reason=stop)

    return [
        Group("uniform", (rollout("a", "ls pytest", 1.0), rollout("b", "ls ls", 1.0))),
        Group("one", (rollout("a", "ls pytest", 1.0),)),
        Group("unknown", (rollout("a", "ls", None), rollout("b", "pwd ls", None))),
        Group(
            "all kinds",
            (
                rollout("a", "ls pytest pytest ls", 1.0),
                rollout("b", "ls ls pytest", 0.0),
                rollout("c", "ls pwd", 0.4, "max_steps"),
                rollout("d", "pwd ls", None),
                rollout("e", "", 0.0),
                rollout("f", "pytest", 0.7),
            ),
        ),
        Group("empty", ()),
    ]


@pytest.mark.parametrize("incomplete", ["fail", "exclude", "mask"])
def test_groups_of_every_kind(incomplete: Any, browser: Opened, tmp_path: Path) -> None:
    groups = made_up()
    config = Config(incomplete=incomplete)
    browser.open(write(tmp_path / "r.html", groups, config))
    for at in range(len(groups)):
        compare(browser, groups, config, at)
        compare(browser, groups, config, at, gamma=0.5, prior="discounted", level="coarse")
    assert browser.problems == []


def test_real_groups(browser: Opened, tmp_path: Path, real: Path) -> None:
    groups = read(str(real / "groups" / "terminal-bench.jsonl"))
    config = Config()
    browser.open(write(tmp_path / "r.html", groups, config))
    for at, group in enumerate(groups):
        compare(browser, groups, config, at)
        if group.problem_id in MIXED:
            for level in LEVELS:
                compare(browser, groups, config, at, level=level, gamma=0.95, n_prior=1.0)
    assert browser.problems == []
    assert browser.requests == []
