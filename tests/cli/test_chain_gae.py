"""``chain_gae`` from the command line: what is written, printed, and shown in a report."""

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import rtmc
from rtmc.advantages import ChainGAE, GraphGAE
from rtmc.cli import main

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "group.jsonl")
LEVELS = "content,coarse,paper"
CHAIN = ("--estimator", "chain_gae")


def run(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def ok(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.output


def row(problem: str, rollout: str, reward: float, *commands: str) -> str:
    messages = []
    for command in commands:
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        call = {"id": command, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
    return json.dumps(
        {"problem_id": problem, "rollout_id": rollout, "reward": reward, "messages": messages}
    )


def write(path: Path, *rows: str) -> str:
    path.write_text("".join(line + "\n" for line in rows))
    return str(path)


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def advantages(records: list[dict[str, Any]]) -> dict[str, list[float]]:
    return {r["rollout_id"]: [s["advantage"] for s in r["steps"]] for r in records}


def expected(path: str, estimator: rtmc.advantages.Estimator) -> dict[str, list[float]]:
    credit = rtmc.credit(rtmc.read(path), rtmc.Config(estimator=estimator))
    return {one.rollout.rollout_id: one.advantages.tolist() for one in credit.rollouts}


def several(path: Path) -> str:
    """Write five problems: two of differing outcome, one solved, one not, one of one rollout."""
    edit, test = "sed -i s/a/b/ core.py", "pytest"
    rows = []
    for name, outcomes in (("p", (1, 0, 1)), ("q", (0, 1)), ("all", (1, 1)), ("none", (0, 0))):
        for i, outcome in enumerate(outcomes):
            commands = ("ls", edit, test) if outcome else ("ls", "cat core.py", edit, "ls")[: i + 2]
            rows.append(row(name, f"{name}{i}", float(outcome), *commands))
    return write(path, *rows, row("one", "one0", 1.0, "ls", edit))


def test_of_one_group(tmp_path: Path) -> None:
    out = ok(run("credit", EXAMPLE, *CHAIN, "-o", str(tmp_path / "c.jsonl")))
    assert (
        f"estimator      chain_gae (level {LEVELS}, gamma 0.99, n_prior 1.0, beta 0.05, "
        "max_bonuses 1, normalize none, lam 0.5, ridge 20.0, pool_actions True, scale True, "
        "uniform keep)"
    ) in out
    assert f"(level {LEVELS})" not in out  # overlap is told of each level
    assert "(level paper)" in out
    records = written(tmp_path / "c.jsonl")
    assert advantages(records) == expected(EXAMPLE, ChainGAE())
    assert list(records[0]["steps"][0]["states"]) == LEVELS.split(",")
    assert records[0]["steps"][0]["v"] is not None
    assert records[0]["steps"][0]["q"] is None


def test_of_several_problems(tmp_path: Path) -> None:
    source = several(tmp_path / "in.jsonl")
    out = ok(run("credit", source, *CHAIN, "-o", str(tmp_path / "c.jsonl")))
    assert "groups         5 (2 uniform, 1 of one rollout: A = 0)" in out
    records = written(tmp_path / "c.jsonl")
    assert advantages(records) == expected(source, ChainGAE())
    by_rollout = advantages(records)
    assert any(by_rollout["all0"])
    assert any(by_rollout["none0"])
    assert by_rollout["one0"] == [0, 0]
    zero = ok(run("credit", source, *CHAIN, "--param", "uniform=zero"))
    assert "groups         5 (2 uniform: A = 0, 1 of one rollout: A = 0)" in zero
    # a batch of each alone, as in a report, is another one
    ok(run("credit", source, *CHAIN, "--batch-groups", "1", "-o", str(tmp_path / "d.jsonl")))
    assert advantages(written(tmp_path / "d.jsonl")) != by_rollout


def test_several_processes_give_the_same(tmp_path: Path) -> None:
    source = several(tmp_path / "in.jsonl")
    for name, jobs in (("a", "1"), ("b", "2")):
        flags = ("--batch-groups", "4", "--jobs", jobs, "-o", str(tmp_path / name) + ".jsonl")
        ok(run("credit", source, *CHAIN, *flags))
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_only_uniform_groups(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in.jsonl",
        *(row(name, f"{name}{i}", outcome, "ls", *["pytest"] * i)
          for name, outcome in (("p", 1.0), ("q", 0.0), ("r", 1.0), ("s", 0.0)) for i in (0, 1)),
    )  # fmt: skip
    none = "no group has rollouts of different outcomes"
    kept, zero = (
        ok(run("credit", source, *CHAIN, "--param", f"uniform={uniform}"))
        for uniform in ("keep", "zero")
    )
    assert f"advantage      of uniform groups alone: {none}" in kept
    assert "steps          12 (12 with credit, 12 of them not 0)" in kept
    assert f"advantage      0 everywhere: {none}" in zero


@pytest.mark.parametrize(
    ("flags", "estimator"),
    [
        (("--param", "n_prior=2"), ChainGAE(n_prior=2.0)),
        (("--n-prior", "2"), ChainGAE(n_prior=2.0)),
        (("--param", "scale=false", "--param", "pool-actions=no"), None),
        (("--param", "scale=false", "--param", "lam=1"), ChainGAE(lam=1.0, scale=False)),
    ],
)
def test_options(flags: tuple[str, ...], estimator: ChainGAE | None, tmp_path: Path) -> None:
    result = run("credit", EXAMPLE, *CHAIN, *flags, "-o", str(tmp_path / "c.jsonl"))
    if estimator is None:
        assert result.exit_code == 2
        assert "option of the estimator chain_gae: Expected `bool`" in result.stderr
        return
    assert advantages(written(tmp_path / "c.jsonl")) == expected(EXAMPLE, estimator)
    assert f"n_prior {estimator.n_prior}" in result.output
    assert f"scale {estimator.scale}" in result.output  # what was switched off is said


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--param", "ridge=0"), "ridge is 0.0; expected a number > 0"),
        (("--param", "uniform=no"), "Invalid enum value 'no'"),
        (("--std", "none"), "std does not apply to the estimator chain_gae; its options: lam, "
                            "n_prior, ridge, pool_actions, scale, uniform"),
    ],
)  # fmt: skip
def test_refused_options(flags: tuple[str, ...], message: str) -> None:
    result = run("credit", EXAMPLE, *CHAIN, *flags)
    assert result.exit_code == 2
    assert message in result.stderr


# --- in a report -------------------------------------------------------------------------------


def given(path: Path) -> dict[str, list[float | None]]:
    """Read the numbers that a report came with, of its only group."""
    packed = r'<script type="application/x-rtmc" id="[\w-]+">([^<]*)</script>'
    blocks = [
        json.loads(zlib.decompress(base64.b64decode(body), wbits=-15))
        for body in re.findall(packed, path.read_text())
    ]
    [group] = [block for block in blocks if isinstance(block, dict) and "given" in block]
    return group["given"]


def flat(rows: dict[str, list[float]]) -> list[float]:
    return [value for row in rows.values() for value in row]


def test_a_report_shows_its_numbers(tmp_path: Path) -> None:
    report = tmp_path / "r.html"
    result = run("report", EXAMPLE, *CHAIN, "--param", "lam=1", "-o", str(report))
    assert "note: chain_gae reads a batch; here each group is one." in result.stderr
    found = given(report)
    assert found["chain_gae"] == flat(expected(EXAMPLE, ChainGAE(lam=1.0)))
    # others beside it with their defaults, to eight digits
    assert found["graph_gae"] == pytest.approx(flat(expected(EXAMPLE, GraphGAE())), rel=1e-7)
    ok(run("report", EXAMPLE, "-o", str(report)))
    assert given(report)["chain_gae"] == pytest.approx(
        flat(expected(EXAMPLE, ChainGAE())), rel=1e-7
    )


def test_a_report_from_a_credited_file_has_what_the_file_has(tmp_path: Path) -> None:
    credited, report = str(tmp_path / "c.jsonl"), tmp_path / "r.html"
    ok(run("credit", EXAMPLE, *CHAIN, "-o", credited))
    ok(run("report", credited, "-o", str(report)))
    assert given(report)["chain_gae"] == flat(expected(EXAMPLE, ChainGAE()))


@pytest.mark.parametrize("level", ["content", LEVELS])
def test_a_credited_file_has_no_flags_so_that_others_cannot_be_computed(
    level: str, tmp_path: Path
) -> None:
    credited, report = str(tmp_path / "c.jsonl"), tmp_path / "r.html"
    ok(run("credit", EXAMPLE, "--level", level, "-o", credited))
    ok(run("report", credited, "-o", str(report)))
    found = given(report)
    assert "salt" in found
    assert not {"graph_gae", "chain_gae", "hgpo"} & set(found)
