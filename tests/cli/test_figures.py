"""``rtmc figures``: which files it writes and what it says, on real files."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from matplotlib.image import imread

from rtmc.cli import main
from rtmc.cli.figures import FileNames, figures

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "group.jsonl")
NAME = "dayplan__back-to-back"


def run(*args: str) -> Result:
    commands = type(main)("rtmc", commands={"figures": figures})
    return CliRunner().invoke(commands, ["figures", *args])


def row(problem: str, rollout: str, reward: float | None, *commands: str) -> str:
    messages: list[dict[str, Any]] = []
    for command in commands or ("ls",):
        arguments = json.dumps({"command": command})
        call = {"name": "bash", "arguments": arguments}
        messages.append(
            {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": call}]}
        )
    fields = {"problem_id": problem, "rollout_id": rollout, "reward": reward}
    return json.dumps(fields | {"messages": messages})


def write(path: Path, *rows: str) -> str:
    path.write_text("".join(line + "\n" for line in rows))
    return str(path)


def mixed(problem: str) -> tuple[str, str]:
    return row(problem, "a", 1, "ls", "cat a.py"), row(problem, "b", 0, "ls", "cat b.py")


def test_four_figures_of_the_example_group(tmp_path: Path) -> None:
    result = run(EXAMPLE, "-o", str(tmp_path / "new" / "figures"))
    assert result.exit_code == 0, result.output
    names = [f"tree-{NAME}.png", f"comparison-{NAME}.png", "quadrants.png", "overlap.png"]
    assert sorted(os.listdir(tmp_path / "new" / "figures")) == sorted(names)
    assert result.stdout == f"{tmp_path}/new/figures: 4 figures: {', '.join(names)}\n"
    assert imread(tmp_path / "new" / "figures" / "quadrants.png").shape[1] == 200 * 7


def test_kinds_width_and_dots(tmp_path: Path) -> None:
    result = run(
        EXAMPLE, "-o", str(tmp_path), "--format", "SVG, pdf,png", "--width", "7", "--dpi", "50"
    )
    assert result.exit_code == 0, result.output
    assert len(os.listdir(tmp_path)) == 12
    for name in (f"tree-{NAME}", f"comparison-{NAME}", "quadrants", "overlap"):
        assert imread(tmp_path / f"{name}.png").shape[1] == 350
        assert b'width="504pt"' in (tmp_path / f"{name}.svg").read_bytes()
        assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_a_second_run_writes_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        assert run(EXAMPLE, "-o", str(tmp_path / folder), "--format", "svg,pdf").exit_code == 0
    for name in os.listdir(tmp_path / "a"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_groups_that_ended_alike_are_left_out_and_named(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in.jsonl", *mixed("mixed"), row("even", "a", 1), row("even", "b", 1),
        row("single", "a", 0), row("nobody", "a", None),
    )  # fmt: skip
    result = run(source, "-o", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert sorted(os.listdir(tmp_path / "out")) == [
        "comparison-mixed.png", "overlap.png", "quadrants.png", "tree-mixed.png"
    ]  # fmt: skip
    assert result.stdout.splitlines()[1] == (
        "left out, as their rollouts do not differ in outcome: even, single, nobody; "
        "--problem ID draws one"
    )
    result = run(source, "-o", str(tmp_path / "one"), "--problem", "even", "--problem", "nobody")
    assert result.exit_code == 0, result.output
    assert {"tree-even.png", "tree-nobody.png"} <= set(os.listdir(tmp_path / "one"))
    assert "left out" not in result.stdout


def test_an_unknown_problem_is_an_error_that_names_some(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", *(line for i in range(10) for line in mixed(f"p{i}")))
    result = run(source, "-o", str(tmp_path / "out"), "--problem", "q")
    assert result.exit_code == 2
    assert result.stderr == (
        "rtmc: no problem q in the input; it has p0, p1, p2, p3, p4, p5, p6, p7 and 2 more\n"
    )


def test_an_empty_input_is_an_error(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl")
    result = run(source, "-o", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert result.stderr.startswith("rtmc: ")
    assert result.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for output in (tmp_path / "file" / "figures", tmp_path / "file"):
        result = run(EXAMPLE, "-o", str(output))
        assert result.exit_code == 2
        assert result.stderr.startswith(f"rtmc: cannot make the folder {output}: ")
        assert result.stderr.endswith("; choose another -o\n")


def test_an_unknown_kind_is_an_error(tmp_path: Path) -> None:
    result = run(EXAMPLE, "-o", str(tmp_path), "--format", "png,gif")
    assert result.exit_code == 2
    assert "'gif' is not one of png, svg, pdf" in result.stderr


def test_a_figure_replaces_the_old_one_whole(tmp_path: Path) -> None:
    (tmp_path / "overlap.png").write_text("old")
    assert run(EXAMPLE, "-o", str(tmp_path)).exit_code == 0
    assert imread(io.BytesIO((tmp_path / "overlap.png").read_bytes())).size
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize("estimator", ["grpo", "grpo_step", "rtmc"])
def test_every_estimator_can_be_drawn(tmp_path: Path, estimator: str) -> None:
    result = run(EXAMPLE, "-o", str(tmp_path), "--estimator", estimator, "--level", "content,paper")
    assert result.exit_code == 0, result.output


def test_hostile_problem_ids_make_files_in_the_folder(tmp_path: Path) -> None:
    ids = [
        "../up",
        "a/b",
        "a-b",
        "A?B",
        "x" * 300,
        "x" * 301,
        '"quoted" $1$',
        "nul\0",
        "漢字",
        "..",
    ]
    source = write(tmp_path / "in.jsonl", *(line for name in ids for line in mixed(name)))
    result = run(source, "-o", str(tmp_path / "out"), "--dpi", "50")
    assert result.exit_code == 0, result.output
    names = os.listdir(tmp_path / "out")
    assert len(names) == 2 * len(ids) + 2
    assert {"tree-up.png", "tree-a-b.png", "tree-a-b-2.png", "tree-A-B-3.png"} <= set(names)
    assert sorted(os.listdir(tmp_path)) == ["in.jsonl", "out"]


def test_names_of_files() -> None:
    names = FileNames()
    ids = ["django__django-11239", "a/b", "a b", "A b", "", "-", "é", "a" * 99, "a" * 98]
    assert [names.take(problem) for problem in ids] == [
        "django__django-11239", "a-b", "a-b-2", "A-b-3", "problem", "problem-2", "problem-3",
        "a" * 80, "a" * 80 + "-2",
    ]  # fmt: skip


def test_help_has_examples_and_says_what_is_written() -> None:
    out = run("--help").output
    assert "rtmc figures rollouts.jsonl -o figures" in out
    for word in ("tree-PROBLEM", "comparison-PROBLEM", "quadrants", "overlap", "png, svg, pdf"):
        assert word in out


def test_real_groups(real: Path, tmp_path: Path) -> None:
    source = real / "groups" / "terminal-bench.jsonl"
    result = run(str(source), "-o", str(tmp_path), "--format", "svg")
    assert result.exit_code == 0, result.output
    assert len(os.listdir(tmp_path)) == 2 * 5 + 2
    assert "and 19 more; --problem ID draws one" in result.stdout


def training(folder: Path, estimator: str) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"credit": {"estimator": estimator}}))
    (folder / "metrics.jsonl").write_text('{"step": 1, "success": 0.5}\n')
    return str(folder)


def test_runs_of_training_give_their_curves(tmp_path: Path) -> None:
    runs = [training(tmp_path / name, name) for name in ("grpo", "rtmc")]
    result = run(*runs, "-o", str(tmp_path / "out"), "--format", "svg")
    assert result.exit_code == 0, result.output
    assert os.listdir(tmp_path / "out") == ["curves.svg"]
    assert "curves.svg" in result.stdout


def test_runs_and_rollouts_are_not_drawn_together(tmp_path: Path) -> None:
    result = run(training(tmp_path / "run", "rtmc"), EXAMPLE, "-o", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert f"{tmp_path}/run is a run of rtmc train" in result.output
    assert not (tmp_path / "out").exists()
