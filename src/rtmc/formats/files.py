"""Find the files among the inputs, tell their formats, and cut them into records.

Inputs are files, directories (walked in sorted order) and ``-`` for the standard input. A file that
a person named must be readable; one that was found in a directory and cannot be read is noted, and
the others are read. JSONL is read a line at a time, whatever the size of the file.
"""

import gzip
import os
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

import msgspec

from rtmc.errors import FormatError
from rtmc.formats.base import REFUSALS, Format
from rtmc.formats.outcomes import Statement
from rtmc.formats.read_report import count
from rtmc.formats.sniff import BOM, OUTCOMES, Layout, Sniffed, layout_of, sniff
from rtmc.rollouts import Source

__all__ = ["File", "Handles", "Inputs", "Record", "find_files"]

_OPEN_FILES = 32
_GZIP = b"\x1f\x8b"
_UNREADABLE = (OSError, EOFError, zlib.error)
_OWN_PIPES = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Pipes that the shell has opened for us (``<(zcat x.gz)``): waiting for them is no mistake."""


@dataclass(frozen=True)
class File:
    """A trajectory file and how to read it.

    Attributes:
        path: its name as given.
        real: where its bytes are; a temporary copy of what is packed or piped.
        believed: nothing in it looks like its format, which a person has named.
    """

    path: str
    real: str
    format: Format
    layout: Layout
    believed: bool = False

    def records(self) -> Iterator["Record"]:
        """Cut the file into records, without judging them."""
        if self.layout == "lines":
            yield from _lines(self)
            return
        raw = Path(self.real).read_bytes()
        start = len(BOM) if raw.startswith(BOM) else 0
        if self.layout == "whole":
            yield Record(raw[start:], Source(self.path), start)
            return
        at, line = start, 1
        for item in msgspec.json.decode(raw[start:], type=list[msgspec.Raw]):
            body = bytes(item)
            found = raw.index(body, at)  # only blanks and a comma lie before it
            line += raw.count(b"\n", at, found)
            yield Record(body, Source(self.path, line), found)
            at = found + len(body)
            line += body.count(b"\n")


_BUFFER = 1 << 18  # lines of tens of kilobytes are common


class Record(NamedTuple):
    """The bytes of one record and where they are in their file."""

    raw: bytes
    source: Source
    offset: int


def _lines(file: File) -> Iterator[Record]:
    offset = 0
    with Path(file.real).open("rb", buffering=_BUFFER) as handle:
        for number, line in enumerate(handle, 1):
            start = offset
            offset += len(line)
            if number == 1 and line.startswith(BOM):
                line = line[len(BOM) :]
                start += len(BOM)
            if line.strip():
                yield Record(line, Source(file.path, number), start)


class Handles:
    """A bounded number of open files, the least recently used is closed first."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._open: OrderedDict[int, BinaryIO] = OrderedDict()

    def read(self, file: int, offset: int, length: int) -> bytes:
        """Read a piece of the file number ``file``."""
        handle = self._open.pop(file, None)
        if handle is None:
            if len(self._open) >= _OPEN_FILES:
                self._open.popitem(last=False)[1].close()
            handle = Path(self._paths[file]).open("rb")  # noqa: SIM115 (kept open)
        self._open[file] = handle
        handle.seek(offset)
        return handle.read(length)

    def close(self) -> None:
        """Close all files."""
        while self._open:
            self._open.popitem()[1].close()


# --- the inputs ----------------------------------------------------------------------------------


class Inputs:
    """What was found among the inputs.

    Attributes:
        files: the trajectory files, in order.
        statements: what outcome files among the inputs say.
        outcome_files: how many these are.
        passed_over: how many other files there were, by kind.
        unreadable: files and directories found in a directory that cannot be read, and why.
    """

    def __init__(self) -> None:
        self.files: list[File] = []
        self.statements: list[Statement] = []
        self.outcome_files = 0
        self.passed_over: Counter[str] = Counter()
        self.unreadable: list[tuple[str, str]] = []
        self._spool: str | None = None

    def spool(self) -> Path:
        """Give a new temporary file that lives as long as these inputs."""
        if self._spool is None:
            self._spool = tempfile.mkdtemp(prefix="rtmc-")
            weakref.finalize(self, shutil.rmtree, self._spool, ignore_errors=True)
        handle, path = tempfile.mkstemp(dir=self._spool)
        os.close(handle)
        return Path(path)


def find_files(
    inputs: Sequence[str], formats: Mapping[str, Format], forced: Format | None = None
) -> Inputs:
    """Find the trajectory files among the inputs.

    Args:
        inputs: files, directories, or ``-`` for the standard input.
        formats: the formats to tell apart.
        forced: the format of the files among the inputs; of the files in a directory those are
            taken that look like it.

    Raises:
        FormatError: an input does not exist or cannot be read, no file of any known format was
            found, or a file is plainly not of the format that was forced on it.
    """
    found = Inputs()
    known = formats if forced is None else {forced.name: forced}
    seen: set[str] = set()
    for given in inputs:
        for path in _walk(given, found):
            real = os.path.realpath(path) if path != "-" else "-"
            if real in seen:
                found.passed_over["given twice"] += 1
                continue
            seen.add(real)
            try:
                if path == given:
                    _take(found, path, known, forced)
                elif _is_regular(path):
                    _take(found, path, known)
                else:
                    found.passed_over["not a regular file"] += 1
            except _UNREADABLE as error:
                if path == given:
                    raise FormatError(f"{path}: cannot be read ({_reason(error)})") from error
                found.unreadable.append((path, f"cannot be read ({_reason(error)})"))
    if not found.files:
        raise FormatError(_nothing_found(inputs, found, formats, forced))
    for file in found.files:
        if file.believed:
            _refuse_wrong_format(file)
    return found


def _is_regular(path: str) -> bool:
    return stat.S_ISREG(os.stat(path).st_mode)


def _reason(error: BaseException) -> str:
    """Say why a file cannot be read, without the path that ``OSError`` repeats."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _walk(given: str, found: Inputs) -> Iterator[str]:
    """Give the files of an input; a directory in it that cannot be listed is noted."""
    if given == "-":
        yield given
        return
    if not os.path.exists(given):
        raise FormatError(f"{given}: no such file or directory")
    if not os.path.isdir(given):
        if not _is_regular(given) and not given.startswith(_OWN_PIPES):
            raise FormatError(
                f"{given}: a pipe, socket or device; expected a file or a directory "
                "(- reads the standard input)"
            )
        yield given
        return

    def note(error: OSError) -> None:
        found.unreadable.append((str(error.filename), f"cannot be listed ({_reason(error)})"))

    for directory, names, files in os.walk(given, onerror=note):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield os.path.join(directory, name)


def _take(
    found: Inputs, path: str, formats: Mapping[str, Format], named: Format | None = None
) -> None:
    """Look at one file, and put it where it belongs."""
    real = _on_disk(found, path)
    sniffed = sniff(path, real, formats)
    believed = sniffed.format is None and sniffed.kind not in ("empty", OUTCOMES)
    if believed and named is not None:
        sniffed = Sniffed("", named, "whole" if named.unit == "file" else layout_of(real))
    if sniffed.format is not None:
        found.files.append(File(path, real, sniffed.format, sniffed.layout, believed))
    elif sniffed.kind == OUTCOMES:
        found.statements.extend(sniffed.statements)
        found.outcome_files += 1
    else:
        found.passed_over[sniffed.kind] += 1


def _on_disk(found: Inputs, path: str) -> str:
    """Give a file that can be read at any place: pipes and compressed files are copied."""
    real = path
    if path == "-":
        real = _spooled(found, sys.stdin.buffer)
    elif not _is_regular(path):
        with Path(path).open("rb") as pipe:
            real = _spooled(found, pipe)
    with Path(real).open("rb") as handle:
        packed = handle.read(len(_GZIP)) == _GZIP or path.endswith(".gz")
    if packed:
        with gzip.open(real, "rb") as unpacked:
            return _spooled(found, unpacked)
    return real


def _spooled(found: Inputs, stream: IO[bytes] | gzip.GzipFile) -> str:
    spool = found.spool()
    with spool.open("wb") as copy:
        shutil.copyfileobj(stream, copy)
    return str(spool)


def _refuse_wrong_format(file: File) -> None:
    """Refuse a file that a person gave a format which nothing in it bears out.

    Raises:
        FormatError: it has rollouts, and none of them has a step.
    """
    rollouts = 0
    for record in file.records():
        try:
            found = file.format.read(record.raw, record.source)
        except REFUSALS:
            continue  # skipped with its reason when the records are read
        if any(rollout.steps for rollout in found):
            return
        rollouts += len(found)
    if rollouts:
        raise FormatError(
            f"{file.path}: not of format {file.format.name}: nothing in it looks like that format, "
            f"and read as such its {count(rollouts, 'rollout')} would have no steps; leave "
            "--format out, or name another (`rtmc formats` lists them)"
        )


def _nothing_found(
    inputs: Sequence[str], found: Inputs, formats: Mapping[str, Format], forced: Format | None
) -> str:
    expected = f"format {forced.name}" if forced else f"one of: {', '.join(formats)}"
    kinds = found.passed_over.copy()
    if found.outcome_files:
        kinds[OUTCOMES] = found.outcome_files
    what = [f"{number} {kind}" for kind, number in sorted(kinds.items())]
    if found.unreadable:
        path, reason = found.unreadable[0]
        what.append(f"{len(found.unreadable)} unreadable, the first: {path}: {reason}")
    if not inputs:
        return f"no input; give files, directories or - (formats: {', '.join(formats)})"
    if len(inputs) == 1 and inputs[0] != "-" and not os.path.isdir(inputs[0]):
        kind = next(iter(kinds), "empty")
        subject = f"{inputs[0]}: not a trajectory file ({kind})"
    else:
        subject = f"{', '.join(inputs)}: no trajectory file found ({'; '.join(what) or 'no files'})"
    advice = (
        ""
        if forced
        else "; name the format with --format (rtmc figures: --input-format) if you know it"
    )
    return f"{subject}; expected {expected}{advice}"
