"""Say what was read from some inputs, and what was not."""

from dataclasses import dataclass, field
from typing import NamedTuple

from rtmc.rollouts import Source

__all__ = ["ReadReport", "Skipped", "count"]


class Skipped(NamedTuple):
    """A record (or a whole file, then its first line) that was not read, and why."""

    source: Source
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


@dataclass
class ReadReport:
    """What was read, and what was not.

    Attributes:
        files: trajectory files by format.
        outcome_files: files among the inputs that state outcomes.
        passed_over: other files by kind.
        records: records that were read; each is a rollout or joined to one, so that this is
            ``rollouts + joined``. Skipped ones do not count.
        rollouts: rollouts given out so far.
        joined: records that were joined to another one of the same rollout.
        skipped: records, and files found in a directory, that could not be read.
        unmatched_outcomes: ids of ``--outcomes`` that no rollout has.
        warnings: what else a person should know, one sentence each.
    """

    files: dict[str, int] = field(default_factory=dict)
    outcome_files: int = 0
    passed_over: dict[str, int] = field(default_factory=dict)
    records: int = 0
    rollouts: int = 0
    joined: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    unmatched_outcomes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def warn(self, text: str) -> None:
        """Add a warning, unless an earlier reading gave it."""
        if text not in self.warnings:
            self.warnings.append(text)


def count(number: int, noun: str) -> str:
    """Write a number and its noun: ``1 rollout``, ``2 rollouts``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
