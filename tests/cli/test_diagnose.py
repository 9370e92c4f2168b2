"""``rtmc diagnose``: what it prints, for people and for programs, and what it refuses."""

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rtmc.cli import main

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples" / "group.jsonl")


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["diagnose", *args])


def message(number: int, command: str) -> dict[str, Any]:
    arguments = json.dumps({"command": command})
    call = {
        "id": str(number),
        "type": "function",
        "function": {"name": "bash", "arguments": arguments},
    }
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def row(problem: str, rollout: str, reward: float | None, *commands: str) -> str:
    messages = [message(*numbered) for numbered in enumerate(commands or ("ls",))]
    fields = {"problem_id": problem, "rollout_id": rollout, "reward": reward, "messages": messages}
    return json.dumps(fields)


def write(path: Path, *rows: str) -> str:
    path.write_text("".join(line + "\n" for line in rows))
    return str(path)


def refused(result: Result, *words: str) -> None:
    """Check that a run failed with one clear line."""
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("rtmc: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr


def section(text: str, title: str) -> list[str]:
    """The lines below a title."""
    blocks = {block.splitlines()[0]: block.splitlines()[1:] for block in text.split("\n\n")}
    (found,) = (lines for name, lines in blocks.items() if name.startswith(title))
    return found


# --- what it prints ----------------------------------------------------------------------------


def test_output_is_what_the_documentation_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs" / "diagnose.md").read_text(encoding="utf-8")
    ((command, shown),) = re.findall(r"```console\n\$ rtmc (.*?)\n(.*?)```", text, re.DOTALL)
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 0, result.output
    assert result.stdout.rstrip() == shown.rstrip()


def test_every_section_ends_in_what_it_means() -> None:
    result = run(EXAMPLE)
    assert result.stderr == ""
    *sections, advice = result.stdout.split("\n\n")
    assert len(sections) == 9
    for block in sections:
        assert "\n  → " in block, block
    assert advice.startswith("What to do\n1. ")
    assert max(map(len, result.stdout.splitlines())) <= 100


def plant(path: Path, groups: int, odds: tuple[float, float]) -> str:
    """Rollouts look at the top or at the end of a file, and then around in any order."""
    random = Random(3)
    rows = []
    for g in range(groups):
        for r in range(8):
            top = random.random() < 0.5
            around = random.sample(["cat a.py", "cat b.py", "cat c.py", "cat d.py", "ls"], 3)
            look = "sed -n 1,50p core.py" if top else "sed -n 500,550p core.py"
            reward = float(random.random() < odds[top])
            rows.append(row(f"p{g}", f"r{r}", reward, look, *around, "cat a.py"))
    return write(path, *rows)


def test_a_level_that_sees_what_matters_is_recommended(tmp_path: Path) -> None:
    # which lines were looked at is in the states of paper and full; full has the order too
    source = plant(tmp_path / "in.jsonl", 20, (0.1, 0.9))
    text = run(source, "--level", "coarse").stdout
    assert section(text, "Level")[-1].strip() == (
        "→ Take paper: what it saves over coarse exceeds the noise."
    )
    assert "Take --level paper: its states save 0." in text
    kept = run(source, "--level", "paper").stdout
    assert section(kept, "Level")[-1].strip() == "→ Keep paper: no level predicts better."


def test_noise_keeps_the_level(tmp_path: Path) -> None:
    source = plant(tmp_path / "in.jsonl", 20, (0.5, 0.5))
    for level in ("coarse", "paper"):
        found = json.loads(run(source, "--level", level, "--json").stdout)
        assert not (found["levels"]["better"] and found["levels"]["best"] in ("paper", "full"))
        assert found["noise"]["total"]["signal"]["value"] < 0.1
        assert not any("--level" in line or "lam=" in line for line in found["advice"])


def test_four_groups_are_called_weak(tmp_path: Path) -> None:
    text = run(plant(tmp_path / "in.jsonl", 4, (0.2, 0.8)), "--level", "coarse").stdout
    assert "→ 4 groups of mixed outcome: every figure below is weak." in text
    assert "→ Keep coarse: " in text
    assert "4 groups cannot tell." in text
    assert "1. Collect more groups of mixed outcome before changing settings: there are 4" in text


def test_farming_is_warned_of(tmp_path: Path) -> None:
    farm = [c for k in range(12) for c in (f"sed -i s/a/{k}/ f.py", "pytest")]
    rows = [
        row(f"p{g}", name, reward, *commands)
        for g in range(6)
        for name, reward, commands in (
            ("a", 1.0, ["sed -i s/a/b/ f.py", "pytest"]),
            ("b", 0.0, farm[: 24 - 2 * (g % 2)]),
        )
    ]
    source = write(tmp_path / "in.jsonl", *rows)
    text = run(source, "--max-bonuses", "none").stdout
    assert "→ Failing rollouts validate more than passing ones: the bonus pays failures." in text
    assert "1. Bound the bonus with --max-bonuses 1: it pays up to 0.60 a rollout" in text
    bounded = run(source).stdout
    assert "and more than half of that to 6." in bounded
    assert "Bound the bonus" not in bounded


def test_no_validation_no_bonus(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", row("p", "a", 1), row("p", "b", 0, "cat x"))
    last = section(run(source).stdout, "Validation")[-1]
    assert last == "  → No rollout validates a change of code: there is no bonus to earn."


def test_skipped_records_are_named(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", row("p", "a", 1), row("p", "b", 0, "cat x"), "{broken")
    assert f"skipped {source}:3" in run(source).stderr
    found = json.loads(run(source, "--json").stdout)
    assert [entry["source"] for entry in found["input"]["skipped"]] == [f"{source}:3"]


def test_settings_of_the_paper_and_chains_are_taken(tmp_path: Path) -> None:
    found = json.loads(
        run(EXAMPLE, "--preset", "paper", "--level", "content,paper", "--json").stdout
    )
    assert found["config"]["max_bonuses"] is None
    assert found["levels"]["own"] == "content,paper"
    assert list(found["overlap"])[-1] == "content,paper"


# --- for programs ------------------------------------------------------------------------------

MEASURED = {"value", "error", "groups"}
RANGES = ["first", "1-4", "5-9", "10-19", "20+"]


def test_json_is_one_object_with_every_figure_and_its_error() -> None:
    result = run(EXAMPLE, "--json")
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert list(found) == [
        "signal", "overlap", "support", "noise", "levels", "growth", "lambdas", "bonus", "length",
        "advice", "config", "input",
    ]  # fmt: skip
    levels = ["work", "coarse", "paper", "content", "full"]
    assert list(found["overlap"]) == list(found["levels"]["by_level"]) == levels
    assert list(found["noise"]["by_step_index"]) == RANGES
    assert list(found["support"]["behind_q"]) == ["1", "2", "3-4", "5+"]
    assert list(found["lambdas"]["correlation"]) == ["0", "0.25", "0.5", "0.75", "1"]
    for figure in (
        found["signal"]["share"],
        found["overlap"]["work"]["by_step_index"]["5-9"],
        found["support"]["no_choice"],
        found["noise"]["total"]["signal"],
        found["levels"]["by_level"]["full"]["over_own"],
        found["growth"]["by_doubling"],
        found["bonus"]["failing_more"],
        found["length"]["winners_slope"],
    ):
        assert set(figure) == MEASURED
    assert found["signal"]["share"] == {"value": 1.0, "error": None, "groups": 1}
    assert found["overlap"]["work"]["by_step_index"]["20+"]["value"] is None
    assert found["input"] == {"files": {"chat": 1}, "skipped": [], "warnings": []}
    assert found["config"]["level"] == "paper"


# --- what it refuses ---------------------------------------------------------------------------


def test_what_can_tell_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    refused(run(write(path, row("p", "a", None), row("p", "b", None))), "--unknown fail")
    refused(run(write(path, row("p", "a", 1), row("q", "b", 0))), "has one rollout", "--group-by")
    refused(run(write(path, row("p", "a", 1), row("p", "b", 1))), "every advantage is 0")
    refused(run(write(path, row("p", "a", 1), row("p", "b", 1)), "--json"), "every advantage is 0")


def test_other_estimators_and_levels_are_refused() -> None:
    refused(run(EXAMPLE, "--estimator", "grpo"), "the estimator is grpo; expected rtmc")
    refused(run(EXAMPLE, "--level", "papr"), "unknown level papr")


def test_help_has_an_example() -> None:
    text = run("--help").output
    assert "rtmc diagnose rollouts.jsonl" in text
    assert "standard errors over groups" in " ".join(text.split())


# --- real rollouts -----------------------------------------------------------------------------


def test_real_rollouts(real: Path) -> None:
    found = json.loads(run(str(real / "groups" / "terminal-bench.jsonl"), "--json").stdout)
    assert (found["signal"]["groups"], found["signal"]["live"]) == (32, 5)
    assert found["overlap"]["paper"]["share"]["value"] == pytest.approx(0.41, abs=0.005)
    assert not found["levels"]["better"]
    assert not found["lambdas"]["better"]
