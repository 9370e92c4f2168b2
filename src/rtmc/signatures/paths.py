"""Reduce the ways to write a path to one: relative to the repository's root.

``/testbed/./src//a.py``, ``src/a.py`` and, after ``cd src``, ``a.py`` are all ``src/a.py``. A path
outside the root stays absolute. The current directory is kept in the same form: ``""`` is the
root.
"""

import posixpath
import re
from functools import lru_cache

__all__ = ["normalise", "under"]

# Where the harnesses put a repository, if the trajectory does not say.
_ROOTS = re.compile(
    r"/(?:testbed|repo|app|workspace/[^/]+__[^/]+|[A-Za-z0-9.-][\w.-]*?__[\w.-]+)(?=/|$)"
)
_TEMPORARY = re.compile(r"/tmp/tmp[.\w-]{4,}")


@lru_cache(maxsize=65536)
def normalise(path: str, cwd: str = "", root: str | None = None) -> str:
    """Normalise a path as written in a command.

    Args:
        path: as written, without quotes. ``$X/…`` and ``~/…`` cannot be resolved and stay.
        cwd: the current directory in normalised form; ``""`` is the root.
        root: absolute path of the root; None = where harnesses usually put it.

    Returns:
        The path below the root, ``.`` for the root itself, else an absolute path. The random part
        of a temporary path is dropped.
    """
    if path[:1] in ("$", "~", "`"):
        return path.rstrip("/") or path
    if path[:1] != "/":
        if not cwd:
            path = posixpath.normpath(path) if path else "."
            if path.startswith("..") and root:
                path = posixpath.normpath(f"{root}/{path}")
            return _drop_temporary(path) if path[:1] == "/" else path
        if cwd[:1] in ("$", "~"):
            return posixpath.normpath(f"{cwd}/{path}")
        path = f"{cwd}/{path}"
        if path[:1] != "/":
            return normalise(posixpath.normpath(path), "", root)
    path = posixpath.normpath(path)
    if path.startswith("//"):
        path = path[1:]
    if root is not None:
        if path == root:
            return "."
        prefix = root if root.endswith("/") else root + "/"
        return path[len(prefix) :] if path.startswith(prefix) else _drop_temporary(path)
    found = _ROOTS.match(path)
    if found:
        return path[found.end() + 1 :] or "."
    return _drop_temporary(path)


def _drop_temporary(path: str) -> str:
    return _TEMPORARY.sub("/tmp/tmp*", path) if path.startswith("/tmp/tmp") else path


def under(path: str, folder: str) -> bool:
    """Tell whether a path is the folder or lies in it; ``.`` holds all below the root."""
    if folder == ".":
        return path[:1] != "/"
    return path == folder or path.startswith(folder.rstrip("/") + "/")
