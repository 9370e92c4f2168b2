"""Tell from a file's first bytes and values what it is: the format, and how records lie in it.

A file is JSONL, one JSON value, a JSON array of records, or (for formats that say so) anything.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from rtmc.formats.base import REFUSALS, Format, why
from rtmc.formats.outcomes import Statement, statements_in

__all__ = ["BOM", "OUTCOMES", "Layout", "Sniffed", "detect_format", "layout_of", "sniff"]

BOM = b"\xef\xbb\xbf"
OUTCOMES = "outcomes"
_HEAD_BYTES = 4096
_SNIFFED_LINES = 50
"""How many lines may be unreadable or of no format before a file is given up."""

Layout = Literal["lines", "array", "whole"]


def detect_format(value: Any, path: str, formats: Mapping[str, Format]) -> Format | None:
    """Find the format of a decoded JSON value (or the first bytes of a file that is not JSON)."""
    return next((f for f in formats.values() if f.detect(value, path)), None)


class Sniffed(NamedTuple):
    """What a file is: of a format, else what ``kind`` says (``OUTCOMES`` with its statements)."""

    kind: str = ""
    format: Format | None = None
    layout: Layout = "whole"
    statements: Sequence[Statement] = ()


def sniff(path: str, real: str, formats: Mapping[str, Format]) -> Sniffed:
    """Tell what the file named ``path`` is, whose bytes are at ``real``."""
    with Path(real).open("rb") as handle:
        head = handle.read(_HEAD_BYTES)
        start = head.removeprefix(BOM).lstrip()
        if not start and len(head) < _HEAD_BYTES:
            return Sniffed("empty")
        if start[:1] not in (b"{", b"["):
            found = detect_format(head, path, formats)
            return Sniffed(f"not JSON ({Path(path).suffix or 'no suffix'})", found)
        handle.seek(0)
        lines = (line.removeprefix(BOM) for line in handle if line.strip(BOM + b" \t\r\n"))
        first = next(lines)
        second = next(lines, None)
        try:
            value = msgspec.json.decode(first)
        except REFUSALS as error:
            broken = why(error, first)
            if second is not None and "truncated" in broken:  # one value over several lines
                whole = _decoded(Path(real).read_bytes().removeprefix(BOM))
                if whole is not None:
                    return _value(whole, path, formats)
        else:
            broken = ""
            if second is None:
                return _value(value, path, formats)
        rest = [second] if second is not None else []
        for line in chain([first], rest, islice(lines, _SNIFFED_LINES)):
            value = _decoded(line)
            found = None if value is None else detect_format(value, path, formats)
            if found is not None:
                return Sniffed("", found, "whole" if found.unit == "file" else "lines")
    return Sniffed(f"broken JSON ({broken})" if broken else "JSON of no known format")


def _decoded(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except REFUSALS:
        return None


def _value(value: Any, path: str, formats: Mapping[str, Format]) -> Sniffed:
    """Tell what a file is that holds one JSON value."""
    found = detect_format(value, path, formats)
    if found is not None:
        return Sniffed("", found, "whole")
    if isinstance(value, list):
        for item in value[:_SNIFFED_LINES]:
            found = detect_format(item, path, formats)
            if found is not None and found.unit == "line":
                return Sniffed("", found, "array")
    statements = statements_in(value, path)
    if statements is not None:
        return Sniffed(OUTCOMES, statements=statements)
    return Sniffed("JSON of no known format")


def layout_of(real: str) -> Layout:
    """Tell one JSON value from JSON lines, for a file that does not look like its format."""
    with Path(real).open("rb") as handle:
        lines = [line for line in islice(handle, _SNIFFED_LINES) if line.strip()]
    decoded = [line for line in lines if _decoded(line) is not None]
    return "lines" if decoded else "whole"
