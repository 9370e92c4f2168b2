"""Runs of ``rtmc train`` as their folders tell of them: settings and curves."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rtmc.batch import Floats
from rtmc.errors import FormatError

__all__ = [
    "METRICS",
    "SETTINGS",
    "Run",
    "flat",
    "is_run",
    "json_object",
    "labelled",
    "read_metrics",
    "read_run",
]

SETTINGS, METRICS = "config.json", "metrics.jsonl"
_SIDE_ISSUES = ("seed", "about", "output.")
"""Settings that make no other kind of run."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    Attributes:
        name: of its folder.
        settings: by dotted key.
        curves: by metric, steps and values, of equal length.
    """

    name: str
    settings: dict[str, Any]
    curves: dict[str, tuple[Floats, Floats]]


def is_run(path: str) -> bool:
    """Tell whether a path is the folder of a run."""
    return (Path(path) / SETTINGS).is_file() and (Path(path) / METRICS).is_file()


def read_run(path: str) -> Run:
    """Read the folder of a run, which may still be going on.

    Raises:
        FormatError: a line is no JSON object with a step; there is no step in it.
    """
    folder = Path(path)
    settings = json_object(folder / SETTINGS, (folder / SETTINGS).read_bytes())
    found: dict[str, dict[int, float]] = {}
    for row in read_metrics(folder / METRICS):
        for name, value in row.items():
            if name != "step" and isinstance(value, int | float):
                found.setdefault(name, {})[row["step"]] = value
    if not found:
        raise FormatError(f"{folder / METRICS}: no step in it yet; wait for the first")
    return Run(
        folder.resolve().name,
        flat(settings),
        {
            name: (np.array(list(of), float), np.array(list(of.values()), float))
            for name, of in found.items()
        },
    )


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Read the lines of metrics; one that is cut off at the end is left out.

    Raises:
        FormatError: a line is no JSON object with a step.
    """
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if line.endswith(b"\n"):
            rows.append(json_object(f"{path}:{number}", line))
            if not isinstance(rows[-1].get("step"), int):
                raise FormatError(f"{path}:{number}: expected a step, a whole number")
    return rows


def json_object(where: object, data: bytes) -> dict[str, Any]:
    """Decode a JSON object.

    Raises:
        FormatError: it is none.
    """
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{where}: expected a JSON object ({error})") from error


def flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Name the values of nested tables by dotted keys."""
    named: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict) and value:
            named |= flat(value, f"{prefix}{key}.")
        else:
            named[f"{prefix}{key}"] = value
    return named


def labelled(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Put runs together that differ by seed alone; name each kind by the settings that differ.

    The estimator goes by its name, other settings by the last part of their key and the value.
    """
    keys = dict.fromkeys(key for run in runs for key in run.settings)
    differing = [
        key
        for key in keys
        if not key.startswith(_SIDE_ISSUES) and len({_value(run, key) for run in runs}) > 1
    ]
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        words = [
            str(run.settings.get(key))
            if key == "credit.estimator"
            else f"{key.rpartition('.')[2].replace('_', ' ')} {_value(run, key)}"
            for key in differing
            if key in run.settings
        ]
        kinds.setdefault(", ".join(words), []).append(run)
    if "" in kinds:
        same = kinds.pop("")
        name = same[0].name if len(same) == 1 else "the others" if kinds else "all runs"
        kinds = {name: same} | kinds
    return kinds


def _value(run: Run, key: str) -> str:
    value = run.settings.get(key)
    return value if isinstance(value, str) else json.dumps(value)
