"""The benchmarks run, and print what the docs say they print."""

import json
from pathlib import Path

from click.testing import CliRunner

from rtmc.advantages import ESTIMATORS
from rtmc.cli import main

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "group.jsonl")


def test_speed_prints_every_figure(tmp_path: Path) -> None:
    rows = Path(EXAMPLE).read_text().splitlines()[:2]
    small = tmp_path / "small.jsonl"
    small.write_text("\n".join(rows) + "\n")
    result = CliRunner().invoke(main, ["bench", "speed", str(small), "--copies", "2", "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["input"]["rows"] == 4
    assert figures["pipeline_to_json_loads"]["median"] > 1
    assert figures["uncached_to_json_loads"]["median"] > 1
    assert figures["peak_memory_bytes"] > 10**7
    assert list(figures["estimators"]) == list(ESTIMATORS)
    assert figures["start_up_to_import_click"] > 0.5


def test_merges_draws_the_same_cells_again() -> None:
    command = ["bench", "merges", EXAMPLE, "--sample", "3", "--seed", "7"]
    first, again = (CliRunner().invoke(main, command).output for _ in range(2))
    assert first == again
    assert first.startswith("11 merged cells at level paper; 3 drawn with seed 7\n")
    assert first.count("\n   action  ") == 3
    assert CliRunner().invoke(main, [*command[:-1], "8"]).output != first
