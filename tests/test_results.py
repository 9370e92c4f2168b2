"""The committed results of the benchmark: complete, and what docs/results.md says of them."""

import json
from pathlib import Path

import pytest

from rtmc.advantages import ESTIMATORS, RECOMMENDED
from rtmc.bench.summary import read, summary
from rtmc.errors import FormatError

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"


def test_the_tables_of_the_page_are_those_of_the_files():
    text = (ROOT / "docs" / "results.md").read_text()
    begin, end = "<!-- rtmc bench results -->\n", "<!-- end -->"
    shown = text[text.index(begin) + len(begin) : text.index(end)]
    assert shown.splitlines() == list(summary(*read(str(RESULTS))))


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
