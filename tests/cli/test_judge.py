"""``rtmc bench quality`` and ``rtmc bench learning``: what they print, keep, draw and refuse."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rtmc.advantages import RECOMMENDED
from rtmc.bench import learning, quality
from rtmc.cli import main

ESTIMATORS = "grpo;rtmc, content,rtmc; chain_gae"
NAMES = ["grpo", "rtmc, content", "rtmc", "chain_gae"]
TINY = ("--conditions", "E", "--stages", "start", "--rollouts", "4,2", "--seeds", "2",
        "--jobs", "1", "--estimators", ESTIMATORS)  # fmt: skip
SHORT = ("--conditions", "E", "--seeds", "2", "--jobs", "1", "--estimators", "rtmc,grpo")


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["bench", *args])


def refused(result: Result, *words: str) -> None:
    """Check that a run failed with one clear line."""
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("rtmc: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr


def misused(result: Result, *words: str) -> None:
    """Check that an option was refused."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    for word in words:
        assert word in " ".join(result.stderr.split())


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where anything is computed."""

    def nothing(*args: Any) -> None:
        raise AssertionError("nothing was to be computed")

    monkeypatch.setattr(quality, "measure", nothing)
    monkeypatch.setattr(learning, "run", nothing)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learn for five updates, at two rates."""
    monkeypatch.setattr(learning, "UPDATES", 5)
    monkeypatch.setitem(learning.RATES, "shared", (0.1, 0.4))
    monkeypatch.setitem(learning.HELD_OUT, "shared", 16)


# --- quality -------------------------------------------------------------------------------------


def test_quality_prints_one_json_object() -> None:
    result = run("quality", *TINY, "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout)
    assert found["recommended"] == RECOMMENDED
    assert {"settings", "machine", "rows", "goals"} <= set(found)
    assert found["settings"]["estimators"] == NAMES
    assert found["settings"]["sizes"] == [2, 4]
    rows = found["rows"]
    assert [(r["n"], r["estimator"]) for r in rows] == [
        (n, name) for n in (2, 4) for name in (*NAMES, quality.TRUTH)
    ]
    for row in rows:
        assert set(row) == set(quality.Row.__struct_fields__)
        assert (row["condition"], row["stage"], row["seeds"]) == ("E", "start", 2)
        assert -1 <= row["low"] <= row["cosine"] <= row["high"] <= 1
    true = [row for row in rows if row["estimator"] == quality.TRUTH]
    assert all(row["fvu"] == pytest.approx(0, abs=1e-9) and row["sign"] == 1 for row in true)
    assert json.loads(run("quality", *TINY, "--json").stdout)["rows"] == rows


def test_quality_prints_a_table() -> None:
    result = run("quality", *TINY)
    assert result.exit_code == 0, result.output
    head, block = result.stdout.split("\n\n")
    assert "mean of 2 batches of 8" in head
    title, *lines = block.splitlines()
    assert title.split() == ["E", "start", *"N = 2 N = 4 fvu sign rank bias".split()]
    found = json.loads(run("quality", *TINY, "--json").stdout)["rows"]
    assert {line[:24].strip() for line in lines} == {*NAMES, quality.TRUTH}
    means = {
        n: [r["cosine"] for r in found if r["estimator"] == n] for n in {*NAMES, quality.TRUTH}
    }
    by_mean = sorted(means, key=lambda name: -sum(means[name]))
    assert [line[:24].strip() for line in lines] == by_mean, "best first"
    for line in lines:
        name = line[:24].strip()
        shown = re.findall(r"(-?\d\.\d{3}) \[", line)
        assert shown == [f"{cosine:.3f}" for cosine in means[name]]
        assert line.endswith("←") == (name == RECOMMENDED)
    assert len({len(line.removesuffix(" ←")) for line in lines}) == 1, "columns"


def test_quality_compares_with_four_times_the_rollouts() -> None:
    result = run("quality", *TINY, "--rollouts", "2,8")
    last = result.stdout.split("\n\n")[-1].splitlines()
    assert last[0].startswith("Cosine at N rollouts minus plain rtmc's at 4 N")
    assert [line.split()[2] for line in last[1:]] == [RECOMMENDED, "true"]
    assert all("N = 2   against 8 " in line for line in last[1:])


def test_quality_writes_a_file_and_keeps_it(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    out = tmp_path / "quality.json"
    first = run("quality", *TINY, "-o", str(out), "--figures", str(tmp_path / "figures"))
    assert first.exit_code == 0, first.output
    written = out.read_bytes()
    found = json.loads(written)
    assert len(found["rows"]) == 10
    drawn = [tmp_path / "figures" / f"quality.{kind}" for kind in ("svg", "png")]
    assert first.stderr == "".join(f"drew {path}\n" for path in drawn)
    assert drawn[0].read_text().count("rtmc, content") == 1, "named once"
    assert drawn[1].read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figures", "quality.json"]
    request.getfixturevalue("idle")
    again = run("quality", *TINY, "-o", str(out))
    assert again.stdout == first.stdout
    assert out.read_bytes() == written
    refused(run("quality", *TINY, "--seeds", "3", "-o", str(out)), str(out), "other settings")
    assert out.read_bytes() == written


def test_quality_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "quality.json"
    partial = tmp_path / "quality.json.partial.jsonl"
    settings = ("quality", *TINY, "--seeds", "6", "-o", str(out))  # seeds 0–4, and 5
    plain, asked = quality.measure, []

    def stops(piece: quality.Piece) -> Any:
        asked.append(piece.seeds)
        if piece.seeds[0] == 5 and len(asked) == 2:
            raise KeyboardInterrupt
        return plain(piece)

    monkeypatch.setattr(quality, "measure", stops)
    assert run(*settings).exit_code == 1
    assert not out.exists()
    assert partial.read_bytes().count(b"\n") == 1
    done = run(*settings)
    assert done.exit_code == 0, done.output
    assert asked == [(0, 5), (5, 6), (5, 6)]
    assert not partial.exists()
    whole = run("quality", *TINY, "--seeds", "6", "--json")
    assert json.loads(whole.stdout)["rows"] == json.loads(out.read_bytes())["rows"]


@pytest.mark.usefixtures("idle")
def test_a_damaged_piece_is_named(tmp_path: Path) -> None:
    out = tmp_path / "quality.json"
    partial = tmp_path / "quality.json.partial.jsonl"
    partial.write_text("{damaged\n")
    refused(run("quality", *TINY, "-o", str(out)), f"{partial}:1: no finished piece", "remove")
    assert not out.exists()


# --- learning ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("short")
def test_learning_prints_one_json_object() -> None:
    result = run("learning", *SHORT, "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout)
    assert found["recommended"] == RECOMMENDED
    assert [row["estimator"] for row in found["rows"]] == ["rtmc", "grpo"]
    for row in found["rows"]:
        assert set(row) == set(learning.Outcome.__struct_fields__)
        assert (row["condition"], row["kind"], row["seeds"]) == ("E", "shared", 2)
        assert row["rate"] in (0.1, 0.4)
        assert len(row["curve"]) == len(row["tuned"]) == len(row["collapsed"]) == 2
    assert found["rows"][1]["area_to_grpo"] == [0, 0, 0]


def test_learning_keeps_what_is_finished(
    tmp_path: Path, short: None, request: pytest.FixtureRequest
) -> None:
    folder = tmp_path / "new" / "results"
    out = folder / "learning-E-shared.json"
    first = run("learning", *SHORT, "-o", str(folder), "--figures", str(tmp_path / "figures"))
    assert first.exit_code == 0, first.output
    assert [path.name for path in folder.iterdir()] == [out.name], "and no pieces"
    drawn = [tmp_path / "figures" / f"learning-shared.{kind}" for kind in ("svg", "png")]
    assert first.stderr == "".join(f"drew {path}\n" for path in drawn)
    assert all(path.stat().st_size > 1000 for path in drawn)
    _, block, _ = first.stdout.split("\n\n")
    title, *lines = block.splitlines()
    assert title.startswith("E shared")
    assert {line.split()[0] for line in lines} == {"rtmc", "grpo"}
    areas = {r["estimator"]: r["area"][0] for r in json.loads(out.read_bytes())["rows"]}
    assert [line.split()[0] for line in lines] == sorted(areas, key=lambda name: -areas[name])
    written = out.read_bytes()
    request.getfixturevalue("idle")
    again = run("learning", *SHORT, "-o", str(folder))
    assert again.stdout == first.stdout
    other = run("learning", *SHORT, "--seeds", "3", "-o", str(folder))
    refused(other, f"{out} comes from other settings; remove it, or choose another -o")
    assert out.read_bytes() == written


@pytest.mark.usefixtures("idle")
def test_learning_is_at_equal_rollouts() -> None:
    refused(run("learning", "--estimators", "grpo,vineppo"), "vineppo", "equal rollouts")


@pytest.mark.usefixtures("idle")
def test_tables_need_few_states(monkeypatch: pytest.MonkeyPatch) -> None:
    refused(run("learning", "--kind", "table", "--conditions", "A,D"), "condition D has too many")
    asked: list[str] = []

    def keep(settings: learning.Settings, *rest: Any) -> None:
        asked.append(settings.condition)
        if settings.condition == "E":
            raise KeyboardInterrupt
        return {"recommended": RECOMMENDED, "rows": []}

    monkeypatch.setattr(learning, "study", keep)
    for kind, expected in (("table", "ABCHNE"), ("shared", "ABCDHNE")):
        asked.clear()
        assert run("learning", "--kind", kind, "--full").exit_code == 1
        assert "".join(asked) == expected


# --- names and numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("rtmc, content", ["rtmc, content"]),
        ("rtmc,grpo", ["rtmc", "grpo"]),
        ("rtmc, critic", ["rtmc", "critic"]),
        ("graft, content, λ = 0.8, graft, content", ["graft, content, λ = 0.8", "graft, content"]),
        (" rtmc , rtmc, paper ; grpo ;", ["rtmc", "rtmc, paper", "grpo"]),
        ("grpo;grpo", ["grpo"]),
        ("grpo_step,grpo", ["grpo_step", "grpo"]),
    ],
)
def test_names_with_commas(monkeypatch: pytest.MonkeyPatch, written: str, meant: list[str]) -> None:
    found: list[quality.Settings] = []

    def keep(settings: quality.Settings, *rest: Any) -> None:
        found.append(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(quality, "study", keep)
    assert run("quality", "--estimators", written).exit_code == 1
    assert list(found[0].estimators) == meant


@pytest.mark.usefixtures("idle")
def test_what_is_not_known_is_refused() -> None:
    misused(run("quality", "--conditions", "A,Z"), "'Z' is not one of A; B; C; D; H; N; E")
    misused(run("quality", "--estimators", "rtmc,content"), "'content' is not one of grpo; dr_grpo")
    misused(run("quality", "--stages", "end"), "'end' is not one of start; half")
    misused(run("learning", "--estimators", "papr; grpo"), "'papr' is not one of")
    misused(run("learning", "--kind", "linear"), "'linear' is not one of 'shared', 'table'")
    misused(run("quality", "--rollouts", "4,x"), "'4,x': expected numbers joined by commas")
    misused(run("quality", "--rollouts", "1,4"), "'1,4': a group needs at least 2 rollouts")
    misused(run("quality", "--rollouts", ","), "a group needs at least 2 rollouts")
    misused(run("quality", "--seeds", "1"), "1 is not in the range x>=2")
    misused(run("learning", "--seeds", "1"), "1 is not in the range x>=2")
    misused(run("quality", "--jobs", "0"), "0 is not in the range x>=1")


@pytest.mark.usefixtures("idle")
def test_places_that_cannot_be_written_are_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("[]")
    refused(run("quality", *TINY, "-o", str(tmp_path / "no" / "q.json")), "cannot write", "-o")
    refused(run("quality", *TINY, "-o", str(tmp_path)), "is a folder; name a file, as in -o")
    refused(run("quality", *TINY, "--figures", str(file)), "cannot make the folder", str(file))
    refused(run("learning", *SHORT, "-o", str(file)), "cannot make the folder", str(file))
    refused(run("learning", *SHORT, "--figures", str(file)), "cannot make the folder", str(file))
    for content in ("[]", "{", "{}", "17"):
        file.write_text(content)
        refused(run("quality", *TINY, "-o", str(file)), f"{file}: no result of rtmc bench; remove")
        assert file.read_text() == content


def test_help_has_examples() -> None:
    assert "rtmc bench quality --full -o docs/results/quality.json" in run("quality", "-h").output
    assert "rtmc bench learning --full -o docs/results" in run("learning", "-h").output
