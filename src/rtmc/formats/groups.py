"""Read rollouts from files and group them by problem.

Two passes: the first reads ids only and notes where each record lies, the second reads one group
after another, so that memory holds the index and the largest group. Groups come in the order in
which their problems first appear, rollouts in the order of the input; how the input is cut into
files does not matter.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, get_args

import msgspec

from rtmc.errors import FormatError, OptionError
from rtmc.formats.base import REFUSALS, Format, Identity, why
from rtmc.formats.files import File, Record, find_files
from rtmc.formats.merge import begins_with, join_samples
from rtmc.formats.outcomes import Outcomes, read_outcomes
from rtmc.rollouts import Group, Rollout, Source

__all__ = ["GroupBy", "GroupReader", "ReadReport", "Skipped"]

GroupBy = Literal["problem", "problem,model"]

_OPEN_FILES = 32


class Skipped(NamedTuple):
    """A record that was not read, and why."""

    source: Source
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


@dataclass
class ReadReport:
    """What was read, and what was not.

    Attributes:
        files: trajectory files by format.
        passed_over: other files by kind.
        records: records with an id, before records of one rollout are joined.
        rollouts: rollouts given out so far.
        joined: records that were joined to another one of the same rollout.
        skipped: records that could not be read.
        unmatched_outcomes: ids of ``--outcomes`` that no rollout has.
        warnings: what else a person should know, one sentence each.
    """

    files: dict[str, int] = field(default_factory=dict)
    passed_over: dict[str, int] = field(default_factory=dict)
    records: int = 0
    rollouts: int = 0
    joined: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    unmatched_outcomes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


Key = tuple[str, str | None]


class _Place(NamedTuple):
    """Where the rollout number ``position`` of a record is, and its ids."""

    file: int
    offset: int
    length: int
    line: int
    position: int
    identity: Identity


class _Found(NamedTuple):
    """A rollout as it was read, its ids in the index, and the record it was read from."""

    rollout: Rollout
    identity: Identity
    record: Source


class GroupReader:
    """The groups among some inputs: iterate over it, as often as you like.

    Made by ``rtmc.formats.read_groups``, which documents the options.

    Attributes:
        report: what was read; complete after an iteration.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        formats: dict[str, Format],
        *,
        format: str | None = None,
        outcomes: Sequence[str] = (),
        group_by: GroupBy = "problem",
        grouped: bool = False,
    ) -> None:
        if format is not None and format not in formats:
            raise OptionError(f"unknown format {format!r}; known are {', '.join(formats)}")
        if group_by not in get_args(GroupBy):
            raise OptionError(
                f"cannot group by {group_by!r}; possible are {', '.join(get_args(GroupBy))}"
            )
        explicit = [statement for path in outcomes for statement in read_outcomes(path)]
        self.report = ReadReport()
        self._by_model = group_by == "problem,model"
        self._grouped = grouped
        self._inputs = find_files(inputs, formats, formats[format] if format else None)
        self._outcomes = Outcomes(explicit, self._inputs.statements)
        for file in self._inputs.files:
            name = file.format.name
            self.report.files[name] = self.report.files.get(name, 0) + 1
        self.report.passed_over = dict(self._inputs.passed_over)
        self._index: dict[Key, list[_Place]] = {}
        self._skipped_before_reading = 0
        if not grouped:
            self._make_index()

    def __len__(self) -> int:
        if self._grouped:
            raise TypeError("a reader of grouped input does not know its length")
        return len(self._index)

    def __iter__(self) -> Iterator[Group]:
        del self.report.skipped[self._skipped_before_reading :]
        self.report.rollouts = self.report.joined = 0
        return self._stream() if self._grouped else self._indexed()

    # --- two passes ---

    def _make_index(self) -> None:
        models: dict[str, dict[str, None]] = {}
        for number, file in enumerate(self._inputs.files):
            for record, identities in self._identified(file):
                for position, identity in enumerate(identities):
                    self.report.records += 1
                    place = _Place(
                        number,
                        record.offset,
                        len(record.raw),
                        record.source.line,
                        position,
                        identity,
                    )
                    self._index.setdefault(self._key(identity), []).append(place)
                    if identity.model is not None:
                        models.setdefault(identity.problem_id, {})[identity.model] = None
        self._skipped_before_reading = len(self.report.skipped)
        if not self._by_model:
            self._warn_of_models(models)

    def _identified(self, file: File) -> Iterator[tuple[Record, list[Identity]]]:
        for record in self._records(file):
            try:
                yield record, file.format.identities(record.raw, record.source)
            except REFUSALS as error:
                self._skip(record.source, error)

    def _records(self, file: File) -> Iterator[Record]:
        try:
            yield from file.records()
        except REFUSALS as error:  # a JSON array that is broken further on
            self._skip(Source(file.path), error)

    def _key(self, identity: Identity) -> Key:
        return identity.problem_id, identity.model if self._by_model else None

    def _indexed(self) -> Iterator[Group]:
        handles = _Handles([file.real for file in self._inputs.files])
        try:
            for key, places in self._index.items():
                found = [self._read_place(place, handles) for place in places]
                yield from self._group(key, [one for one in found if one is not None])
        finally:
            handles.close()
        self._note_outcomes()

    def _read_place(self, place: _Place, handles: "_Handles") -> _Found | None:
        file = self._inputs.files[place.file]
        source = Source(file.path, place.line)
        try:
            raw = handles.read(place.file, place.offset, place.length)
            rollouts = file.format.read(raw, source)
            if place.position >= len(rollouts):
                raise FormatError("the file changed while it was read")
            return _Found(rollouts[place.position], place.identity, source)
        except REFUSALS as error:
            self._skip(source, error)
        return None

    # --- one pass ---

    def _stream(self) -> Iterator[Group]:
        self.report.records = 0
        ended: dict[Key, Source] = {}
        key: Key | None = None
        last = Source()
        found: list[_Found] = []
        for file in self._inputs.files:
            for record, identities in self._identified(file):
                try:
                    rollouts = file.format.read(record.raw, record.source)
                except REFUSALS as error:
                    self._skip(record.source, error)
                    continue
                for rollout, identity in zip(rollouts, identities, strict=True):
                    self.report.records += 1
                    following = self._key(identity)
                    if following != key:
                        if key is not None:
                            yield from self._group(key, found)
                            ended[key] = last
                        if following in ended:
                            raise FormatError(
                                f"{record.source}: problem {following[0]!r} appears again after "
                                f"its rows ended at {ended[following]}; the input is not grouped: "
                                "sort it by problem or read it without --grouped"
                            )
                        key, found = following, []
                    found.append(_Found(rollout, identity, record.source))
                    last = record.source
        if key is not None:
            yield from self._group(key, found)
        self._note_outcomes()

    # --- a group ---

    def _group(self, key: Key, found: list[_Found]) -> Iterator[Group]:
        """Join the records of each rollout, and give the group its outcomes."""
        if self._grouped and not self._by_model:
            models = {one.identity.model: None for one in found if one.identity.model}
            self._warn_of_models({key[0]: models})
        rollouts: dict[str, Rollout] = {}
        paths: dict[str, str] = {}
        for rollout, identity, record in found:
            same = self._same(rollout, identity, rollouts)
            if same is None:
                name = _free_name(identity.rollout_id, rollouts)
                if name != rollout.rollout_id:
                    rollout = msgspec.structs.replace(rollout, rollout_id=name)
                rollouts[name] = rollout
                paths[name] = record.path
                continue
            try:
                rollouts[same] = self._joined(rollouts[same], rollout, identity)
                self.report.joined += 1
            except FormatError as error:
                self._skip(record, error)
        members = self._outcomes.join(list(rollouts.values()), list(paths.values()))
        self.report.rollouts += len(members)
        if members:
            yield Group(key[0], tuple(members))

    @staticmethod
    def _same(rollout: Rollout, identity: Identity, rollouts: dict[str, Rollout]) -> str | None:
        """Name the rollout of which ``rollout`` is another record, if there is one."""
        if identity.equal_ids == "attempts":
            return None
        for name in _names(identity.rollout_id):
            other = rollouts.get(name)
            if other is None:
                return None
            if None not in (other.model, rollout.model) and other.model != rollout.model:
                continue
            if identity.equal_ids == "samples":
                return name
            if begins_with(other.steps, rollout.steps) or begins_with(rollout.steps, other.steps):
                return name
        return None

    @staticmethod
    def _joined(first: Rollout, later: Rollout, identity: Identity) -> Rollout:
        if identity.equal_ids == "samples":
            return join_samples(first, later)
        longer = later if len(later.steps) > len(first.steps) else first
        return msgspec.structs.replace(longer, rollout_id=first.rollout_id)

    # --- the report ---

    def _skip(self, source: Source, error: BaseException) -> None:
        self.report.skipped.append(Skipped(source, why(error)))

    def _warn(self, text: str) -> None:
        if text not in self.report.warnings:
            self.report.warnings.append(text)

    def _warn_of_models(self, models: dict[str, dict[str, None]]) -> None:
        mixed = {problem: list(names) for problem, names in models.items() if len(names) > 1}
        if mixed:
            problem, names = next(iter(mixed.items()))
            self._warn(
                f"{_count(len(mixed), 'problem')} with rollouts of several models in one group "
                f"({problem}: {', '.join(names)}); group by problem,model to separate them"
            )

    def _note_outcomes(self) -> None:
        outcomes = self._outcomes
        self.report.unmatched_outcomes = outcomes.unmatched()
        for ids, text in (
            (self.report.unmatched_outcomes, "in --outcomes without a rollout"),
            (sorted(outcomes.ambiguous), "whose outcome file fits several rollouts or none; "
             "left unknown, give the outcomes by rollout id with --outcomes"),
            (sorted(outcomes.shared), "whose one outcome in --outcomes went to several rollouts"),
        ):  # fmt: skip
            if ids:
                self._warn(f"{_count(len(ids), 'id')} {text} ({', '.join(ids[:3])})")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _names(rollout_id: str) -> Iterator[str]:
    """Give the names that rollouts of equal id get: ``x``, ``x#2``, ``x#3`` and so on."""
    yield rollout_id
    number = 2
    while True:
        yield f"{rollout_id}#{number}"
        number += 1


def _free_name(rollout_id: str, taken: Iterable[str]) -> str:
    return next(name for name in _names(rollout_id) if name not in taken)


class _Handles:
    """A bounded number of open files, the least recently used is closed first."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._open: OrderedDict[int, BinaryIO] = OrderedDict()

    def read(self, file: int, offset: int, length: int) -> bytes:
        handle = self._open.pop(file, None)
        if handle is None:
            if len(self._open) >= _OPEN_FILES:
                self._open.popitem(last=False)[1].close()
            handle = Path(self._paths[file]).open("rb")  # noqa: SIM115 (kept open)
        self._open[file] = handle
        handle.seek(offset)
        return handle.read(length)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()
