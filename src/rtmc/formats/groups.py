"""Read rollouts from files and group them by problem.

Two passes: the first reads ids only and notes where each record lies, the second reads one group
after another, so that memory holds the index and the largest group. Groups come in the order in
which their problems first appear, rollouts in the order of the input; how the input is cut into
files does not matter.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from rtmc.errors import FormatError, OptionError
from rtmc.formats.base import REFUSALS, Format, Identity, why
from rtmc.formats.files import File, Handles, Record, find_files
from rtmc.formats.merge import Joined, begins_with, join_samples
from rtmc.formats.outcomes import Outcomes, read_outcomes
from rtmc.formats.read_report import ReadReport, Skipped, count
from rtmc.rollouts import Group, Rollout, Source

__all__ = ["GroupBy", "GroupReader"]

GroupBy = Literal["problem", "problem,model"]

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
        self.report.outcome_files = self._inputs.outcome_files
        for path, reason in self._inputs.unreadable:
            self.report.skipped.append(Skipped(Source(path), reason))
        self._index: dict[Key, list[_Place]] = {}
        self._without_steps: list[tuple[str, str]] = []  # problem and rollout
        self._share_nothing: list[tuple[str, str]] = []
        if not grouped:
            self._make_index()
        self._skipped_before_reading = len(self.report.skipped)

    @property
    def paths(self) -> tuple[str, ...]:
        """The real paths of the trajectory files; the standard input and pipes have none."""
        paths = (os.path.realpath(file.path) for file in self._inputs.files if file.path != "-")
        return tuple(path for path in paths if os.path.isfile(path))

    def __len__(self) -> int:
        if self._grouped:
            raise TypeError("a reader of grouped input does not know its length")
        return len(self._index)

    @property
    def total(self) -> int | None:
        """Number of groups; None where the input is read once, as it comes."""
        return None if self._grouped else len(self._index)

    def __iter__(self) -> Iterator[Group]:
        del self.report.skipped[self._skipped_before_reading :]
        self.report.records = self.report.rollouts = self.report.joined = 0
        self._without_steps.clear()
        self._share_nothing.clear()
        return self._stream() if self._grouped else self._indexed()

    # --- two passes ---

    def _make_index(self) -> None:
        models: dict[str, dict[str, None]] = {}
        for number, file in enumerate(self._inputs.files):
            for record, identities in self._identified(file):
                for position, identity in enumerate(identities):
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
        if not self._by_model:
            self._warn_of_models(models)

    def _identified(self, file: File) -> Iterator[tuple[Record, list[Identity]]]:
        for record in self._records(file):
            try:
                yield record, file.format.identities(record.raw, record.source)
            except REFUSALS as error:
                self._skip(record.source, error, record.raw)

    def _records(self, file: File) -> Iterator[Record]:
        try:
            yield from file.records()
        except REFUSALS as error:  # a JSON array that is broken further on
            self._skip(Source(file.path), error)

    def _key(self, identity: Identity) -> Key:
        return identity.problem_id, identity.model if self._by_model else None

    def _indexed(self) -> Iterator[Group]:
        handles = Handles([file.real for file in self._inputs.files])
        try:
            for key, places in self._index.items():
                found = [self._read_place(place, handles) for place in places]
                yield from self._group(key, [one for one in found if one is not None])
        finally:
            handles.close()
        self._note_rollouts()
        self._note_outcomes()

    def _read_place(self, place: _Place, handles: Handles) -> _Found | None:
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
        ended: dict[Key, Source] = {}
        key: Key | None = None
        last = Source()
        found: list[_Found] = []
        for file in self._inputs.files:
            for record, identities in self._identified(file):
                try:
                    rollouts = file.format.read(record.raw, record.source)
                except REFUSALS as error:
                    self._skip(record.source, error, record.raw)
                    continue
                for rollout, identity in zip(rollouts, identities, strict=True):
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
        self._note_rollouts()
        self._note_outcomes()

    # --- a group ---

    def _group(self, key: Key, found: list[_Found]) -> Iterator[Group]:
        """Join the records of each rollout, and give the group its outcomes."""
        if self._grouped and not self._by_model:
            models = {one.identity.model: None for one in found if one.identity.model}
            self._warn_of_models({key[0]: models})
        rollouts: dict[str, Rollout] = {}
        paths: dict[str, str] = {}
        share_nothing: dict[str, None] = {}
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
                joined = self._joined(rollouts[same], rollout, identity)
            except FormatError as error:
                self._skip(record, error)
                continue
            rollouts[same] = joined.rollout
            self.report.joined += 1
            if joined.share_nothing:
                share_nothing[same] = None
        members = self._outcomes.join(list(rollouts.values()), list(paths.values()))
        self.report.rollouts += len(members)
        self.report.records = self.report.rollouts + self.report.joined
        self._without_steps.extend((key[0], r.rollout_id) for r in members if not r.steps)
        self._share_nothing.extend((key[0], name) for name in share_nothing)
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
    def _joined(first: Rollout, later: Rollout, identity: Identity) -> Joined:
        if identity.equal_ids == "samples":
            return join_samples(first, later)
        longer = later if len(later.steps) > len(first.steps) else first
        return Joined(msgspec.structs.replace(longer, rollout_id=first.rollout_id), False)

    # --- the report ---

    def _skip(self, source: Source, error: BaseException, raw: bytes = b"") -> None:
        self.report.skipped.append(Skipped(source, why(error, raw)))

    def _warn_of_models(self, models: dict[str, dict[str, None]]) -> None:
        mixed = {problem: list(names) for problem, names in models.items() if len(names) > 1}
        if mixed:
            problem, names = next(iter(mixed.items()))
            self.report.warn(
                f"{count(len(mixed), 'problem')} with rollouts of several models in one group "
                f"({problem}: {', '.join(names)}); group by problem,model to separate them"
            )

    def _note_rollouts(self) -> None:
        """Warn of rollouts that may not be what the person meant."""
        if self._without_steps:
            problem, name = self._without_steps[0]
            self.report.warn(
                f"{count(len(self._without_steps), 'rollout')} without steps "
                f"(first: {name!r} of problem {problem!r}); is --format right?"
            )
        if self._share_nothing:
            problem, name = self._share_nothing[0]
            self.report.warn(
                f"{count(len(self._share_nothing), 'rollout')} joined from rows whose steps share "
                f"nothing (first: {name!r} of problem {problem!r}); if these rows are attempts of "
                "their own, give each its own rollout_id"
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
                self.report.warn(f"{count(len(ids), 'id')} {text} ({', '.join(ids[:3])})")


def _names(rollout_id: str) -> Iterator[str]:
    """Give the names that rollouts of equal id get: ``x``, ``x#2``, ``x#3`` and so on."""
    yield rollout_id
    number = 2
    while True:
        yield f"{rollout_id}#{number}"
        number += 1


def _free_name(rollout_id: str, taken: Iterable[str]) -> str:
    return next(name for name in _names(rollout_id) if name not in taken)
