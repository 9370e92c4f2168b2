"""Read the rows of a published dataset from local files, JSONL or Parquet."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from rtmc.errors import FormatError, MissingExtraError
from rtmc.formats.base import REFUSALS
from rtmc.formats.read_report import Skipped
from rtmc.rollouts import Source

__all__ = ["Located", "names_of", "read_rows"]

Row = TypeVar("Row", bound=msgspec.Struct)

_BATCH = 32  # a row of R2E-Gym is about a megabyte


class Located(NamedTuple):
    """A row and where it is; the line of a Parquet file is the number of the row."""

    source: Source
    row: Any


def read_rows(
    paths: Sequence[str | Path], row_type: type[Row], dataset: str
) -> Iterator[Located | Skipped]:
    """Read rows in the order of the files; a broken one is given as ``Skipped``.

    Args:
        paths: ``.jsonl`` or ``.parquet`` files.
        row_type: the columns that are needed; others are not looked at.
        dataset: its name, for messages.

    Raises:
        FormatError: a file is missing, is neither kind, or lacks a column.
        MissingExtraError: Parquet without pyarrow.
    """
    for path in map(Path, paths):
        if path.suffix not in (".jsonl", ".parquet"):
            raise FormatError(f"{path}: expected the rows of {dataset} as .jsonl or .parquet")
        if not path.is_file():
            raise FormatError(f"{path}: no such file; expected the rows of {dataset}")
        if path.suffix == ".parquet":
            yield from _parquet(path, row_type, dataset)
        else:
            yield from _lines(path, row_type)


def names_of(text: str | list[str], column: str) -> list[str]:
    """Give the names in a column that holds a list, or a list as JSON.

    Raises:
        FormatError: it holds neither.
    """
    if isinstance(text, list):
        return text
    try:
        return msgspec.json.decode(text, type=list[str])
    except msgspec.MsgspecError as error:
        raise FormatError(f"{column} is no list of names ({error})") from error


def _lines(path: Path, row_type: type[Row]) -> Iterator[Located | Skipped]:
    decoder = msgspec.json.Decoder(row_type)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            source = Source(str(path), number)
            try:
                yield Located(source, decoder.decode(line))
            except REFUSALS as error:
                yield Skipped(source, str(error))


def _parquet(path: Path, row_type: type[Row], dataset: str) -> Iterator[Located | Skipped]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{path}: not a Parquet file ({error})") from error
    with file:
        fields, columns = msgspec.structs.fields(row_type), set(file.schema_arrow.names)
        for field in fields:
            if field.required and field.encode_name not in columns:
                raise FormatError(
                    f"{path}: no column {field.encode_name}; expected the rows of {dataset}"
                )
        wanted = [field.encode_name for field in fields if field.encode_name in columns]
        number = 0
        for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
            for values in batch.to_pylist():
                number += 1
                source = Source(str(path), number)
                try:
                    yield Located(source, msgspec.convert(values, row_type))
                except REFUSALS as error:
                    yield Skipped(source, str(error))
