"""Files of rows that are not what they should be."""

import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import Engine
from rows import write_rows
from test_images_r2e_gym import row
from test_images_swe_bench import published

from rtmc.agent.tasks.images import R2EGym, SweBench
from rtmc.errors import FormatError, MissingExtraError


def read(*paths):
    return R2EGym(paths, Engine().opener()).problems


def test_several_files_in_their_order(tmp_path):
    paths = [
        write_rows(tmp_path / name, [row(letter * 40)])
        for name, letter in (("b.parquet", "a"), ("a.jsonl", "b"))
    ]
    assert [problem.problem_id[-1] for problem in read(*paths)] == ["a", "b"]


def test_files_are_read_when_problems_are_asked_for(tmp_path):
    task = R2EGym([tmp_path / "rows.jsonl"], Engine().opener())
    write_rows(tmp_path / "rows.jsonl", [row("a" * 40)])
    assert len(task.problems) == 1
    assert task.problems is task.problems


def test_no_such_file(tmp_path):
    with pytest.raises(FormatError) as caught:
        read(tmp_path / "rows.jsonl")
    assert str(caught.value) == (
        f"{tmp_path}/rows.jsonl: no such file; expected the rows of R2E-Gym"
    )


def test_another_kind_of_file(tmp_path):
    (tmp_path / "rows.csv").touch()
    with pytest.raises(FormatError) as caught:
        read(tmp_path / "rows.csv")
    assert str(caught.value) == (
        f"{tmp_path}/rows.csv: expected the rows of R2E-Gym as .jsonl or .parquet"
    )


def test_no_file():
    with pytest.raises(FormatError) as caught:
        read()
    assert str(caught.value) == "no file: no problem of R2E-Gym"


def test_not_parquet(tmp_path):
    (tmp_path / "rows.parquet").write_text("{}")
    with pytest.raises(FormatError, match=r"rows\.parquet: not a Parquet file \("):
        read(tmp_path / "rows.parquet")


def test_the_rows_of_another_dataset(tmp_path):
    path = write_rows(tmp_path / "rows.parquet", [published()])
    with pytest.raises(FormatError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: no column repo_name; expected the rows of R2E-Gym"


def test_broken_rows_of_parquet(tmp_path):
    rows = [row("a" * 40), {**row("b" * 40), "docker_image": None}, row("c" * 40)]
    path = write_rows(tmp_path / "rows.parquet", rows)
    task = R2EGym([path], Engine().opener())
    assert len(task.problems) == 2
    assert list(map(str, task.skipped)) == [
        f"{path}:2: Expected `str`, got `null` - at `$.docker_image`"
    ]


def test_large_strings(tmp_path):
    """Some copies have other string types."""
    path = tmp_path / "rows.parquet"
    table = pa.Table.from_pylist([published()])
    schema = pa.schema(
        [(f.name, pa.large_string()) if f.type == pa.string() else f for f in table.schema]
    )
    pq.write_table(table.cast(schema), path)
    assert len(SweBench([path], Engine().opener()).problems) == 1


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    path = write_rows(tmp_path / "rows.parquet", [row("a" * 40)])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rtmc\[parquet\]'"):
        read(path)
