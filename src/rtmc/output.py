"""Write credited rollouts: JSONL (schema ``rtmc.credit/1``), or Parquet with one row a step.

From the records of one group every number can be computed again. Files appear whole or not at
all: they are written beside their place and moved there at the end.
"""

import gzip
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import msgspec
import numpy as np

from rtmc.atomic import open_atomic
from rtmc.credit import Credit, RolloutCredit
from rtmc.errors import MissingExtraError, OutputError
from rtmc.rollouts import Source, Span

__all__ = ["SCHEMA", "CreditRecord", "StepRecord", "Writer", "open_writer", "records"]

SCHEMA = "rtmc.credit/1"


class StepRecord(msgspec.Struct, rename={"return_": "return"}, omit_defaults=False):
    """One step.

    ``reward`` includes outcome and validation bonus; ``v`` is V′ before normalisation,
    ``advantage`` is after it, null where no credit was assigned.
    """

    t: int
    action: str
    state: str
    reward: float | None
    return_: float | None
    q: float | None
    v: float | None
    n_s: int | None
    n_sa: int | None
    first_visit: bool | None
    advantage: float | None
    spans: tuple[Span, ...]
    states: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


class CreditRecord(msgspec.Struct):
    """One rollout with its credit."""

    schema: str
    problem_id: str
    rollout_id: str
    source: Source
    status: str
    reward: float | None
    flags: tuple[str, ...]
    config: dict[str, Any]
    steps: list[StepRecord]


def records(credit: Credit) -> Iterator[CreditRecord]:
    """Turn a credit into records, one a rollout, in order."""
    config = credit.config.as_dict()
    config["levels"] = credit.levels
    for rollout_credit in credit.rollouts:
        yield _record(rollout_credit, config, credit.levels)


def _record(given: RolloutCredit, config: dict[str, Any], levels: tuple[str, ...]) -> CreditRecord:
    rollout = given.rollout
    several = len(levels) > 1
    columns = zip(
        given.actions,
        given.states,
        _floats(given.rewards),
        _floats(given.returns),
        _floats(given.q_values),
        _floats(given.state_values),
        _integers(given.state_visits),
        _integers(given.action_visits),
        _floats(given.first_visit),
        _floats(given.advantages),
        rollout.steps,
        strict=True,
    )
    return CreditRecord(
        schema=SCHEMA,
        problem_id=rollout.problem_id,
        rollout_id=rollout.rollout_id,
        source=rollout.source,
        status=rollout.status,
        reward=rollout.reward,
        flags=given.flags,
        config=config,
        steps=[
            StepRecord(
                t, action, states[-1], r, g, q, v, n_s, n_sa,
                None if first is None else bool(first), a, step.spans,
                dict(zip(levels, states, strict=True)) if several else msgspec.UNSET,
            )
            for t, (action, states, r, g, q, v, n_s, n_sa, first, a, step) in enumerate(columns)
        ],
    )  # fmt: skip


def _floats(values: np.ndarray) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def _integers(values: np.ndarray) -> list[int | None]:
    return [None if value != value else int(value) for value in values.tolist()]


class Writer(Protocol):
    """Takes records one after another."""

    def write(self, record: CreditRecord) -> None:
        """Write one record."""
        ...


class _Lines:
    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self.file = file
        self.encoder = msgspec.json.Encoder()
        self.buffer = bytearray()

    def write(self, record: CreditRecord) -> None:
        self.encoder.encode_into(record, self.buffer)
        self.buffer += b"\n"
        self.file.write(self.buffer)


_ROWS_A_BATCH = 20_000


class _Parquet:
    """Rows of steps; the columns of the rollout are repeated, its reward as ``outcome``."""

    def __init__(self, file: IO[bytes]) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise MissingExtraError("pyarrow", "parquet") from error
        self.pa = pa
        text, integer, number = pa.string(), pa.int64(), pa.float64()
        self.schema = pa.schema(
            [
                ("schema", text), ("problem_id", text), ("rollout_id", text),
                ("source", pa.struct([("path", text), ("line", integer)])),
                ("status", text), ("outcome", number), ("flags", pa.list_(text)),
                ("config", text), ("t", integer), ("action", text), ("state", text),
                ("reward", number), ("return", number), ("q", number), ("v", number),
                ("n_s", integer), ("n_sa", integer), ("first_visit", pa.bool_()),
                ("advantage", number), ("spans", pa.list_(pa.list_(integer))),
                ("states", pa.map_(text, text)),
            ]
        )  # fmt: skip
        self.writer = pq.ParquetWriter(file, self.schema)
        self.rows: list[dict[str, Any]] = []

    def write(self, record: CreditRecord) -> None:
        shared = {
            "schema": record.schema,
            "problem_id": record.problem_id,
            "rollout_id": record.rollout_id,
            "source": {"path": record.source.path, "line": record.source.line},
            "status": record.status,
            "outcome": record.reward,
            "flags": record.flags,
            "config": msgspec.json.encode(record.config).decode(),
        }
        for step in record.steps:
            row = shared | msgspec.to_builtins(step)
            if "states" in row:
                row["states"] = list(row["states"].items())
            self.rows.append(row)
        if len(self.rows) >= _ROWS_A_BATCH:
            self._flush()

    def _flush(self) -> None:
        if self.rows:
            self.writer.write_table(self.pa.Table.from_pylist(self.rows, schema=self.schema))
            self.rows.clear()

    def close(self) -> None:
        self._flush()
        self.writer.close()


_LINES = ("", ".jsonl", ".ndjson", ".json", ".gz")
_KINDS = ".jsonl, .jsonl.gz or .parquet"


@contextmanager
def open_writer(path: str | Path) -> Generator[Writer]:
    """Open a writer for ``path``: Parquet, or JSON lines, compressed or not, by its suffix.

    See ``open_atomic`` for when the file appears.

    Raises:
        OutputError: the place cannot be written to, or the suffix is unknown.
        MissingExtraError: Parquet without pyarrow.
    """
    path = Path(path)
    if path.suffix not in (*_LINES, ".parquet"):
        raise OutputError(f"cannot write {path}: {path.suffix} is not among {_KINDS}")
    with open_atomic(path) as file:
        yield from _written(file, path.suffix)


def _written(file: IO[bytes], suffix: str) -> Iterator[Writer]:
    """Give a writer onto an open file, and finish what it wrote."""
    if suffix == ".parquet":
        parquet = _Parquet(file)
        yield parquet
        parquet.close()
    elif suffix == ".gz":
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
            yield _Lines(packed)
    else:
        yield _Lines(file)


def write_lines(file: IO[bytes], given: Iterable[CreditRecord]) -> None:
    """Write records to an open stream, for standard output."""
    lines = _Lines(file)
    for record in given:
        lines.write(record)
