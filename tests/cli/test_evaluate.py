"""``rtmc evaluate``: what it prints and writes, and what it refuses."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rtmc.cli import main
from rtmc.evaluation import decode_evaluation
from rtmc.rollouts import Rollout, Step, encode_rollout

ROOT = Path(__file__).parents[2]
BEFORE, AFTER = (str(ROOT / "examples" / "evaluations" / f"{n}.json") for n in ("before", "after"))


def run(*args: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["evaluate", *args], input=text)


def lines(**outcomes: str) -> bytes:
    """Write rollouts: + passed, - failed, ? unknown, ! an error, | a limit."""
    rows = []
    for problem, marks in outcomes.items():
        for number, mark in enumerate(marks):
            reward = {"+": 1.0, "-": 0.0, "|": 0.0}.get(mark)
            stop = {"!": "error: no sandbox", "|": "limit of 3 steps"}.get(mark, "finished")
            one = Rollout(problem, f"r{number}", (Step(thought="x"),), reward, stop_reason=stop)
            rows.append(encode_rollout(one) + b"\n")
    return b"".join(rows)


def write(path: Path, **outcomes: str) -> str:
    path.write_bytes(lines(**outcomes))
    return str(path)


def good(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(result: Result, *words: str) -> None:
    """Check that a run failed with one clear line."""
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("rtmc: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr


# --- what it prints ------------------------------------------------------------------------------


def test_output_is_what_the_documentation_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    shown = re.findall(r"```console\n\$ rtmc (.*?)\n(.*?)```", text, re.DOTALL)
    assert len(shown) == 2
    for command, output in shown:
        result = CliRunner().invoke(main, command.split())
        assert good(result).rstrip() == output.rstrip()
        assert max(map(len, output.splitlines())) <= 100


def test_one_evaluation(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", p="++-", q="|--", r="+?!", s="+++")
    result = run(source)
    assert result.stderr == ""
    assert good(result).splitlines() == [
        source,
        "  problems         4, 3 runs each",
        "  runs             12: 6 passed, 4 failed, 2 not counted",
        "  incomplete       1 stopped by a limit: failed",
        "  unknown          1 of unknown outcome: not counted",
        "  errors           1 ended by an error that was not the agent's: not counted",
        "  stop reasons     10 finished, 1 error, 1 limit of 3 steps",
        "  a run takes      1.0 steps",
        "",
        "Per cent of the problems [95 % interval]",
        # 2/3, 0, 1, 1
        "  pass@1           66.7 [24.5, 92.5]",
        "  pass@2           66.7 [20.8, 93.9]   3 problems; 1 with too few runs left out",
        "  majority of 3    66.7 [20.8, 93.9]   3 problems; 1 with too few runs left out",
        # 2/3, 0, 1/3 or 3/3, 1
        "  → pass@1 is 50.0 if every run that is not counted failed, 66.7 if it passed.",
        "  → 4 problems: the intervals say little.",
    ]


def test_other_sizes_and_rules(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", p="++-", q="|--", r="+?!", s="+++")
    text = good(run(source, "--k", "3", "--majority", "2", "--unknown", "fail"))
    assert "12: 6 passed, 6 failed\n" in text
    assert re.findall(r"pass@\d", text) == ["pass@1", "pass@3"]
    assert "majority of 2" in text
    assert "not counted" not in text
    assert "1 stopped by a limit: not counted" in good(run(source, "--incomplete", "exclude"))


def test_against_itself_nothing_is_gained_or_lost() -> None:
    found = json.loads(good(run(AFTER, "--against", AFTER, "--json")))["comparison"]
    assert found["gained"]["ids"] == found["lost"]["ids"] == []
    assert found["difference"]["value"] == 0
    assert (found["better"], found["worse"]) == (0, 0)
    text = good(run(AFTER, "--against", AFTER))
    assert "→ pass@1 after is within the noise of pass@1 before." in text
    assert "Gained" not in text
    assert "Lost" not in text


def test_rollouts_against_a_finished_evaluation(tmp_path: Path) -> None:
    base = str(tmp_path / "base.json")
    good(run(write(tmp_path / "a.jsonl", p="--------", q="++++++++", gone="+"), "-o", base))
    new = write(tmp_path / "b.jsonl", p="++++++++", q="--------", more="-", none="?")
    text = good(run(new, "--against", base))
    assert f"left out         1 only in {tmp_path / 'a.jsonl'}: gone\n" in text
    assert f"left out         2 only in {new}: more, none\n" in text
    assert "gained           1 by majority; 0.6 expected if nothing changed" in text
    gained, lost = text.split("\nGained")[1].split("\nLost")
    row = r"  {}\s+{}/8\s+{}/8\s+{}\s+<0.001\s+<0.001 !"
    assert re.search(row.format("p", 0, 8, "no → yes"), gained)
    assert re.search(row.format("q", 8, 0, "yes → no"), lost)
    assert "→ 1 problem got worse beyond luck (marked !)." in text


def test_few_runs_can_show_no_single_change(tmp_path: Path) -> None:
    one, other = (write(tmp_path / f"{mark}.jsonl", p=mark, q=mark) for mark in "+-")
    text = good(run(one, "--against", other))
    assert "it takes three on either side" in " ".join(text.split())
    assert re.search(r"p +0/1 +1/1 +no → yes +0\.500 +–", text)


def test_more_losses_than_luck_without_a_culprit(tmp_path: Path) -> None:
    problems = [f"p{i}" for i in range(8)]
    one, other = (
        write(tmp_path / f"{mark}.jsonl", **dict.fromkeys(problems, mark)) for mark in "-+"
    )
    text = " ".join(good(run(one, "--against", other)).split())
    assert "More problems were lost than by luck; which of them, these runs cannot say." in text
    assert "pass@1 after is below pass@1 before." in text


def test_checkpoints(tmp_path: Path) -> None:
    one = write(tmp_path / "1.jsonl", p="+-", q="--", only="+")
    two = write(tmp_path / "2.jsonl", p="++", q="+-")
    text = good(run(one, two))
    assert text.startswith("2 checkpoints on 2 problems that all have runs of\n")
    assert "left out         1 without runs in all: only\n" in text
    assert f"{two} ←" in text
    assert re.search(r"best +\S+2\.jsonl; again in [\d.]+ of resamples", text)
    assert "its figure is too high" in text
    held = [write(tmp_path / f"h{i}.jsonl", z=marks) for i, marks in enumerate(("++", "+-"))]
    text = good(run(one, two, "--held-out", held[0], "--held-out", held[1]))
    assert "held out         50.0 [?] on problems that did not pick it\n" in text
    found = json.loads(good(run(one, two, "--json")))
    assert list(found) == ["evaluations", "held_out", "best"]
    assert found["best"]["at"] == 1
    assert good(run(one, two, "--json")) == good(run(one, two, "--json"))


# --- what it writes ------------------------------------------------------------------------------


def test_an_evaluation_is_written_and_read_back(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", p="++-+", q="--+-")
    output = tmp_path / "e.json"
    text = good(run(source, "-o", str(output)))
    assert text.endswith(f"  written          {output}\n")
    found = decode_evaluation(output.read_bytes())
    assert [problem.passed for problem in found.problems] == [3, 1]
    # a finished evaluation prints the same, also where it was reformatted
    again = good(run(str(output))).replace("  written", "")
    assert text.startswith(again)
    output.write_text(json.dumps(json.loads(output.read_text()), indent=2))
    assert good(run(str(output))) == again
    # other figures follow from its counts
    assert good(run(str(output), "--k", "4")) == good(run(source, "--k", "4"))


def test_json(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", p="++-", q="--+")
    result = run(source, "--json")
    found: dict[str, Any] = json.loads(good(result))
    assert list(found) == ["evaluations"]
    assert found["evaluations"][0]["schema"] == "rtmc.evaluation/1"
    assert result.stderr == ""


def test_a_folder_with_a_report_of_the_harness(tmp_path: Path) -> None:
    for number, resolved in enumerate((["p", "q"], ["p"], [])):
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
        write(folder / "rollouts.jsonl", p="?", q="?")
        report = {"resolved_ids": resolved, "unresolved_ids": sorted({"p", "q"} - set(resolved))}
        (folder / f"model.run-{number}.json").write_text(json.dumps(report))
    # own lines of equal ids are parts of one rollout: give each run its own
    for number in range(3):
        path = tmp_path / f"run-{number}" / "rollouts.jsonl"
        path.write_bytes(path.read_bytes().replace(b'"r0"', f'"r{number}"'.encode()))
    found = json.loads(good(run(str(tmp_path), "--json")))["evaluations"][0]
    assert [(p["counted"], p["passed"]) for p in found["problems"]] == [(3, 2), (3, 1)]


def test_the_standard_input() -> None:
    result = CliRunner().invoke(main, ["evaluate", "-"], input=lines(p="+", q="-"))
    assert good(result).startswith("standard input\n")


def test_skipped_records_are_named(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(lines(p="+", q="-") + b"{broken\n")
    result = run(str(path))
    assert f"skipped {path}:3" in result.stderr
    assert "pass@1           50.0" in good(result)


# --- what it refuses -----------------------------------------------------------------------------


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    one = write(tmp_path / "1.jsonl", p="+-")
    two = write(tmp_path / "2.jsonl", q="+-")
    refused(run(one, two, "-o", "x.json"), "-o writes one evaluation")
    refused(run(one, two, "--against", one), "--against compares one INPUT")
    refused(run(one, "--held-out", two), "--held-out is for several checkpoints")
    refused(run(one, "--against", "-"), "can be one input only")
    refused(run(one, two), "share no problem")
    refused(run(one, "--against", two), f"{two} and {one} share no problem", "q against p")
    refused(run(one, "--k", "3"), "k is 3; expected 1 to 2")
    refused(run(one, "--majority", "3"), "majority is 3; expected 1 to 2")
    refused(run(one, "-o", one), "is among the inputs")
    refused(run(str(tmp_path / "none.jsonl")), "no such file")
    refused(run(write(tmp_path / "u.jsonl", p="?")), "no rollout with a known outcome")
    refused(run(BEFORE, "--unknown", "fail"), "was counted with --unknown exclude; evaluate its")
    good(run(BEFORE, "--unknown", "exclude"))
    result = run(one, "--k", "2,x")
    assert result.exit_code == 2
    assert "expected numbers, as in 1,2,4" in result.stderr


def test_a_broken_evaluation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    path.write_text('{"schema":"rtmc.evaluation/1","name":3}')
    refused(run(str(path)), f"{path}: not an evaluation of schema rtmc.evaluation/1", "$.name")
    path.write_text('{"schema":"rtmc.evaluation/7"}')
    refused(run(str(path)), "expected schema 'rtmc.evaluation/1', got 'rtmc.evaluation/7'")


def test_help_has_examples() -> None:
    text = run("--help").output
    assert "rtmc evaluate trained.jsonl --against base.jsonl" in text
    assert "rtmc evaluate" in CliRunner().invoke(main, ["evaluate", "-h"]).output
    assert "evaluate" in CliRunner().invoke(main, ["--help"]).output


def test_real_rollouts(real: Path) -> None:
    found = json.loads(good(run(str(real / "groups" / "terminal-bench.jsonl"), "--json")))
    (one,) = found["evaluations"]
    assert len(one["problems"]) == 32
    assert sum(problem["runs"] for problem in one["problems"]) == 132


def test_predictions_for_the_harness(tmp_path: Path) -> None:
    """One file a run; a rollout without a patch has none, an empty patch is one."""
    patches = {("a", "0"): "diff a0", ("a", "1"): "diff a1", ("b", "0"): "", ("c", "0"): None}
    rollouts = [
        Rollout(problem, name, (Step(),), reward=0.0, model="org/m", patch=patch)
        for (problem, name), patch in patches.items()
    ]
    path, folder = tmp_path / "r.jsonl", tmp_path / "out" / "p"
    path.write_bytes(b"".join(encode_rollout(one) + b"\n" for one in rollouts))
    done = CliRunner().invoke(main, ["evaluate", str(path), "--predictions", str(folder)])
    assert done.exit_code == 0, done.output
    rows = [
        [tuple(json.loads(line).values()) for line in file.read_text().splitlines()]
        for file in sorted(folder.iterdir())
    ]
    assert rows == [
        [("a", "org__m", "diff a0"), ("b", "org__m", "")],
        [("a", "org__m", "diff a1")],
    ]
    assert f"--predictions_path {folder}/predictions-1.jsonl --max_workers 4 --run_id r-1" in (
        done.stdout
    )
    path.write_bytes(encode_rollout(rollouts[-1]) + b"\n")
    done = CliRunner().invoke(main, ["evaluate", str(path), "--predictions", str(folder)])
    assert done.exit_code == 2
    assert "no rollout holds a patch" in done.stderr
    done = CliRunner().invoke(main, ["evaluate", str(path), str(path), "--predictions", "x"])
    assert "--predictions takes the patches of one INPUT" in done.stderr
