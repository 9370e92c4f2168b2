"""Read trajectories of many agents into groups of rollouts.

    reader = read_groups(["runs/"])            # files, directories or "-"
    for group in reader: ...                   # rtmc.rollouts.Group, one problem each
    reader.report                              # what was read, passed over and skipped

One module reads one format. To add a format, write such a module and add its line to ``FORMATS``;
the order is the order in which formats are tried, the most particular first.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from rtmc.formats import sniff
from rtmc.formats.base import Format
from rtmc.formats.chat import CHAT
from rtmc.formats.groups import GroupBy, GroupReader
from rtmc.formats.mini_swe_agent import MINI_SWE_AGENT
from rtmc.formats.openhands_completion import OPENHANDS_COMPLETION
from rtmc.formats.openhands_events import OPENHANDS_EVENTS
from rtmc.formats.openhands_sdk import OPENHANDS_SDK
from rtmc.formats.own import OWN
from rtmc.formats.r2e_gym import R2E_GYM
from rtmc.formats.read_report import ReadReport, Skipped
from rtmc.formats.swe_agent import SWE_AGENT
from rtmc.formats.swe_smith import SWE_SMITH_XML
from rtmc.rollouts import Group

__all__ = [
    "FORMATS",
    "Format",
    "GroupReader",
    "ReadReport",
    "Skipped",
    "detect_format",
    "read",
    "read_groups",
]

FORMATS: dict[str, Format] = {
    "rtmc": OWN,
    "mini-swe-agent": MINI_SWE_AGENT,
    "swe-agent": SWE_AGENT,
    "openhands-completion": OPENHANDS_COMPLETION,
    "openhands-events": OPENHANDS_EVENTS,
    "openhands-sdk": OPENHANDS_SDK,
    "r2e-gym": R2E_GYM,
    "swe-smith-xml": SWE_SMITH_XML,
    "chat": CHAT,
}

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def detect_format(value: Any, path: str = "") -> str | None:
    """Name the format of a decoded JSON value from a file, or None."""
    found = sniff.detect_format(value, path, FORMATS)
    return found.name if found else None


def read_groups(
    inputs: Paths,
    *,
    format: str | None = None,
    outcomes: Paths = (),
    group_by: GroupBy = "problem",
    grouped: bool = False,
) -> GroupReader:
    """Open the inputs and index their rollouts by problem.

    Args:
        inputs: files, directories, or ``-`` for the standard input.
        format: a name in ``FORMATS``, where the files do not tell it themselves.
        outcomes: files or directories with outcomes by id; they win over all others.
        group_by: ``problem,model`` keeps the models of one problem apart; the groups then have
            equal ``problem_id``.
        grouped: promise that the rows of a problem are adjacent; the input is then read once,
            without an index, and the reader has no length.

    Raises:
        FormatError: an input does not exist, or no file of any known format was found; while
            iterating with ``grouped``, a problem appears again after its rows ended.
        OptionError: an unknown format or grouping.
    """
    return GroupReader(
        _paths(inputs),
        FORMATS,
        format=format,
        outcomes=_paths(outcomes),
        group_by=group_by,
        grouped=grouped,
    )


def read(
    inputs: Paths,
    *,
    format: str | None = None,
    outcomes: Paths = (),
    group_by: GroupBy = "problem",
    grouped: bool = False,
) -> list[Group]:
    """Read all groups at once; the arguments are those of ``read_groups``."""
    return list(
        read_groups(inputs, format=format, outcomes=outcomes, group_by=group_by, grouped=grouped)
    )


def _paths(paths: Paths) -> Sequence[str]:
    if isinstance(paths, str | os.PathLike):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]
