"""Say what a trajectory format is, and share what all readers need.

A format is one module with one ``Format`` value; ``rtmc.formats.FORMATS`` names them all. A reader
gets the bytes of one record (a line, an element of a JSON array, or a whole file) and gives back
rollouts. It raises ``FormatError`` (or lets msgspec's errors through) where the record is not what
the format promises; who calls it turns that into a counted ``Skipped`` record.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

import msgspec

from rtmc.errors import FormatError
from rtmc.rollouts import Rollout, Source

__all__ = [
    "REFUSALS",
    "EqualIds",
    "Format",
    "Identity",
    "as_finite",
    "content_id",
    "decode_arguments",
    "first_text",
    "is_bare_list",
    "outcome_of",
    "problem_of_path",
    "rollout_of_path",
    "why",
]

EqualIds = Literal["samples", "logs", "attempts"]
"""What it means that two records have the same problem and rollout id.

``samples``: the ids are the data's own, so both are parts of one rollout and are joined.
``logs``: the id names a conversation; a log that begins with another one replaces it.
``attempts``: the id was derived (from a path, a run name, the content); two rollouts.
"""

REFUSALS = (FormatError, msgspec.MsgspecError, UnicodeError, RecursionError)
"""What reading a bad record raises; anything else is a bug."""


class Identity(NamedTuple):
    """The ids of one rollout, as the indexing pass needs them."""

    problem_id: str
    rollout_id: str
    model: str | None = None
    equal_ids: EqualIds = "attempts"


@dataclass(frozen=True)
class Format:
    """One trajectory format.

    Attributes:
        name: the key in ``FORMATS``, for ``--format``.
        title: the format in words.
        needs: what a file must hold, and where the outcome comes from.
        ids: how problem and rollout id are derived.
        unit: ``line`` if one JSON value is one rollout, so that a file may hold many (JSONL, a
            JSON array, or a single value); ``file`` if only the whole file makes sense.
        detect: tells from a decoded JSON value near the start of a file (from the first bytes
            where the file is not JSON) and the file's path whether the file is of this format.
        read: the rollouts in the bytes of one record.
        identify: their ids only, in the same order and cheaper than ``read``; without it the
            record is read in full.
        equal_ids: see ``EqualIds``; for formats without ``identify``.
    """

    name: str
    title: str
    needs: str
    ids: str
    unit: Literal["line", "file"]
    detect: Callable[[Any, str], bool]
    read: Callable[[bytes, Source], list[Rollout]]
    identify: Callable[[bytes, Source], list[Identity]] | None = None
    equal_ids: EqualIds = "attempts"

    def identities(self, raw: bytes, source: Source) -> list[Identity]:
        """Give the ids of the rollouts that ``read`` would give."""
        if self.identify is not None:
            return self.identify(raw, source)
        return [
            Identity(r.problem_id, r.rollout_id, r.model, self.equal_ids)
            for r in self.read(raw, source)
        ]


# --- ids -----------------------------------------------------------------------------------------

_SUFFIXES = (
    ".gz", ".traj.json", ".trajectory.json", ".traj.jsonl", ".traj", ".jsonl", ".ndjson", ".json",
)  # fmt: skip

_NAMES_OF_NOTHING = frozenset(
    (
        "agent", "chat", "completion", "completions", "conversation", "event", "events", "history",
        "llm-logs", "log", "logs", "messages", "output", "outputs", "result", "rollout",
        "rollouts", "session", "traj", "trajectory", "transcript",
    )
)  # fmt: skip


def _bare(name: str) -> str:
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def problem_of_path(path: str) -> str:
    """Name the problem after a file: its name without suffixes.

    A name that says nothing (``trajectory.json``, ``events.jsonl`` …) gives way to the name of
    the directory above.
    """
    parts = PurePath(path).parts
    names = [_bare(parts[-1]), *reversed(parts[:-1])] if parts else [path]
    for name in names:
        if name.lower() not in _NAMES_OF_NOTHING and name.strip("/\\."):
            return name
    return names[0]


def rollout_of_path(path: str) -> str:
    """Name a rollout after its file: the path as given, without suffixes.

    Runs of one problem lie in different directories under equal file names, so the directories
    are part of the id.
    """
    pure = PurePath(path)
    return str(pure.with_name(_bare(pure.name) or pure.name)) if pure.name else path


def content_id(raw: bytes) -> str:
    """Name a record after its bytes, so that the id does not depend on where the record lies."""
    return hashlib.blake2b(raw.strip(), digest_size=6).hexdigest()


_EMPTY_LIST = re.compile(rb"\s*\[\s*\]")


def is_bare_list(raw: bytes) -> bool:
    """Tell whether a record is a bare list (of messages or events), not an object.

    Raises:
        FormatError: the list is empty, so that there is no rollout in it.
    """
    if raw.lstrip()[:1] != b"[":
        return False
    if _EMPTY_LIST.match(raw):
        raise FormatError(
            "an empty list; expected one rollout, as an object or a list of its turns"
        )
    return True


def first_text(*values: Any) -> str | None:
    """Give the first value that can be an id or a name: a text that is not empty, or an integer."""
    for value in values:
        if isinstance(value, str):
            if value.strip():
                return value
        elif isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


# --- outcomes and arguments ----------------------------------------------------------------------


def as_finite(value: float) -> float | None:
    """Give a number as a float; None if it is NaN, infinite, or an integer too large for one."""
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


def outcome_of(reward: Any, resolved: Any = None) -> tuple[float | None, bool | None]:
    """Check an outcome as a record states it; a missing reward follows from ``resolved``.

    Raises:
        FormatError: either is neither a finite number, true, false nor null.
    """
    for name, value in (("reward", reward), ("resolved", resolved)):
        if value is not None and not isinstance(value, int | float):
            raise FormatError(f"{name} is {value!r}; expected a number, true, false or null")
        if value is not None and as_finite(value) is None:
            raise FormatError(f"{name} is not finite; expected a number, true, false or null")
    if isinstance(reward, bool) and resolved is None:
        resolved = reward
    passed = None if resolved is None else bool(resolved)
    if reward is None:
        return (None, None) if passed is None else (float(passed), passed)
    return float(reward), passed


_decode = msgspec.json.Decoder().decode


def decode_arguments(value: Any) -> dict[str, Any] | str:
    """Decode a call's arguments: an object, or the text of one.

    Whatever is no object (invalid JSON, null, a list, a number) stays as its text, which marks
    the call as malformed and keeps the step.
    """
    if isinstance(value, dict):
        return value
    if not isinstance(value, str):
        return "" if value is None else msgspec.json.encode(value).decode()
    try:
        decoded = _decode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        # OpenAI sends an empty text for a tool without parameters
        return value if value.strip() else {}
    return decoded if isinstance(decoded, dict) else value


_AT_BYTE = re.compile(r"\(byte (\d+)\)$")


def why(error: BaseException, raw: bytes = b"") -> str:
    """Put an error of ``REFUSALS`` into one line for the person who has to mend the record.

    ``raw`` are the bytes that were decoded, for the mistake that writers in Python make often.
    """
    if isinstance(error, RecursionError):
        return "JSON is nested too deeply"
    if isinstance(error, UnicodeError):
        return f"not valid UTF-8 ({error})"
    at = _AT_BYTE.search(str(error))
    if at and raw.startswith((b"NaN", b"Infinity"), int(at.group(1))):
        return f"{error}: NaN and Infinity are no JSON; write null for what is not known"
    return str(error)
