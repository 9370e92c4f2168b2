"""What every family of programs needs: where a command runs, its operands, a run's identity.

A handler maps (arguments, standard input, place) to effects.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache

from rtmc.signatures.effects import Effect, digest
from rtmc.signatures.paths import normalise
from rtmc.signatures.results import scrub

__all__ = [
    "FILE_NAME",
    "NOOP",
    "Handler",
    "Place",
    "Words",
    "basename",
    "digested",
    "drop_options",
    "in_folder",
    "operands",
    "run_digest",
]

NOOP = Effect("noop")
"""What changes nothing and shows nothing."""


class Place:
    """Where a command runs: current directory and root, both as ``paths.normalise`` wants them."""

    __slots__ = ("cwd", "root")

    def __init__(self, root: str | None = None, cwd: str = "") -> None:
        self.root = root.rstrip("/") or "/" if root else None
        self.cwd = cwd

    def path(self, path: str) -> str:
        """Normalise a path as a command has it."""
        return normalise(path, self.cwd, self.root)

    def folder(self, path: str) -> str:
        """Normalise a directory to the form of ``cwd``."""
        folder = self.path(path)
        return "" if folder == "." else folder


Words = Sequence[str]
Handler = Callable[[Words, str | None, Place], list[Effect]]


def basename(path: str) -> str:
    """Take the last part of a path."""
    return path.rsplit("/", 1)[-1] if "/" in path else path


@cache
def _names(options: str) -> frozenset[str]:
    return frozenset(options.split())


def operands(args: Words, with_value: str = "") -> list[str]:
    """Drop the options; ``with_value`` names those that take the next word along."""
    takes = _names(with_value)
    found: list[str] = []
    skip = False
    for at, word in enumerate(args):
        if skip:
            skip = False
        elif word == "--":
            found += args[at + 1 :]
            break
        elif word[:1] == "-" and word != "-":
            skip = word in takes
        else:
            found.append(word)
    return found


def drop_options(words: Words, with_value: str) -> list[str]:
    """Drop leading options only, with their values."""
    takes = _names(with_value)
    at = 0
    while at < len(words) and words[at][:1] == "-" and words[at] not in ("-m", "-c"):
        at += 2 if words[at] in takes else 1
    return list(words[at:])


FILE_NAME = re.compile(r"\.[A-Za-z]\w{0,4}$")


def digested(
    name: str, args: Words, place: Place, stdin: str | None = None, runs_code: bool = False
) -> Effect:
    """Identify a run by its normalised command."""
    return Effect("execute", digest=run_digest([name, *args], place, stdin), runs_code=runs_code)


def run_digest(argv: Words, place: Place, stdin: str | None = None) -> str:
    """Digest a normalised command: paths from the root, volatile text and quotes removed."""
    words = [place.path(word) if word[:1] == "/" or word[:2] == "./" else word for word in argv]
    text = scrub(" ".join(words))
    if stdin:
        text += "\n" + stdin
    return in_folder(digest(text), place)


def in_folder(identity: str, place: Place) -> str:
    """The same command elsewhere is another one."""
    return digest(f"{place.cwd}$ {identity}") if place.cwd else identity
