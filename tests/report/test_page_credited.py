"""A report from what rtmc credit wrote."""

import json
import math
from pathlib import Path

import pytest

from browser import Opened
from pages import (
    EDGE,
    EXAMPLE,
    kinds,
    near,
    run,
    shown_advantages,
)
from rtmc.rollouts import Group, encode_rollout

CREDITED = """async (at) => {
  const group = await openGroup(at);
  const { advantages } = creditOf(group, store.settings.estimator);
  return [...group.rollouts.keys()].map((r) => [group.rollouts[r].id,
    [...advantages.slice(group.starts[r], group.starts[r + 1])].map(
      (value) => (Number.isNaN(value) ? null : value))]);
}"""


@pytest.mark.parametrize(
    ("suffix", "flags"),
    [
        ("jsonl", []),
        ("jsonl", ["--preset", "paper"]),
        ("jsonl", ["--level", "content,paper"]),
        ("jsonl", ["--incomplete", "mask"]),
        ("jsonl", ["--estimator", "grpo", "--std", "sample"]),
        ("jsonl", ["--leave-one-out", "--gamma", "0.9"]),
        ("jsonl", ["--estimator", "hgpo"]),
        ("jsonl", ["--estimator", "graph_gae", "--param", "uniform=keep"]),
        ("jsonl", ["--estimator", "chain_gae", "--normalize", "problem"]),
        ("parquet", ["--estimator", "chain_gae", "--incomplete", "mask"]),
        ("jsonl", ["--estimator", "pooled_gae", "--normalize", "problem"]),
        ("parquet", ["--estimator", "graph_gae", "--incomplete", "mask"]),
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
