"""Write what has become of some files as a unified diff."""

import io
import tarfile
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from hashlib import blake2b

__all__ = ["contents", "difference", "digest"]

LARGEST = 1 << 20
"""Bytes of a file that is compared by lines; of a larger one it is only said that it differs."""

_UNSEEN = {"__pycache__", ".pytest_cache", ".git"}


def contents(workspace: bytes) -> dict[str, bytes | None]:
    """List what is in a workspace but folders: the bytes of files, None for anything else.

    Args:
        workspace: a tar, as ``Sandbox.take`` gives it.
    """
    found: dict[str, bytes | None] = {}
    with tarfile.open(fileobj=io.BytesIO(workspace)) as tar:
        for entry in tar:
            file = tar.extractfile(entry) if entry.isreg() else None
            if not entry.isdir():
                found[entry.name.removeprefix("./")] = file.read() if file else None
    return found


def digest(workspace: bytes) -> bytes:
    """Digest names, modes and contents, but of pytest's cache, which steers no test: 16 bytes.

    Args:
        workspace: a tar, as ``Sandbox.take`` gives it.
    """
    parts = []
    with tarfile.open(fileobj=io.BytesIO(workspace)) as tar:
        for entry in tar:
            if ".pytest_cache" not in entry.name.split("/"):
                file = tar.extractfile(entry) if entry.isreg() else None
                content = blake2b(file.read() if file else b"", digest_size=16).digest()
                parts.append((entry.name, entry.type, entry.mode, entry.linkname, content))
    return blake2b(repr(sorted(parts)).encode(), digest_size=16).digest()


def difference(before: Mapping[str, bytes], after: Mapping[str, bytes | None]) -> bytes:
    """Compare files, in the order of their paths.

    Bytecode, caches and links are left out, as they are of ``Sandbox.state``.

    Args:
        before: contents by path.
        after: what has become of them, as ``contents`` gives it.
    """
    kept = {path: new for path, new in after.items() if not _UNSEEN & {*path.split("/")}}
    parts: list[bytes] = []
    for path in sorted({*before, *kept}):
        old, new = before.get(path), kept.get(path)
        if old != new:
            parts += _one(path, old, new)
    return b"".join(parts)


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
