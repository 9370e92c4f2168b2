"""A file appears whole, or not at all."""

import io
from pathlib import Path
from typing import Any

import pytest

from rtmc.atomic import open_atomic
from rtmc.errors import OutputError


def test_it_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with open_atomic(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("moment", ["open", "write"])
def test_an_interrupt_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Ctrl-C just after the file beside is there, or while it is written."""
    path = tmp_path / "out"
    path.write_bytes(b"old")
    opened = io.open

    def interrupted(*args: Any, **options: Any) -> Any:
        opened(*args, **options).close()
        raise KeyboardInterrupt

    if moment == "open":
        monkeypatch.setattr(io, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_half(path)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"


def write_half(path: Path) -> None:
    with open_atomic(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt


def test_a_place_that_cannot_be_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "none" / "out", tmp_path / "file" / "out"):
        with (
            pytest.raises(OutputError, match=r"cannot write .*out: .*; choose another -o$"),
            open_atomic(place),
        ):
            pass
    with pytest.raises(OutputError, match="is a folder; name a file"), open_atomic(tmp_path):
        pass
