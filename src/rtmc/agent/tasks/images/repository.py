"""The git repository in a container: settle its start, take the agent's patch, apply a patch.

An image's working tree is often not its last commit: whoever built it changed tracked files (pinned
a version, removed a configuration) and left files beside them (``.venv``, ``*.egg-info``). The
start is the tree as the image has it, so that a patch holds what the agent did and nothing else.
"""

import re
import shlex
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from rtmc.agent.sandbox import Sandbox
from rtmc.agent.tasks.judge import STEERING
from rtmc.errors import SandboxError, WorkspaceError

__all__ = ["apply_patch", "forget_future", "paths_of", "settle", "take_patch"]

SECONDS = 600.0
"""Wall time of one script here; repacking a large repository takes the longest."""

_BASE = "refs/rtmc/base"
_SCRATCH = ".git/rtmc-scratch"

_GIT = (
    "git() { command git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.quotePath=off "
    '-c commit.gpgSign=false -c user.name=image -c user.email=image@localhost "$@"; }; set -e; '
)

# What is not tracked at the start is the image's, not the agent's.
_SETTLE = f"""
mkdir -p .git/info
git ls-files --others --exclude-standard --directory |
    sed -e 's/[][*?\\\\]/\\\\&/g' -e 's|^|/|' >> .git/info/exclude
git add -u
git diff --cached --quiet HEAD || git commit -q --no-verify -m 'State of the image'
git update-ref {_BASE} HEAD
"""

# One pack may not become larger than the limit of one file.
_FORGET = """
git for-each-ref --no-merged=HEAD --format='delete %(refname)' | git update-ref --no-deref --stdin
rm -rf .git/*_HEAD .git/objects/pack/*.keep .git/objects/info/commit-graph*
git reflog expire --expire=now --all
git -c pack.packSizeLimit=64m repack -a -d -q
git prune --expire=now
"""

_TAKE = f"""
export GIT_INDEX_FILE={_SCRATCH}-index
git read-tree {_BASE}
git add -A --ignore-errors -- . 2>/dev/null || true
git diff --cached --binary --full-index --no-color --no-ext-diff --no-textconv --no-renames \
    --ignore-submodules=all {_BASE} -- . """


def settle(sandbox: Sandbox) -> None:
    """Commit what the image changed, ignore what it left beside, and remember the result.

    Raises:
        SandboxError: git does not do it.
    """
    _must(sandbox, _SETTLE, "its repository cannot be settled")


def forget_future(sandbox: Sandbox) -> None:
    """Take out of the repository every commit that does not precede its start.

    The images hold the project's whole history, the commit that solves the problem included.

    Raises:
        SandboxError: git does not do it.
    """
    _must(sandbox, _FORGET, "the later history cannot be taken out")


def take_patch(sandbox: Sandbox, without: Iterable[str] = ()) -> bytes:
    """Give what the agent changed since ``settle`` as a patch, committed or not.

    New files are in it, unless git ignores them or the image had them at the start.

    Args:
        sandbox: where the agent worked.
        without: paths whose changes are left out.

    Raises:
        WorkspaceError: there is no patch to be had, as when ``.git`` is gone.
    """
    left_out = " ".join(shlex.quote(f":(exclude,top,literal){path}") for path in without)
    try:
        return _capture(sandbox, _TAKE + left_out)
    except WorkspaceError as error:
        raise WorkspaceError(f"git gives no patch of what the agent did: {error}") from error


def apply_patch(
    sandbox: Sandbox, patch: bytes, *, without: Collection[str] = (), steering: Collection[str] = ()
) -> bool:
    """Apply a patch, as far as it may touch what it touches.

    Left out are ``without``, files that steer pytest (``judge.STEERING``), and whatever lies in the
    workspace without being tracked: the interpreter, build products, the tests of an image.

    Args:
        sandbox: with the repository at its start.
        patch: as of ``git diff --binary``.
        without: paths that are left as they are.
        steering: files that steer pytest and may be changed all the same.

    Returns:
        Whether anything was applied.

    Raises:
        WorkspaceError: it does not apply.
    """
    try:
        counts = _capture(sandbox, "git apply --numstat -z -", patch)
        beside = _capture(sandbox, "git ls-files --others --directory -z")
    except WorkspaceError as error:
        raise WorkspaceError(f"the patch cannot be read: {error}") from error
    touched = [_text(entry).split("\t", 2)[2] for entry in counts.split(b"\0") if entry]
    untracked = {_text(entry).rstrip("/") for entry in beside.split(b"\0") if entry}
    left_out = [
        path
        for path in touched
        if path in without
        or (PurePosixPath(path).name in STEERING and path not in steering)
        or not untracked.isdisjoint([path, *map(str, PurePosixPath(path).parents)])
    ]
    if len(left_out) == len(touched):
        return False
    literal = [re.sub(r"([][*?\\])", r"\\\1", path) for path in left_out]
    result = sandbox.exec(
        ["git", "-c", "safe.directory=*", "apply", "--whitespace=nowarn"]
        + [f"--exclude={path}" for path in literal]
        + ["-"],
        stdin=patch,
        timeout=SECONDS,
    )
    if result.exit_code != 0:
        raise WorkspaceError(f"the patch does not apply: {_last(result.output)}")
    return True


def paths_of(patch: str) -> set[str]:
    """Name the files that a patch of git's is about."""
    found = re.findall(r"^diff --git a/(.+) b/(.+)$", patch, re.MULTILINE)
    return {path for pair in found for path in pair}


def _must(sandbox: Sandbox, script: str, failed: str) -> None:
    result = sandbox.exec(["sh", "-c", _GIT + script], timeout=SECONDS)
    if result.exit_code != 0:
        raise SandboxError(f"the image is not as expected: {failed} ({_last(result.output)})")


def _capture(sandbox: Sandbox, script: str, stdin: bytes = b"") -> bytes:
    """Run a script and give all that it prints, whatever its length and bytes."""
    result = sandbox.exec(["sh", "-c", f"{_GIT}{script} > {_SCRATCH}"], stdin, SECONDS)
    if result.exit_code != 0:
        raise WorkspaceError(_last(result.output))
    return sandbox.read(_SCRATCH)


def _last(output: str) -> str:
    return (output.strip().splitlines() or ["it printed nothing"])[-1][:200]


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")
