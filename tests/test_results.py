"""The committed results of the benchmark: complete, and what docs/results.md says of them."""

import json
from pathlib import Path

import msgspec
import pytest

from rtmc.advantages import ESTIMATORS, RECOMMENDED
from rtmc.bench.paper import SIZES
from rtmc.bench.paper_text import table
from rtmc.bench.summary import read, summary
from rtmc.errors import FormatError

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"


def shown(command):
    """Give the lines of the page that a command printed."""
    text = (ROOT / "docs" / "results.md").read_text()
    _, after = text.split(f"<!-- {command} -->\n")
    return after.partition("<!-- end -->")[0].splitlines()


def test_the_tables_of_the_page_are_those_of_the_files():
    assert shown("rtmc bench results") == list(summary(*read(str(RESULTS))))


def test_the_experiment_on_the_page_is_that_of_the_file():
    found = json.loads((RESULTS / "paper" / "paper.json").read_text())
    assert shown("rtmc experiment paper") == table(found)
    size = SIZES["cores"]
    assert found["settings"] == json.loads(msgspec.json.encode(size))


def test_every_estimator_is_judged_and_the_recommended_one_is_in_the_dict():
    quality = json.loads((RESULTS / "quality.json").read_text())
    assert quality["recommended"] == RECOMMENDED in ESTIMATORS
    assert set(ESTIMATORS) <= {row["estimator"] for row in quality["rows"]}
    expected = {"condition", "estimator", "n", "cosine", "low", "high"}
    assert all(expected <= row.keys() for row in quality["rows"])


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"quality\.json: no result of rtmc bench; expected"):
        read(str(tmp_path))
    (tmp_path / "quality.json").write_text('{"rows": 3}')
    with pytest.raises(FormatError, match="no result of rtmc bench"):
        read(str(tmp_path))
