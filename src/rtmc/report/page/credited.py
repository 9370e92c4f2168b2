"""Read back what ``rtmc credit`` wrote: the keys and numbers of a group, without its raw texts."""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np

from rtmc.advantages import ESTIMATORS, Estimate, Reads
from rtmc.batch import Batch, Floats, Ints
from rtmc.config import Config
from rtmc.errors import FormatError, MissingExtraError
from rtmc.outcomes import judge
from rtmc.output import SCHEMA, CreditRecord, StepRecord
from rtmc.report.page.data import IN_PAGE, Keys, Known, SignedGroup
from rtmc.rollouts import Group, Rollout, Step
from rtmc.signatures import Signatures

__all__ = ["Credited", "is_credited"]

_MARK = f'{{"schema":"{SCHEMA}"'.encode()
_decoder = msgspec.json.Decoder(CreditRecord)


def is_credited(path: str) -> bool:
    """Tell whether a file was written by ``rtmc credit``."""
    file = Path(path)
    if not file.is_file():
        return False
    with file.open("rb") as handle:
        start = handle.read(len(_MARK))
    if start[:4] == b"PAR1":
        return True
    if start[:2] == b"\x1f\x8b":
        try:
            with gzip.open(file) as handle:
                start = handle.read(len(_MARK))
        except (OSError, EOFError):
            return False
    return start == _MARK


class Credited:
    """The groups of credited files: iterate over it.

    What the page can compute it computes again, from the recorded rewards. They hold outcome and
    bonus, so that ``config`` pays no bonus; ``shown_config`` is what the file was made with. The
    advantages of any other estimator are taken as they are recorded: it may have read a batch, or
    observations, that the file does not hold.

    Raises:
        FormatError: a line is no record, or was made with an estimator that this version lacks.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        _, first = next(_records(paths), (None, None))
        if first is None:
            raise FormatError(f"{', '.join(paths)}: no record; was the file written to its end?")
        self.shown_config = _settings(first)
        self.config = _config(self.shown_config)

    def __iter__(self) -> Iterator[SignedGroup]:
        for problem, records in groupby(self._alike(), lambda record: record.problem_id):
            yield _signed(problem, list(records), self.config)

    def _alike(self) -> Iterator[CreditRecord]:
        """Give the records, which must have been made with the same settings."""
        for path, record in _records(self.paths):
            given, first = _settings(record), self.shown_config
            if given != first:
                name = next(k for k in given | first if given.get(k) != first.get(k))
                raise FormatError(
                    f"{path}: credited with {name} {given.get(name)}, what came before with "
                    f"{first.get(name)}; make a report of each"
                )
            yield record


def _settings(record: CreditRecord) -> dict[str, Any]:
    return {name: value for name, value in record.config.items() if name != "levels"}


def _config(given: dict[str, Any]) -> Config:
    kind = ESTIMATORS.get(given.get("estimator", ""))
    if kind is None:
        raise FormatError(
            f"credited with the estimator {given.get('estimator')!r}, which this version of rtmc "
            f"does not have; it has {', '.join(ESTIMATORS)}"
        )
    own = {name: given[name] for name in kind.__struct_fields__ if name in given}
    rest: dict[str, Any] = {n: given[n] for n in Config.__struct_fields__ if n in given}
    rest["estimator"], rest["beta"] = kind(**own), 0.0
    return Config(**rest)


class _Recorded(msgspec.Struct, frozen=True):
    """Gives the advantages that a file holds, instead of the estimator that made them.

    The rules for all estimators were applied to them; once more they change nothing.
    """

    name: str
    advantages: Floats
    uniform: str = "keep"

    reads: ClassVar[Reads] = Reads()

    def __call__(self, batch: Batch) -> Estimate:
        """Give them."""
        return Estimate(self.advantages)


def _as_recorded(records: Sequence[CreditRecord], group: Group, config: Config) -> Config:
    """Settings whose estimator gives what the records hold."""
    advantages = [
        step.advantage or 0.0
        for record, rollout in zip(records, group.rollouts, strict=True)
        if _outcome(rollout, config) is not None
        for step in record.steps
    ]
    recorded = _Recorded(config.estimator.name, np.array(advantages, dtype=np.float64))
    return msgspec.structs.replace(config, estimator=recorded)


def _outcome(rollout: Rollout, config: Config) -> float | None:
    return judge(rollout, config.incomplete, config.fail_reward, config.unknown).outcome


def _signed(problem: str, records: Sequence[CreditRecord], config: Config) -> SignedGroup:
    levels = tuple(records[0].config["levels"])
    steps = [step for record in records for step in record.steps]
    states = [[_state(step, level) for step in steps] for level in levels]
    actions = [step.action for step in steps]
    keys = tuple(
        _keys(level, column, actions) for level, column in zip(levels, states, strict=True)
    )
    # the levels share one row of numbers
    offsets = np.cumsum([0, *(len(one.state_keys) for one in keys)])
    signatures = Signatures(
        np.stack([one.states + by for one, by in zip(keys, offsets, strict=False)], axis=1),
        np.stack([one.actions for one in keys], axis=1),
        np.zeros(len(steps), dtype=np.int64),
        [key for one in keys for key in one.state_keys],
        keys[-1].action_keys,
    )
    rollouts = tuple(_rollout(record, config) for record in records)
    group = Group(problem, rollouts)
    own = None if config.estimator.name in IN_PAGE else _as_recorded(records, group, config)
    known = Known(levels, signatures)
    return SignedGroup(group, keys, levels[-1], known, texts=False, config=own)


def _state(step: StepRecord, level: str) -> str:
    return step.state if isinstance(step.states, msgspec.UnsetType) else step.states[level]


def _keys(level: str, states: Iterable[str], actions: Iterable[str]) -> Keys:
    state_numbers: dict[str, int] = {}
    action_numbers: dict[str, int] = {}
    return Keys(
        level,
        _numbered(states, state_numbers),
        _numbered(actions, action_numbers),
        list(state_numbers),
        list(action_numbers),
    )


def _numbered(keys: Iterable[str], numbers: dict[str, int]) -> Ints:
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def _rollout(record: CreditRecord, config: Config) -> Rollout:
    """Take the outcome out of the last step's reward again."""
    rewards = [step.reward or 0.0 for step in record.steps]
    rollout = Rollout(
        record.problem_id,
        record.rollout_id,
        reward=record.reward,
        status=record.status,  # ty: ignore[invalid-argument-type]
        source=record.source,
    )
    outcome = _outcome(rollout, config)
    if rewards and outcome is not None:
        rewards[-1] -= outcome
    steps = tuple(Step(reward=reward) for reward in rewards)
    return msgspec.structs.replace(rollout, steps=steps)


# --- files -------------------------------------------------------------------------------------


def _records(paths: Sequence[str]) -> Iterator[tuple[str, CreditRecord]]:
    """Give each record with the path of its file."""
    for path in paths:
        with Path(path).open("rb") as handle:
            magic = handle.read(4)
        read = _rows(path) if magic == b"PAR1" else _lines(path, magic[:2] == b"\x1f\x8b")
        for record in read:
            yield path, record


def _lines(path: str, packed: bool) -> Iterator[CreditRecord]:
    number = 1
    try:
        with gzip.open(path) if packed else Path(path).open("rb") as handle:
            for line in handle:
                yield _decoder.decode(line)
                number += 1
    except (msgspec.MsgspecError, EOFError, OSError, zlib.error) as error:
        raise FormatError(
            f"{path}:{number}: not a line of `rtmc credit` ({error}); credit it again"
        ) from error


def _rows(path: str) -> Iterator[CreditRecord]:
    """Put the steps of a Parquet file together again."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    try:
        rows = (row for batch in pq.ParquetFile(path).iter_batches() for row in batch.to_pylist())
        for _, own in groupby(rows, lambda row: (row["problem_id"], row["rollout_id"])):
            yield _from_rows(list(own))
    except (pa.ArrowException, KeyError, msgspec.MsgspecError) as error:
        raise FormatError(
            f"{path}: not a table of `rtmc credit` ({error}); credit it again"
        ) from error


def _from_rows(rows: list[dict[str, Any]]) -> CreditRecord:
    first = rows[0]
    for row in rows:
        if row["states"]:
            row["states"] = dict(row["states"])
        else:
            del row["states"]
    record = {
        **first,
        "reward": first["outcome"],
        "config": msgspec.json.decode(first["config"]),
        "steps": rows,
    }
    return msgspec.convert(record, CreditRecord)
