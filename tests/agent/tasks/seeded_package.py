"""A small package with a suite of its own, as an sdist that pip finds in a folder."""

import hashlib
import io
import tarfile

from rtmc.agent.tasks.seeded import Package

SOURCE = '''\
"""Small arithmetic."""

LIMIT = 3


def clamp(value, low=0, high=10):
    """Keep a value between two others."""
    if value < low:
        return low
    if value > high:
        return high
    return value


def average(numbers):
    """Give the mean."""
    if not numbers:
        raise ValueError("no numbers")
    total = 0
    for number in numbers:
        total += number
    return total / len(numbers)


def split(text, mark=","):
    """Split a text, and strip its parts."""
    parts = []
    for part in text.split(mark):
        part = part.strip()
        parts.append(part)
    return parts


def pad(text, width, mark=" "):
    """Fill a text up from the left."""
    return mark * (width - len(text)) + text


def _first(items, limit):
    return items[0:limit]


def first(items):
    """Give the first few."""
    return _first(items, LIMIT)
'''
TESTS = """\
import time
import unittest

import pytest

from smallsum import average, clamp, first, pad, split

CASES = [(5, 5), (-1, 0), (11, 10), (10, 10), (0, 0)]


@pytest.mark.parametrize(("value", "expected"), CASES)
def test_clamp(value, expected):
    assert clamp(value) == expected


def test_clamp_to_others():
    assert clamp(5, 6, 8) == 6
    assert clamp(9, 6, 8) == 8


def test_average():
    numbers = [1, 2, 6]
    assert average(numbers) == 3


def test_average_of_nothing():
    with pytest.raises(ValueError):
        average([])


class TestWords(unittest.TestCase):
    def setUp(self):
        self.text = " a, b"

    def test_split(self):
        self.assertEqual(split(self.text), ["a", "b"])

    def test_pad(self):
        self.assertEqual(pad("x", 3), "  x")

    def test_pad_with_a_mark(self):
        self.assertEqual(pad("x", 3, "-"), "--x")


def test_first():
    assert first([1, 2, 3, 4]) == [1, 2, 3]


def test_flaky(tmp_path_factory):
    import os
    import pathlib

    seen = pathlib.Path("/tmp/seen") if os.access("/tmp", os.W_OK) else None
    assert not seen.exists()
    seen.touch()


def test_slow():
    until = time.process_time() + 1.2
    while time.process_time() < until:
        pass


def test_failing():
    assert clamp(1) == 2
"""


def write_sdist(folder, tests=TESTS):
    """Write the sdist; give the package."""
    files = {
        "PKG-INFO": "Metadata-Version: 2.1\nName: smallsum\nVersion: 1.0\n",
        "setup.py": "raise SystemExit('this must not run')\n",
        "src/smallsum/__init__.py": SOURCE,
        "tests/test_smallsum.py": tests,
        "LICENSE": "free\n",
    }
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for path, text in files.items():
            member = tarfile.TarInfo(f"smallsum-1.0/{path}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    (folder / "smallsum-1.0.tar.gz").write_bytes(data.getvalue())
    return Package(
        name="smallsum",
        version="1.0",
        sha256=hashlib.sha256(data.getvalue()).hexdigest(),
        source="src/smallsum",
        licence="CC0-1.0",
    )
