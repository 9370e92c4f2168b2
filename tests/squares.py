"""A piece of work for the tests of parallel runs: other processes import it from here."""

import os
import time
from pathlib import Path

import msgspec


class Square(msgspec.Struct, frozen=True):
    of: int
    by: str = "hand"


def square(piece: Square) -> list[int]:
    return [piece.of**2, os.getpid()]


class Nap(msgspec.Struct, frozen=True):
    number: int
    folder: str


def nap(piece: Nap) -> None:
    """Sleep for a minute; leave a file when it begins and one when it is stopped."""
    own = Path(piece.folder) / str(piece.number)
    own.with_suffix(".begun").touch()
    try:
        time.sleep(60)
    finally:
        own.with_suffix(".cleaned").touch()
