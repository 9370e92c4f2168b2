"""Runs of ``rtmc train``: what their folders say, which belong together, and their curves."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtmc.errors import FormatError
from rtmc.report.curves import curves
from rtmc.report.runs import flat, is_run, labelled, read_run


def run(folder: Path, lines: list[Any], **settings: Any) -> str:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(folder)


def line(step: int, success: float) -> dict[str, float]:
    return {"step": step, "success": success, "signal": 0.5, "entropy": 1.0}


def test_a_run_is_read_up_to_the_line_that_is_being_written(tmp_path: Path) -> None:
    path = run(
        tmp_path / "one", [{"step": 0, "eval_success": 0.2}, line(1, 0.25), line(2, 0.5)], seed=3
    )
    with (tmp_path / "one" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 3, "succ')
    found = read_run(path)
    assert (found.name, found.settings) == ("one", {"seed": 3})
    steps, values = found.curves["success"]
    assert (steps.tolist(), values.tolist()) == ([1, 2], [0.25, 0.5])
    assert found.curves["eval_success"][0].tolist() == [0]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([[1]], "metrics.jsonl:1: expected a JSON object"),
        ([line(1, 0.5), {"success": 1}], "metrics.jsonl:2: expected a step"),
        ([], "no step in it yet"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, lines: list[Any], told: str) -> None:
    with pytest.raises(FormatError, match=told):
        read_run(run(tmp_path / "one", lines))


def test_other_folders_are_no_runs(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").touch()
    assert not is_run(str(tmp_path))
    assert not is_run("-")


def kinds(tmp_path: Path, *settings: dict[str, Any]) -> dict[str, list[str]]:
    paths = [run(tmp_path / str(k), [line(1, 0.5)], **of) for k, of in enumerate(settings)]
    found = labelled([read_run(path) for path in paths])
    return {name: [one.name for one in of] for name, of in found.items()}


def credit(estimator: str, seed: int, rate: float = 0.1, **output: str) -> dict[str, Any]:
    optimizer = {"learning_rate": rate}
    return {"seed": seed, "credit": {"estimator": estimator}, "optimizer": optimizer} | output


def test_runs_that_differ_by_seed_are_of_a_kind(tmp_path: Path) -> None:
    assert kinds(
        tmp_path, credit("rtmc", 0), credit("grpo", 0), credit("rtmc", 1, about="again")
    ) == {"rtmc": ["0", "2"], "grpo": ["1"]}


def test_kinds_are_named_by_what_differs(tmp_path: Path) -> None:
    found = kinds(tmp_path, credit("rtmc", 0), credit("rtmc", 0, 0.2), credit("rtmc", 1, 0.2))
    assert found == {"learning rate 0.1": ["0"], "learning rate 0.2": ["1", "2"]}


def test_runs_of_one_kind_are_named_by_their_folder_or_as_all(tmp_path: Path) -> None:
    assert kinds(tmp_path / "a", credit("rtmc", 0)) == {"0": ["0"]}
    assert kinds(tmp_path / "b", credit("rtmc", 0), credit("rtmc", 1)) == {"all runs": ["0", "1"]}


def test_a_kind_without_what_differs_is_the_others(tmp_path: Path) -> None:
    ablation = credit("rtmc", 0)
    ablation["credit"] = {"estimator": "rtmc", "options": {"prior": "none"}}
    found = kinds(tmp_path, credit("rtmc", 0), credit("rtmc", 1), ablation)
    assert found == {"the others": ["0", "1"], "prior none": ["2"]}


def test_settings_are_named_by_dotted_keys() -> None:
    table = {"a": {"b": {"c": 1}, "d": [], "f": {}}, "e": None}
    assert flat(table) == {"a.b.c": 1, "a.d": [], "a.f": {}, "e": None}


def test_a_line_is_the_mean_of_a_kind_with_its_range(tmp_path: Path) -> None:
    """Success is averaged over five steps; one run is longer."""
    low = [line(step, 0.1 * step) for step in range(1, 8)]
    high = [line(step, 0.1 * step + 0.2) for step in range(1, 7)]
    runs = [read_run(run(tmp_path / name, lines)) for name, lines in (("low", low), ("high", high))]
    figure = curves(labelled(runs))
    panels = {axes.get_title("left"): axes for axes in figure.axes}
    (drawn,) = panels["success of all rollouts"].get_lines()
    assert list(drawn.get_xdata()) == [1, 2, 3, 4, 5, 6]
    expected = [0.1, 0.15, 0.2, 0.25, 0.3, 0.4]  # of the lower run; the other is 0.2 higher
    assert np.allclose(drawn.get_ydata(), np.array(expected) + 0.1)
    (band,) = panels["success of all rollouts"].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(0.1)
    assert heights.max() == pytest.approx(0.6)
    assert not panels["success on held-out problems"].get_lines()
    assert any("all runs (2)" in text.get_text() for text in figure.axes[0].texts)
