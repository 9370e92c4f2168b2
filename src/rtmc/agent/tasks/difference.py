"""Write what has become of some files as a unified diff."""

import io
import tarfile
from collections.abc import Iterator, Mapping
from difflib import unified_diff

__all__ = ["difference"]

LARGEST = 1 << 20
"""Bytes of a file that is compared by lines; of a larger one it is only said that it differs."""

_UNSEEN = ("__pycache__", ".pytest_cache", ".git")


def difference(before: Mapping[str, bytes], workspace: bytes) -> bytes:
    """Compare files with a workspace, in the order of their paths.

    Bytecode, caches and links are left out, as they are of ``Sandbox.state``.

    Args:
        before: contents by path.
        workspace: a tar, as ``Sandbox.take`` gives it.
    """
    after = dict(_files(workspace))
    parts: list[bytes] = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old != new:
            parts += _one(path, old, new)
    return b"".join(parts)


def _files(workspace: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(workspace)) as tar:
        for entry in tar:
            path = entry.name.removeprefix("./")
            file = tar.extractfile(entry) if entry.isreg() else None
            if file and not any(part in _UNSEEN for part in path.split("/")):
                yield path, file.read()


def _one(path: str, old: bytes | None, new: bytes | None) -> Iterator[bytes]:
    """Write the part of one file, as git does."""
    name = path.encode(errors="surrogateescape")
    yield b"diff --git a/%s b/%s\n" % (name, name)
    if old is None:
        yield b"new file mode 100644\n"
    if new is None:
        yield b"deleted file mode 100644\n"
    texts = [data or b"" for data in (old, new)]
    if any(len(text) > LARGEST or b"\0" in text for text in texts):
        yield b"Binary files a/%s and b/%s differ\n" % (name, name)
        return
    # One character a byte: lines are compared and written as they are, whatever their encoding.
    left, right = (io.StringIO(text.decode("latin-1"), newline="\n").readlines() for text in texts)
    shown = name.decode("latin-1")
    head = "/dev/null" if old is None else f"a/{shown}"
    foot = "/dev/null" if new is None else f"b/{shown}"
    for line in unified_diff(left, right, head, foot):
        yield line.encode("latin-1")
        if not line.endswith("\n"):
            yield b"\n\\ No newline at end of file\n"
