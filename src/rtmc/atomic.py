"""Write a file whole or not at all."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rtmc.errors import OutputError

__all__ = ["open_atomic"]


@contextmanager
def open_atomic(path: str | Path) -> Generator[IO[bytes]]:
    """Open a file for writing that appears at the end, whole, if nothing goes wrong.

    It is written beside its place and moved there; through a link it is the link's target that is
    replaced. What is no plain file (a pipe, a device) is written to directly.

    Raises:
        OutputError: the place cannot be written to.
    """
    path = Path(path)
    try:
        target = path.resolve()
        special = target.exists() and not target.is_file()
        is_folder = target.is_dir()
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}; choose another -o") from error
    if is_folder:
        raise OutputError(f"{path} is a folder; name a file, as in -o {path / 'credit.jsonl'}")
    beside = target if special else target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:  # from before the file is there, so that Ctrl-C at any moment leaves none
        try:
            file = beside.open("wb")
        except OSError as error:
            reason = f"{error.strerror}; choose another -o"
            raise OutputError(f"cannot write {path}: {reason}") from error
        with file:
            yield file
            file.flush()
            if not special:
                os.fsync(file.fileno())
        if not special:
            beside.replace(target)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if not special:
            with suppress(OSError):
                beside.unlink()
