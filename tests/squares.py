"""A piece of work for the tests of parallel runs: other processes import it from here."""

import os

import msgspec


class Square(msgspec.Struct, frozen=True):
    of: int
    by: str = "hand"


def square(piece: Square) -> list[int]:
    return [piece.of**2, os.getpid()]
