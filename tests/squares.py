"""A piece of work for the tests of parallel runs: other processes import it from here."""

import os
import time
from pathlib import Path

import msgspec

from rtmc.atomic import open_atomic


class Square(msgspec.Struct, frozen=True):
    of: int
    by: str = "hand"


def square(piece: Square) -> list[int]:
    return [piece.of**2, os.getpid()]


class Nap(msgspec.Struct, frozen=True):
    number: int
    folder: str


def nap(piece: Nap) -> None:
    """Sleep for a minute; leave a file when it begins, with who does it, and one when stopped."""
    own = Path(piece.folder) / str(piece.number)
    with open_atomic(own.with_suffix(".begun")) as file:
        file.write(b"%d" % os.getpid())
    try:
        time.sleep(60)
    finally:
        own.with_suffix(".cleaned").touch()
