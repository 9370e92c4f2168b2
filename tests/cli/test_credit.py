"""``rtmc credit``: real runs on real files, what it writes and prints, and what it refuses."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from rtmc.cli import main
from rtmc.cli.credit import batched
from rtmc.rollouts import Group, Rollout, Step

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "group.jsonl")


def run(*args: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, list(args), input=stdin)


def message(command: str) -> dict[str, Any]:
    arguments = json.dumps({"command": command})
    call = {"id": command, "type": "function", "function": {"name": "bash", "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def row(problem: str, rollout: str, reward: float | None, *commands: str, **more: Any) -> str:
    messages = [message(command) for command in commands or ("ls",)]
    fields = {"problem_id": problem, "rollout_id": rollout, "reward": reward, "messages": messages}
    return json.dumps(fields | more)


def write(path: Path, *rows: str) -> str:
    path.write_text("".join(line + "\n" for line in rows))
    return str(path)


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def advantages(records: list[dict[str, Any]]) -> dict[str, list[float | None]]:
    return {r["rollout_id"]: [s["advantage"] for s in r["steps"]] for r in records}


# --- what it writes ----------------------------------------------------------------------------


def test_a_record_holds_everything_its_numbers_came_from(tmp_path: Path) -> None:
    result = run("credit", EXAMPLE, "-o", str(tmp_path / "credit.jsonl"))
    assert result.exit_code == 0, result.output
    records = written(tmp_path / "credit.jsonl")
    assert len(records) == 8
    assert list(records[0]) == [
        "schema", "problem_id", "rollout_id", "source", "status", "reward", "flags", "config",
        "steps",
    ]  # fmt: skip
    assert list(records[0]["steps"][0]) == [
        "t", "action", "state", "reward", "return", "q", "v", "n_s", "n_sa", "first_visit",
        "advantage", "spans",
    ]  # fmt: skip
    assert records[3]["source"] == {"path": EXAMPLE, "line": 4}
    # every number again, from the records alone
    config = records[0]["config"]
    cells: dict[tuple[str, str], list[float]] = {}
    for record in records:
        later = 0.0
        seen = set()
        for step in reversed(record["steps"]):
            later = step["reward"] + config["gamma"] * later
            assert step["return"] == pytest.approx(later, abs=1e-12)
        for step in record["steps"]:
            cell = (step["state"], step["action"])
            assert step["first_visit"] == (cell not in seen)
            if cell not in seen:
                cells.setdefault(cell, []).append(step["return"])
            seen.add(cell)
    success = sum(r["reward"] for r in records) / len(records)
    for record in records:
        for step in record["steps"]:
            visits = [g for (s, _), gs in cells.items() if s == step["state"] for g in gs]
            q = cells[step["state"], step["action"]]
            assert (step["n_s"], step["n_sa"]) == (len(visits), len(q))
            assert step["q"] == pytest.approx(sum(q) / len(q), abs=1e-12)
            smoothed = (sum(visits) + config["n_prior"] * success) / (
                len(visits) + config["n_prior"]
            )
            assert step["v"] == pytest.approx(smoothed, abs=1e-12)
            raw = step["q"] - step["v"]
            assert step["advantage"] == pytest.approx(
                raw if step["first_visit"] else min(0, raw), abs=1e-12
            )


def test_parquet_has_the_same_numbers_one_row_a_step(tmp_path: Path) -> None:
    run("credit", EXAMPLE, "-o", str(tmp_path / "c.jsonl"))
    run("credit", EXAMPLE, "-o", str(tmp_path / "c.parquet"))
    rows = pq.read_table(tmp_path / "c.parquet").to_pylist()
    records = written(tmp_path / "c.jsonl")
    assert len(rows) == sum(len(r["steps"]) for r in records)
    expected = [(r["rollout_id"], r["reward"], s) for r in records for s in r["steps"]]
    for found, (rollout_id, reward, step) in zip(rows, expected, strict=True):
        assert (found["rollout_id"], found["outcome"]) == (rollout_id, reward)
        assert {name: found[name] for name in step} == step
    assert json.loads(rows[0]["config"]) == records[0]["config"]


def test_a_chain_of_levels_writes_the_key_at_each(tmp_path: Path) -> None:
    run("credit", EXAMPLE, "--level", "work,paper", "-o", str(tmp_path / "c.jsonl"))
    step = written(tmp_path / "c.jsonl")[0]["steps"][-1]
    assert list(step["states"]) == ["work", "paper"]
    assert step["states"]["paper"] == step["state"]
    assert step["state"].startswith(step["states"]["work"] + " / ")


def test_an_estimator_without_values_writes_null(tmp_path: Path) -> None:
    run("credit", EXAMPLE, "--estimator", "grpo", "--std", "none", "-o", str(tmp_path / "c.jsonl"))
    step = written(tmp_path / "c.jsonl")[0]["steps"][0]
    assert [step[name] for name in ("q", "v", "n_s", "n_sa", "first_visit")] == [None] * 5
    assert step["advantage"] == 0.5


def test_long_keys_are_cut_and_stay_distinct(tmp_path: Path) -> None:
    look = [f"cat {'x' * 60}{i}.py" for i in range(12)]
    source = write(
        tmp_path / "in.jsonl",
        row("p", "a", 1, *look, "cat zz.py", "ls"),
        row("p", "b", 0, *look, "cat z.py", "ls"),
    )
    run("credit", source, "-o", str(tmp_path / "c.jsonl"))
    first, second = (r["steps"][-1]["state"] for r in written(tmp_path / "c.jsonl"))
    assert len(first) == 400
    assert first[:380] == second[:380]
    assert first[-17] == "#"
    assert first != second


def test_a_batch_ends_at_its_size_or_as_soon_as_it_holds_enough_steps() -> None:
    def group(name: str, steps: int) -> Group:
        return Group(name, (Rollout(name, "r", (Step(),) * steps, 1.0),))

    groups = [group(name, steps) for name, steps in zip("abcdef", (1, 1, 9, 2, 2, 2), strict=True)]
    names = [[g.problem_id for g in batch] for batch in batched(groups, 3, 4)]
    assert names == [["a", "b", "c"], ["d", "e"], ["f"]]
    assert [len(batch) for batch in batched(groups, 4)] == [4, 2]
    assert list(batched([], 4)) == []


def test_the_input_may_be_split_and_sorted_in_any_way(tmp_path: Path) -> None:
    rows = [
        row(f"p{i % 3}", f"r{i}", float(i % 2 == 0), "ls", f"cat f{i % 4}.py", "pytest")
        for i in range(11)
    ]
    whole = write(tmp_path / "whole.jsonl", *rows)
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, line in enumerate(reversed(rows)):
        write(folder / f"{i:02}.jsonl", line)
    run("credit", whole, "-o", str(tmp_path / "a.jsonl"))
    run("credit", str(folder), "-o", str(tmp_path / "b.jsonl"), "--batch-groups", "1")
    run("credit", whole, "-o", str(tmp_path / "c.jsonl"), "--jobs", "2", "--batch-groups", "1")
    first = advantages(written(tmp_path / "a.jsonl"))
    assert advantages(written(tmp_path / "b.jsonl")) == first
    assert (tmp_path / "c.jsonl").read_bytes() == (tmp_path / "a.jsonl").read_bytes()


def test_standard_input_and_output(tmp_path: Path) -> None:
    source = Path(EXAMPLE).read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "rtmc.cli", "credit", "-", "-o", "-"],
        input=source, capture_output=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[0])["rollout_id"] == "shell"
    assert b"estimator" in done.stderr


# --- what it prints ----------------------------------------------------------------------------


def test_summary_names_what_was_read_and_found(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in.jsonl",
        row("mixed", "a", 1), row("mixed", "b", 0), row("mixed", "c", None),
        row("even", "a", 1), row("even", "b", 1), row("single", "a", 0, status="max_steps"),
    )  # fmt: skip
    out = run("credit", source).output
    assert "groups         3 (1 uniform: A = 0, 1 of one rollout: A = 0)" in out
    assert "rollouts       6 (3 passed, 1 failed, 1 incomplete, 1 unknown, 1 left out)" in out


def test_json_summary_is_one_object(tmp_path: Path) -> None:
    result = run("credit", EXAMPLE, "--json", "-o", str(tmp_path / "c.jsonl"))
    values = json.loads(result.stdout)
    assert (values["groups"], values["rollouts"], values["steps"]) == (1, 8, 81)
    assert values["config"]["estimator"] == "rtmc"
    assert set(values["overlap"]["paper"]["by_step_index"]) == {"1-4", "5-9", "10-19", "20+"}


def test_preset_paper_and_a_flag_that_wins_over_it() -> None:
    config = json.loads(run("credit", EXAMPLE, "--json", "--preset", "paper").stdout)["config"]
    assert config["max_bonuses"] is None
    assert (config["repeats"], config["hash_chars"], config["normalize"]) == ("paper", 4, "problem")
    flags = ("--preset", "paper", "--max-bonuses", "2", "--repeats", "first", "--normalize", "none")
    config = json.loads(run("credit", EXAMPLE, "--json", *flags).stdout)["config"]
    assert config["max_bonuses"] == 2
    assert (config["repeats"], config["hash_chars"], config["normalize"]) == ("first", 4, "none")


def test_params_reach_the_estimator() -> None:
    flags = ("--param", "n_prior=3.5", "--param", "leave-one-out=true")
    config = json.loads(run("credit", EXAMPLE, "--json", *flags).stdout)["config"]
    assert (config["n_prior"], config["leave_one_out"]) == (3.5, True)


# --- what is broken ----------------------------------------------------------------------------


def test_a_broken_record_is_named_and_the_others_survive(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in.jsonl", row("p", "a", 1), '{"problem_id": "p", ', row("p", "b", 0)
    )
    output = tmp_path / "c.jsonl"
    result = run("credit", source, "-o", str(output))
    assert result.exit_code == 0
    assert f"skipped {source}:2: " in result.stderr
    assert "1 skipped" in result.stdout
    assert advantages(written(output)).keys() == {"a", "b"}
    strict = run("credit", source, "-o", str(output), "--strict")
    assert strict.exit_code == 1
    assert advantages(written(output)).keys() == {"a", "b"}


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--n-prior", "1", "--estimator", "grpo"],
         "n_prior does not apply to the estimator grpo; its options: std"),
        (["--std", "none"],
         "std does not apply to the estimator rtmc; "
         "its options: n_prior, prior, leave_one_out, repeats"),
        (["--level", "fine"],
         "unknown level fine; expected some of root, work, content, coarse, paper, full, exact"),
        (["--gamma", "1.5"], "gamma is 1.5; expected a number in (0, 1]"),
        (["--n-prior", "-1"],
         "option of the estimator rtmc: n_prior is -1.0; expected a number ≥ 0"),
        (["--param", "n_prior"], "--param n_prior: expected NAME=VALUE"),
        (["--param", "n_prior=two"],
         "option of the estimator rtmc: Expected `float`, got `str` - at `$.n_prior`"),
    ],
)  # fmt: skip
def test_conflicting_options_are_one_line_and_exit_2(flags: list[str], sentence: str) -> None:
    result = run("credit", EXAMPLE, *flags)
    assert result.exit_code == 2
    assert result.stderr == f"rtmc: {sentence}\n"


def test_a_missing_input_is_one_line_and_exit_2(tmp_path: Path) -> None:
    result = run("credit", str(tmp_path / "none.jsonl"))
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "none.jsonl" in result.stderr


def test_an_unknown_format_is_refused() -> None:
    result = run("credit", EXAMPLE, "--format", "word")
    assert result.exit_code == 2
    assert "'word' is not one of rtmc, " in result.stderr


def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    result = run("credit", EXAMPLE, "-o", str(tmp_path / "no" / "c.jsonl"))
    assert result.exit_code == 2
    assert result.stderr == (
        f"rtmc: cannot write {tmp_path}/no/c.jsonl: No such file or directory; choose another -o\n"
    )
    result = run("credit", EXAMPLE, "-o", str(tmp_path))
    assert result.exit_code == 2
    assert f"{tmp_path} is a folder; name a file" in result.stderr


def test_grouped_input_that_is_not_leaves_no_half_output(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", row("p", "a", 1), row("q", "b", 1), row("p", "c", 0))
    output = tmp_path / "c.jsonl"
    output.write_text("old")
    result = run("credit", source, "--grouped", "-o", str(output))
    assert result.exit_code == 2
    assert f"{source}:3" in result.stderr
    assert f"{source}:1" in result.stderr
    assert output.read_text() == "old"
    assert os.listdir(tmp_path) == ["in.jsonl", "c.jsonl"] or set(os.listdir(tmp_path)) == {
        "in.jsonl",
        "c.jsonl",
    }


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_leaves_the_old_output(tmp_path: Path, stop: signal.Signals) -> None:
    words = ["ls -la && cat a.py | head -3"] * 40
    rows = [row(f"p{i}", f"r{i}", 1.0, *words) for i in range(3000)]
    source = write(tmp_path / "in.jsonl", *rows)
    output = tmp_path / "c.jsonl"
    output.write_text("old")
    # a shell starts what runs in its background with interrupts ignored; a terminal does not
    start = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from rtmc.cli import main; main()"
    )
    command = [sys.executable, "-c", start, "credit", source, "-o", str(output)]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".c.jsonl.*.tmp")) and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(stop)
    child.communicate(timeout=60)
    assert child.returncode != 0
    assert output.read_text() == "old"
    if stop == signal.SIGINT:
        assert not list(tmp_path.glob(".c.jsonl.*"))


def test_the_output_may_not_be_an_input(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", row("p", "a", 1), row("p", "b", 0))
    before = Path(source).read_text()
    (tmp_path / "link.jsonl").symlink_to(source)
    for output in (source, str(tmp_path / "link.jsonl")):
        for inputs in (source, str(tmp_path)):
            result = run("credit", inputs, "-o", output)
            assert result.exit_code == 2
            assert "is among the inputs; choose another -o" in result.stderr
    assert Path(source).read_text() == before


def test_a_link_is_written_through_and_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(target)
    assert run("credit", EXAMPLE, "-o", str(link)).exit_code == 0
    assert link.is_symlink()
    assert len(written(target)) == 8


def test_a_pipe_gets_the_records_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "rtmc.cli", "credit", EXAMPLE, "-o", str(pipe)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        lines = pipe.read_bytes().splitlines()
        assert child.wait(timeout=60) == 0
    assert len(lines) == 8
    assert pipe.is_fifo()


def test_compressed_output_holds_the_same_lines(tmp_path: Path) -> None:
    run("credit", EXAMPLE, "-o", str(tmp_path / "c.jsonl"))
    run("credit", EXAMPLE, "-o", str(tmp_path / "c.jsonl.gz"))
    packed = gzip.decompress((tmp_path / "c.jsonl.gz").read_bytes())
    assert packed == (tmp_path / "c.jsonl").read_bytes()


def test_an_unknown_suffix_is_refused(tmp_path: Path) -> None:
    result = run("credit", EXAMPLE, "-o", str(tmp_path / "c.csv"))
    assert result.exit_code == 2
    assert result.stderr == (
        f"rtmc: cannot write {tmp_path}/c.csv: .csv is not among .jsonl, .jsonl.gz or .parquet\n"
    )


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--prior", "none", "--n-prior", "1"],
         "n_prior has no effect with prior none; leave one of them out"),
        (["--param", "n-prior=3", "--n-prior", "4"],
         "n_prior is given twice: by --param and by its own flag"),
    ],
)  # fmt: skip
def test_options_that_silence_each_other_are_refused(flags: list[str], sentence: str) -> None:
    result = run("credit", EXAMPLE, *flags)
    assert (result.exit_code, result.stderr) == (2, f"rtmc: {sentence}\n")


def test_a_terminal_without_unicode_gets_a_summary(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rtmc.cli", "credit", EXAMPLE]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert b"where ? 2 rollouts came by" in done.stdout


def test_workers_end_with_a_terminated_run(tmp_path: Path) -> None:
    rows = [row(f"p{i}", f"r{i}", 1.0, *["ls -la && cat a.py | head -3"] * 40) for i in range(3000)]
    source = write(tmp_path / "in.jsonl", *rows)
    output = tmp_path / "c.jsonl"
    command = [sys.executable, "-m", "rtmc.cli", "credit", source, "-o", str(output)]
    child = subprocess.Popen([*command, "--jobs", "2"], stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".c.jsonl.*.tmp")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.5)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=30)  # hangs as long as a worker holds the pipe
    assert child.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == [tmp_path / "in.jsonl"]
