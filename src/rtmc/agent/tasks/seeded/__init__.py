"""Seeded problems: real packages with one injected bug each, and their own tests as the judge."""

from rtmc.agent.tasks.seeded.build import Settings, Summary, build
from rtmc.agent.tasks.seeded.packages import PACKAGES, Package, choose, installed
from rtmc.agent.tasks.seeded.store import read_problems
from rtmc.agent.tasks.seeded.task import SeededTask, Split, bug_of, fix_of

__all__ = [
    "PACKAGES",
    "Package",
    "SeededTask",
    "Settings",
    "Split",
    "Summary",
    "bug_of",
    "build",
    "choose",
    "fix_of",
    "installed",
    "read_problems",
]
