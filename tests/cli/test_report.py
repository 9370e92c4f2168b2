"""``rtmc report``: what it writes, what it refuses and how it says so."""

import base64
import gzip
import json
import os
import re
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from rtmc.cli import main

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "group.jsonl")


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["report", *args])


def credited(path: Path, *flags: str) -> str:
    result = CliRunner().invoke(main, ["credit", EXAMPLE, *flags, "-o", str(path)])
    assert result.exit_code == 0, result.output
    return str(path)


def row(problem: str, rollout: str, reward: float | None, *commands: str, output: str = "") -> str:
    messages: list[dict[str, Any]] = []
    for command in commands or ("ls",):
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        calls = [{"id": command, "type": "function", "function": function}]
        messages += [
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_call_id": command, "content": output},
        ]
    fields = {"problem_id": problem, "rollout_id": rollout, "reward": reward, "messages": messages}
    return json.dumps(fields)


def write(path: Path, *rows: str) -> str:
    path.write_text("".join(line + "\n" for line in rows))
    return str(path)


def blocks(path: Path) -> dict[str, Any]:
    """Unpack what the page unpacks."""
    found = re.findall(
        r'<script type="application/x-rtmc" id="([\w-]+)">([^<]*)</script>', path.read_text()
    )
    return {
        name: json.loads(zlib.decompress(base64.b64decode(body), wbits=-15)) for name, body in found
    }


def refused(result: Result, *words: str) -> None:
    """Check that a run failed with one clear line."""
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("rtmc: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr


# --- what it writes ----------------------------------------------------------------------------


def test_one_file_with_every_group(tmp_path: Path) -> None:
    rows = row("p", "a", 1), row("q", "c", None), row("p", "b", 0, "cat x", "ls")
    source = write(tmp_path / "in.jsonl", *rows)
    output = tmp_path / "r.html"
    result = run(source, "-o", str(output))
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{output}: 2 groups, 0.1 MB; open it in a browser\n"
    assert result.stderr == ""
    found = blocks(output)
    assert list(found) == ["group-0", "group-1", "overview"]
    assert [found[f"group-{i}"]["problem"] for i in (0, 1)] == ["p", "q"]
    assert [r["id"] for r in found["group-0"]["rollouts"]] == ["a", "b"]
    assert [r["steps"] for r in found["group-0"]["rollouts"]] == [1, 2]
    assert found["overview"]["config"]["gamma"] == 0.99
    assert sorted(os.listdir(tmp_path)) == ["in.jsonl", "r.html"]


def test_the_default_name_and_the_default_title(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in.jsonl", row("p", "a", 1))
    assert run("in.jsonl").exit_code == 0
    assert blocks(tmp_path / "report.html")["overview"]["title"] == "in.jsonl"


def test_a_title(tmp_path: Path) -> None:
    output = tmp_path / "r.html"
    assert run(EXAMPLE, "-o", str(output), "--title", "Eight & <one>").exit_code == 0
    assert blocks(output)["overview"]["title"] == "Eight & <one>"
    assert "Eight" not in output.read_text()


def test_only_some_problems(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", *(row(p, "a", 1) for p in ("p", "q", "r")))
    output = tmp_path / "r.html"
    assert run(source, "-o", str(output), "--problem", "r", "--problem", "p").exit_code == 0
    assert [row["problem"] for row in blocks(output)["overview"]["rows"]] == ["p", "r"]


def test_long_texts_lose_their_middle(tmp_path: Path) -> None:
    text = "".join(chr(ord("a") + i % 26) for i in range(5000))
    source = write(tmp_path / "in.jsonl", row("p", "a", 1, f"echo {text}", output=text))
    output = tmp_path / "r.html"
    assert run(source, "-o", str(output), "--text-limit", "1000").exit_code == 0
    (step,) = blocks(output)["group-0"]["texts"]
    (call,) = step["calls"]
    assert call["output"] == f"{text[:500]}\n… 4000 characters left out …\n{text[-500:]}"
    assert "\n… 4005 characters left out …\n" in call["arguments"]["command"]
    assert run(source, "-o", str(output), "--text-limit", "5004").exit_code == 0
    (step,) = blocks(output)["group-0"]["texts"]
    assert "\n… 1 characters left out …\n" in step["calls"][0]["arguments"]["command"]
    assert step["calls"][0]["output"] == text
    assert run(source, "-o", str(output), "--text-limit", "5005").exit_code == 0
    (step,) = blocks(output)["group-0"]["texts"]
    assert step["calls"][0]["output"] == text
    assert step["calls"][0]["arguments"]["command"] == f"echo {text}"


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    one, other = tmp_path / "r.html", tmp_path / "sub" / "r.html"
    other.parent.mkdir()
    for output in (one, other):
        assert run(EXAMPLE, "-o", str(output)).exit_code == 0
    assert one.read_bytes() == other.read_bytes()


def test_settings_reach_the_page(tmp_path: Path) -> None:
    output = tmp_path / "r.html"
    flags = ("--preset", "paper", "--gamma", "0.9", "--level", "content,paper")
    assert run(EXAMPLE, *flags, "-o", str(output)).exit_code == 0
    config = blocks(output)["overview"]["config"]
    assert (config["gamma"], config["normalize"], config["repeats"]) == (0.9, "problem", "paper")
    assert blocks(output)["group-0"]["level"] == "content,paper"


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "parquet"])
def test_a_credited_file(suffix: str, tmp_path: Path) -> None:
    source = credited(tmp_path / f"c.{suffix}", "--gamma", "0.9")
    output = tmp_path / "r.html"
    result = run(source, "-o", str(output))
    assert result.exit_code == 0, result.output
    found = blocks(output)
    assert found["overview"]["config"]["gamma"] == 0.9
    assert found["overview"]["config"]["beta"] == 0.05
    assert found["group-0"]["texts"] is None
    assert len(found["group-0"]["rollouts"]) == 8


def test_a_credited_file_of_several_levels(tmp_path: Path) -> None:
    source = credited(tmp_path / "c.jsonl", "--level", "content,paper")
    output = tmp_path / "r.html"
    result = run(source, "-o", str(output))
    assert result.exit_code == 0, result.output
    found = blocks(output)["group-0"]
    assert found["level"] in [level["name"] for level in found["levels"]]


def test_broken_records_are_named_and_do_not_stop_it(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", row("p", "a", 1), "{broken", row("p", "b", 0))
    output = tmp_path / "r.html"
    result = run(source, "-o", str(output))
    assert result.exit_code == 0, result.output
    assert f"skipped {source}:2" in result.stderr
    assert len(blocks(output)["group-0"]["rollouts"]) == 2


def test_the_size_of_a_real_report(tmp_path: Path, real: Path) -> None:
    source = real / "groups" / "terminal-bench.jsonl"
    output = tmp_path / "r.html"
    result = run(str(source), "-o", str(output))
    assert result.exit_code == 0, result.output
    assert "32 groups" in result.stdout
    packed = len(gzip.compress(source.read_bytes()))
    assert output.stat().st_size <= 2 * packed + 300_000


def test_help_shows_examples() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for line in (
        "rtmc report rollouts.jsonl -o report.html",
        "rtmc report credit.jsonl -o report.html",
        "--problem",
        "--text-limit",
        "needs no server and no network",
    ):
        assert line in result.stdout


# --- what it refuses ---------------------------------------------------------------------------


def test_a_failing_run_leaves_the_old_file(tmp_path: Path) -> None:
    output = tmp_path / "r.html"
    output.write_text("old")
    write(tmp_path / "empty.jsonl")
    cut = Path(credited(tmp_path / "c.jsonl"))
    cut.write_bytes(cut.read_bytes()[:-3000])
    for args in (
        [str(tmp_path / "no.jsonl")],
        [str(tmp_path / "empty.jsonl")],
        [str(cut)],
        [EXAMPLE, "--problem", "no such"],
    ):
        assert run(*args, "-o", str(output)).exit_code == 2
        assert output.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["c.jsonl", "empty.jsonl", "r.html"]


def test_missing_input(tmp_path: Path) -> None:
    missing = str(tmp_path / "no.jsonl")
    refused(run(missing, "-o", str(tmp_path / "r.html")), missing)


def test_empty_input(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl")
    refused(run(source, "-o", str(tmp_path / "r.html")))
    assert os.listdir(tmp_path) == ["in.jsonl"]


def test_an_unknown_problem(tmp_path: Path) -> None:
    result = run(EXAMPLE, "--problem", "x", "--problem", "y'", "-o", str(tmp_path / "r.html"))
    refused(result, "no problem 'x', \"y'\" in the input")


def test_one_unknown_problem_among_known_ones(tmp_path: Path) -> None:
    args = ("--problem", "dayplan__back-to-back", "--problem", "no such")
    result = run(EXAMPLE, *args, "-o", str(tmp_path / "r.html"))
    assert "no such" in result.stderr


def test_credited_and_raw_inputs_at_once(tmp_path: Path) -> None:
    source = credited(tmp_path / "c.jsonl")
    for inputs in ((source, EXAMPLE), (EXAMPLE, source)):
        result = run(*inputs, "-o", str(tmp_path / "r.html"))
        refused(result, f"{source} was written by `rtmc credit`, {EXAMPLE} was not")


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--gamma", "0.9"), ("--level", "full"), ("--preset", "paper"), ("--format", "chat"),
     ("--incomplete", "mask"), ("--n-prior", "1"), ("--outcomes", EXAMPLE)],
)  # fmt: skip
def test_settings_do_not_fit_a_credited_file(flag: str, value: str, tmp_path: Path) -> None:
    source = credited(tmp_path / "c.jsonl")
    result = run(source, flag, value, "-o", str(tmp_path / "r.html"))
    refused(result, f"{flag} has no effect on a file that `rtmc credit` wrote")


def test_files_credited_with_different_settings(tmp_path: Path) -> None:
    """Their numbers do not compare, and the page has one set of settings."""
    one = credited(tmp_path / "a.jsonl", "--gamma", "0.5")
    other = credited(tmp_path / "b.jsonl", "--gamma", "0.9")
    result = run(one, other, "-o", str(tmp_path / "r.html"))
    refused(result, "0.5", "0.9", "make a report of each")


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    result = run(EXAMPLE, "-o", str(tmp_path / "no" / "r.html"))
    refused(result, f"cannot write {tmp_path}/no/r.html: No such file or directory")
    refused(run(EXAMPLE, "-o", str(tmp_path)), f"{tmp_path} is a folder")


def test_the_output_may_not_be_an_input(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", row("p", "a", 1), row("p", "b", 0))
    file = credited(tmp_path / "c.jsonl")
    (tmp_path / "link.html").symlink_to(source)
    for given, output in ((source, source), (source, str(tmp_path / "link.html")), (file, file)):
        before = Path(given).read_bytes()
        refused(run(given, "-o", output), "is among the inputs; choose another -o")
        assert Path(given).read_bytes() == before


def test_a_credited_file_that_was_cut_names_the_line(tmp_path: Path) -> None:
    cut = Path(credited(tmp_path / "c.jsonl"))
    cut.write_bytes(cut.read_bytes()[:-3000])
    line = cut.read_bytes().count(b"\n") + 1
    result = run(str(cut), "-o", str(tmp_path / "r.html"))
    refused(result, f"{cut}:{line}: not a line of `rtmc credit`")


@pytest.mark.parametrize("kept", [0.5, 0.9])
def test_a_compressed_credited_file_that_was_cut(kept: float, tmp_path: Path) -> None:
    cut = Path(credited(tmp_path / "c.jsonl.gz"))
    body = cut.read_bytes()
    cut.write_bytes(body[: int(len(body) * kept)])
    refused(run(str(cut), "-o", str(tmp_path / "r.html")), f"{cut}:", "credit it again")


def test_a_table_that_was_cut(tmp_path: Path) -> None:
    cut = Path(credited(tmp_path / "c.parquet"))
    cut.write_bytes(cut.read_bytes()[:5000])
    refused(run(str(cut), "-o", str(tmp_path / "r.html")), str(cut))


def test_a_table_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), path)
    refused(run(str(path), "-o", str(tmp_path / "r.html")), str(path))


def test_a_table_without_rows(tmp_path: Path) -> None:
    whole = credited(tmp_path / "c.parquet")
    path = tmp_path / "none.parquet"
    pq.write_table(pq.read_table(whole).slice(0, 0), path)
    refused(run(str(path), "-o", str(tmp_path / "r.html")), str(path), "no record")


def test_texts_shorter_than_sense_are_refused(tmp_path: Path) -> None:
    result = run(EXAMPLE, "--text-limit", "5", "-o", str(tmp_path / "r.html"))
    assert result.exit_code == 2
    assert "--text-limit" in result.stderr


def test_an_estimator_that_reads_a_batch_is_told_what_it_gets(tmp_path: Path) -> None:
    output = str(tmp_path / "r.html")
    assert (
        "note: graph_gae reads a batch; here each group is one."
        in run(EXAMPLE, "--estimator", "graph_gae", "-o", output).stderr
    )
    assert run(EXAMPLE, "-o", output).stderr == ""
