"""Find the files among the inputs, tell their formats, and cut them into records.

Inputs are files, directories (walked in sorted order) and ``-`` for the standard input. Whether a
file is JSONL, one JSON value, or a JSON array of records is told from its content. JSONL is read a
line at a time, whatever the size of the file.
"""

import gzip
import os
import shutil
import sys
import tempfile
import weakref
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from rtmc.errors import FormatError
from rtmc.formats.base import REFUSALS, Format, why
from rtmc.formats.outcomes import Statement, statements_in
from rtmc.rollouts import Source

__all__ = ["File", "Inputs", "Record", "detect_format", "find_files"]

_BOM = b"\xef\xbb\xbf"
_HEAD_BYTES = 4096
_SNIFFED_LINES = 50
"""How many lines may be unreadable or of no format before a file is given up."""

Layout = Literal["lines", "array", "whole"]


@dataclass(frozen=True)
class File:
    """A trajectory file: its name as given, where its bytes are, and how to read it."""

    path: str
    real: str
    format: Format
    layout: Layout

    def records(self) -> Iterator["Record"]:
        """Cut the file into records, without judging them."""
        if self.layout == "lines":
            yield from _lines(self)
            return
        raw = Path(self.real).read_bytes()
        start = len(_BOM) if raw.startswith(_BOM) else 0
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


class Record(NamedTuple):
    """The bytes of one record and where they are in their file."""

    raw: bytes
    source: Source
    offset: int


def _lines(file: File) -> Iterator[Record]:
    offset = 0
    with Path(file.real).open("rb") as handle:
        for number, line in enumerate(handle, 1):
            start = offset
            offset += len(line)
            if number == 1 and line.startswith(_BOM):
                line = line[len(_BOM) :]
                start += len(_BOM)
            if line.strip():
                yield Record(line, Source(file.path, number), start)


# --- telling the format --------------------------------------------------------------------------


def detect_format(value: Any, path: str, formats: Mapping[str, Format]) -> Format | None:
    """Find the format of a decoded JSON value (or the first bytes of a file that is not JSON)."""
    return next((f for f in formats.values() if f.detect(value, path)), None)


class _Sniffed(NamedTuple):
    """What a file is: of a format, a file of outcomes, or neither (then ``kind`` says what)."""

    kind: str = ""
    format: Format | None = None
    layout: Layout = "whole"
    statements: Sequence[Statement] = ()


def _sniff(path: str, real: str, formats: Mapping[str, Format]) -> _Sniffed:
    with Path(real).open("rb") as handle:
        head = handle.read(_HEAD_BYTES)
        start = head.removeprefix(_BOM).lstrip()
        if not start and len(head) < _HEAD_BYTES:
            return _Sniffed("empty")
        if start[:1] not in (b"{", b"["):
            found = detect_format(head, path, formats)
            return _Sniffed(f"not JSON ({Path(path).suffix or 'no suffix'})", found)
        handle.seek(0)
        lines = (line.removeprefix(_BOM) for line in handle if line.strip(_BOM + b" \t\r\n"))
        first = next(lines)
        second = next(lines, None)
        try:
            value = msgspec.json.decode(first)
        except REFUSALS as error:
            broken = why(error)
            if second is not None and "truncated" in broken:  # one value over several lines
                whole = _decoded(Path(real).read_bytes().removeprefix(_BOM))
                if whole is not None:
                    return _sniff_value(whole, path, formats)
        else:
            broken = ""
            if second is None:
                return _sniff_value(value, path, formats)
        rest = [second] if second is not None else []
        for line in chain([first], rest, islice(lines, _SNIFFED_LINES)):
            value = _decoded(line)
            found = None if value is None else detect_format(value, path, formats)
            if found is not None:
                return _Sniffed("", found, "whole" if found.unit == "file" else "lines")
    return _Sniffed(f"broken JSON ({broken})" if broken else "JSON of no known format")


def _decoded(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except REFUSALS:
        return None


def _sniff_value(value: Any, path: str, formats: Mapping[str, Format]) -> _Sniffed:
    """Tell what a file is that holds one JSON value."""
    found = detect_format(value, path, formats)
    if found is not None:
        return _Sniffed("", found, "whole")
    if isinstance(value, list):
        for item in value[:_SNIFFED_LINES]:
            found = detect_format(item, path, formats)
            if found is not None and found.unit == "line":
                return _Sniffed("", found, "array")
    statements = statements_in(value, path)
    if statements is not None:
        return _Sniffed("outcomes", statements=statements)
    return _Sniffed("JSON of no known format")


# --- the inputs ----------------------------------------------------------------------------------


class Inputs:
    """What was found among the inputs.

    Attributes:
        files: the trajectory files, in order.
        statements: what outcome files among the inputs say.
        passed_over: how many other files there were, by kind.
    """

    def __init__(self) -> None:
        self.files: list[File] = []
        self.statements: list[Statement] = []
        self.passed_over: Counter[str] = Counter()
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
        FormatError: an input does not exist, or no file of any known format was found.
    """
    found = Inputs()
    known = formats if forced is None else {forced.name: forced}
    seen: set[str] = set()
    for given in inputs:
        for path in _walk(given):
            real = os.path.realpath(path) if path != "-" else "-"
            if real in seen:
                found.passed_over["given twice"] += 1
                continue
            seen.add(real)
            named = forced if path == given else None
            _take(found, path, known, named)
    if not found.files:
        raise FormatError(_nothing_found(inputs, found, formats, forced))
    return found


def _walk(given: str) -> Iterator[str]:
    if given == "-":
        yield given
        return
    if not os.path.lexists(given) or not os.path.exists(given):
        raise FormatError(f"{given}: no such file or directory")
    if not os.path.isdir(given):
        yield given
        return
    for directory, names, files in os.walk(given):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield os.path.join(directory, name)


def _take(found: Inputs, path: str, formats: Mapping[str, Format], named: Format | None) -> None:
    """Look at one file, and put it where it belongs."""
    try:
        real = _on_disk(found, path)
        sniffed = _sniff(path, real, formats)
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{path}: cannot be read ({error})") from error
    if sniffed.format is None and named is not None and sniffed.kind != "empty":
        sniffed = _Sniffed("", named, "whole" if named.unit == "file" else _layout(real))
    if sniffed.format is not None:
        found.files.append(File(path, real, sniffed.format, sniffed.layout))
    elif sniffed.statements:
        found.statements.extend(sniffed.statements)
        found.passed_over["outcomes"] += 1
    else:
        found.passed_over[sniffed.kind] += 1


def _layout(real: str) -> Layout:
    """Tell one JSON value from JSON lines, for a file that does not look like its format."""
    with Path(real).open("rb") as handle:
        lines = [line for line in islice(handle, _SNIFFED_LINES) if line.strip()]
    decoded = [line for line in lines if _decoded(line) is not None]
    return "lines" if decoded else "whole"


def _on_disk(found: Inputs, path: str) -> str:
    """Give a file that can be read at any place: pipes and compressed files are copied."""
    if path == "-":
        spool = found.spool()
        with spool.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        return str(spool)
    if path.endswith(".gz"):
        spool = found.spool()
        with gzip.open(path, "rb") as packed, spool.open("wb") as copy:
            shutil.copyfileobj(packed, copy)
        return str(spool)
    if not Path(path).is_file():  # a pipe, as from <(...)
        spool = found.spool()
        with Path(path).open("rb") as pipe, spool.open("wb") as copy:
            shutil.copyfileobj(pipe, copy)
        return str(spool)
    return path


def _nothing_found(
    inputs: Sequence[str], found: Inputs, formats: Mapping[str, Format], forced: Format | None
) -> str:
    expected = f"format {forced.name}" if forced else f"one of: {', '.join(formats)}"
    what = "; ".join(f"{count} {kind}" for kind, count in sorted(found.passed_over.items()))
    if not inputs:
        return f"no input; give files, directories or - (formats: {', '.join(formats)})"
    if len(inputs) == 1 and inputs[0] != "-" and not os.path.isdir(inputs[0]):
        kind = next(iter(found.passed_over), "empty")
        subject = f"{inputs[0]}: not a trajectory file ({kind})"
    else:
        subject = f"{', '.join(inputs)}: no trajectory file found ({what or 'no files'})"
    advice = "" if forced else "; name the format with --format if you know it"
    return f"{subject}; expected {expected}{advice}"
