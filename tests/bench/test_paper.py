"""The paper's experiment: its configurations, its sums, and a run of it that is small."""

import copy
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the extra train")

sys.path.insert(0, str(Path(__file__).parents[1] / "agent" / "tasks"))

import msgspec
from click.testing import CliRunner
from here import warm_works

from rtmc import Config
from rtmc.advantages import RTMC
from rtmc.bench import paper
from rtmc.bench.paper import (
    KEPT,
    METHODS,
    SIZES,
    Budget,
    Run,
    Size,
    config_of,
    settled,
    setup_of,
    study,
    work_of,
)  # fmt: skip
from rtmc.bench.paper_text import detectable, table
from rtmc.cli import main


@pytest.mark.parametrize("method", METHODS)
def test_methods_differ_in_their_credit_alone(method: str) -> None:
    run = Run(SIZES["cores"].budget, method, 3e-4, 101, tested=True)
    config = config_of(run)
    grpo = config_of(msgspec.structs.replace(run, method="grpo"))
    assert msgspec.structs.replace(config, credit=grpo.credit) == grpo
    assert config.seed == 101
    assert config.optimizer.learning_rate == 3e-4


def test_rtmc_is_the_papers() -> None:
    run = Run(SIZES["paper"].budget, "rtmc", 3e-4, 0, tested=True)
    assert config_of(run).credit.made() == Config.paper()
    assert config_of(run).rollouts.problems * config_of(run).rollouts.n == 64
    bare = config_of(msgspec.structs.replace(run, method="rtmc, no smoothing")).credit.made()
    assert bare == Config.paper(estimator=RTMC(repeats="paper", prior="none"))


FOUND = {
    "settings": {"budget": {"steps": 2, "problems": 1, "n": 2, "test": 4, "runs": 3}, "seeds": 2,
                 "rates": [1e-4, 3e-4]},
    "rates": {"grpo": 1e-4, "rtmc": 3e-4, "grpo at 0.0003": 3e-4},
    "tuning": {"grpo": {"0.0001": [0.5, 0.25], "0.0003": [0.25, 0.25]},
               "rtmc": {"0.0001": [0.25, 0.0], "0.0003": [0.5, 0.5]}},
    "results": [
        {"method": "grpo", "seed": 100, "curve": [0.0, 0.5], "validation": [[0, 0.25], [2, 0.5]],
         "best": [3, 0, 1, 2]},
        {"method": "rtmc", "seed": 100, "curve": [0.5, 0.5], "validation": [[0, 0.25], [2, 0.75]],
         "best": [3, 3, 1, 2]},
        {"method": "grpo", "seed": 101, "curve": [0.0, 0.0], "validation": [[0, 0.25], [2, 0.0]],
         "best": [3, 0, 0, 0]},
        {"method": "rtmc", "seed": 101, "curve": [0.5, 1.0], "validation": [[0, 0.25], [2, 0.25]],
         "best": [0, 3, 0, 0]},
        {"method": "grpo at 0.0003", "seed": 100, "curve": [0.5, 0.0],
         "validation": [[0, 0.25], [2, 0.5]], "best": [3, 2, 1, 2]},
        {"method": "grpo at 0.0003", "seed": 101, "curve": [0.0, 0.5],
         "validation": [[0, 0.25], [2, 0.0]], "best": [3, 0, 0, 0]},
        {"method": "baseline", "seed": 0, "best": [3, 0, 0, 0]},
    ],
}  # fmt: skip
for one in FOUND["results"][:-1]:
    one["means"] = dict.fromkeys(KEPT, 0.5)
FOUND["results"][1]["means"]["rollout/steps"] = 7.5


def test_sums_by_hand() -> None:
    lines = table(FOUND)
    rows: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("| "):
            name, *cells = (cell.strip() for cell in line.split("|")[1:-1])
            rows.setdefault(name, cells)
    assert rows["baseline"][1] == "0.250"
    assert rows["baseline"][3] == "0.250"
    # 6 and 3 of 12 passed; 9 and 3
    assert rows["grpo"][1].startswith("0.375 [")
    assert rows["rtmc"][1].startswith("0.500 [")
    # one seed better by a quarter, one equal: 1/8 ± 12.706 · 1/8
    assert rows["rtmc"][2] == "+0.125 [-1.463, +1.713]"
    assert rows["grpo"][2] == ""
    assert rows["grpo"][3] == "0.375"  # most of three: 2 and 1 of 4
    assert rows["rtmc"][3] == "0.500"  # 3 and 1 of 4
    assert rows["rtmc"][4] == "0.500"  # the best of each curve: 0.75 and 0.25
    assert rows["rtmc"][5] == "0.500"  # the last of each: 0.75 and 0.25
    assert rows["rtmc"][6].startswith("0.625 [")
    # 2 of 12 more and as many: 1/12 ± 12.706 · 1/12; of training as much and a quarter more
    assert rows["the rate at 0.0003"] == [
        "grpo at 0.0003 − grpo", "+0.083 [-0.976, +1.142]", "+0.125 [-1.463, +1.713]",
    ]  # fmt: skip
    assert rows["rtmc, at one rate"][0] == "rtmc − grpo at 0.0003"
    assert "the tree" not in rows  # there is no grpo_step
    assert rows["rtmc against the baseline"] == ["3", "1"]
    assert rows["rtmc against grpo"] == ["2", "1"]
    assert rows["grpo against the baseline"] == ["1", "0"]
    shown = [line for line in lines if line.startswith("| rtmc |")]
    assert "| rtmc | 0.250 0.000 | 0.500 0.500 |" in shown
    # four turns are the mean of 7.5 and 0.5
    assert "| rtmc | 0.5 | 0.5 | 0.5 | 0.5 | 0.5 | 4 | 0.5 | 0.5 | 0.5 | 0.5 |" in shown
    assert "in pass@1, test, of 1.760 or more four times" in "".join(lines)
    assert detectable(FOUND) == pytest.approx((12.7062 + 1.3764) / 8, rel=1e-4)


def test_what_was_not_measured_is_not_shown() -> None:
    found = copy.deepcopy(FOUND)
    found["rates"], found["tuning"] = {"rtmc": 3e-4}, {"rtmc": found["tuning"]["rtmc"]}
    found["results"] = [r for r in found["results"] if r["method"] != "grpo"]
    del found["results"][0]["means"]["entropy"]  # no step with signal
    del found["results"][1]["means"]["entropy"]
    lines = table(found)
    (row,) = [line for line in lines if line.startswith("| rtmc | 0.0003 ")]
    assert row.split("|")[4].strip() == row.split("|")[9].strip() == ""
    assert "| – |" in lines[-1]
    assert detectable(found) is None


def test_a_method_is_known_by_its_settings_and_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {method: setup_of(method) for method in (*METHODS, "baseline")}
    # the preset is RTMC's start for all; baseline is the preset itself
    assert len(set(before.values())) == len(before)
    monkeypatch.setitem(METHODS, "grpo", METHODS["grpo"] | {"credit.gamma": "0.9"})
    changed = {method for method, of in before.items() if setup_of(method) != of}
    assert changed == {"grpo"}


def test_runs_are_counted() -> None:
    assert work_of(SIZES["cores"], ["grpo", "rtmc"]) == 2 * (4 * 2 + 7) + 7 + 1
    assert work_of(SIZES["cores"], ["rtmc"]) == 4 * 2 + 7 + 1


def test_grpo_runs_at_the_rate_of_most_others_too() -> None:
    rates = {"grpo": 1e-4, "grpo_step": 3e-4, "rtmc": 5e-4, "chain_gae": 3e-4}
    rows = settled(rates)
    assert rows.pop("grpo at 0.0003") == ("grpo", 3e-4)
    assert rows == {method: (method, rate) for method, rate in rates.items()}
    assert list(settled({"grpo": 3e-4, "rtmc": 3e-4, "chain_gae": 1e-4})) == [
        "grpo", "rtmc", "chain_gae",
    ]  # fmt: skip
    assert list(settled({"rtmc": 3e-4})) == ["rtmc"]
    assert list(settled({"grpo": 3e-4})) == ["grpo"]


def test_every_row_has_its_own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GRPO does best at the lower rate, RTMC at the higher."""

    def made_up(run: Run, folder: Path) -> dict:
        good = (run.rate == 1e-4) == (run.method == "grpo")
        return {"curve": [run.rate, float(good)], "best": [run.seed], "is": run.method}

    monkeypatch.setattr(paper, "perform", made_up)
    size = Size(Budget(2, 2, 4, 1, 4, 1, 3), (1e-4, 3e-4), tuning=2, seeds=2)
    ticks: list[None] = []
    found = study(size, ["grpo", "rtmc"], tmp_path, 1, lambda: ticks.append(None))
    assert found["rates"] == {"grpo": 1e-4, "rtmc": 3e-4, "grpo at 0.0003": 3e-4}
    assert [
        (r["method"], r["seed"], r["is"], r.get("curve", [0])[0]) for r in found["results"]
    ] == [
        (name, seed, name.removesuffix(" at 0.0003"), found["rates"][name])
        for seed in (100, 101)
        for name in found["rates"]
    ] + [("baseline", 0, "baseline", 0.0)]
    assert len(ticks) == work_of(size, ["grpo", "rtmc"]) == 15


def test_names_of_methods() -> None:
    from rtmc.cli.experiment import _chosen
    from rtmc.errors import OptionError

    assert _chosen("rtmc, no smoothing;grpo ,rtmc, grpo", list(METHODS)) == [
        "rtmc, no smoothing", "grpo", "rtmc",
    ]  # fmt: skip
    assert _chosen(None, ["grpo"]) == ["grpo"]
    with pytest.raises(OptionError, match="'grpo_stp' is not one of grpo;"):
        _chosen("rtmc,grpo_stp", list(METHODS))


@pytest.mark.skipif(not warm_works(), reason="bubblewrap does not work here")
def test_a_small_one_runs_stops_and_goes_on(tmp_path: Path) -> None:
    command = ["experiment", "paper", "--size", "smoke", "--methods", "rtmc", "--jobs", "1",
               "-o", str(tmp_path)]  # fmt: skip
    told = CliRunner().invoke(main, command)
    assert told.exit_code == 0, told.output
    assert "| rtmc | 0.0003 |" in told.output
    drawn = (tmp_path / "paper.svg").read_bytes()
    assert "+0.000" not in told.output  # without GRPO there is nothing to compare with
    again = CliRunner().invoke(main, command)  # shows what is there
    assert again.stdout == told.stdout
    assert (tmp_path / "paper.svg").read_bytes() == drawn
    path = tmp_path / "paper.json"
    old = path.read_bytes().replace(setup_of("rtmc").encode(), b"0" * 16)
    path.write_bytes(old)  # of other settings or another start: made anew, from what is finished
    again = CliRunner().invoke(main, command)
    assert again.stdout == told.stdout
    assert path.read_bytes() != old
    path.unlink()
    partial = tmp_path / "paper.partial.jsonl"
    kept = partial.read_text().splitlines(keepends=True)
    partial.write_text("".join(kept[:-2]))  # stopped before the last two runs
    anew = CliRunner().invoke(main, command)
    seconds = anew.stdout.index("| means over training")
    assert anew.stdout[:seconds] == told.stdout[:seconds]
    assert partial.read_text().splitlines(keepends=True)[: len(kept) - 2] == kept[:-2]
    assert len(partial.read_text().splitlines()) == len(kept)
