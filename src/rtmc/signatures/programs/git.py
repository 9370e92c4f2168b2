"""git: what it reads is a view, what it restores a restore, the rest a run."""

import re

from rtmc.signatures.effects import Effect
from rtmc.signatures.programs.base import FILE_NAME, NOOP, Place, Words, digested, operands
from rtmc.signatures.programs.changes import move, patch, remove, restore
from rtmc.signatures.programs.searches import grep
from rtmc.signatures.programs.views import shown

_GIT_READS = frozenset(
    "diff log show status blame branch remote ls-files ls-tree reflog describe rev-parse config "
    "shortlog cat-file tag help whatchanged rev-list name-rev var version count-objects".split()
)
_GIT_WRITES = {"branch": ("-d", "-D", "-m", "-M"), "tag": ("-d", "-a", "-m"), "remote": ("add",)}


def git(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Sort git commands: read, restore, search, change, or run."""
    words = list(args)
    while words and words[0][:1] == "-":
        if words[0] == "-C" and len(words) > 1:
            place = Place(place.root, place.folder(words[1]))
        words = words[2:] if words[0] in ("-C", "-c", "--git-dir", "--work-tree") else words[1:]
    if not words:
        return shown("git", " ".join(args))
    command, rest = words[0], words[1:]
    if command == "grep":
        return grep(rest, stdin, place)
    if command in ("rm", "mv"):
        return (remove if command == "rm" else move)(rest, stdin, place)
    if command == "apply" or command == "am":
        return patch(rest, stdin, place)
    if command == "restore" and "--staged" not in rest:
        return restore(operands(rest, "-s --source"), place)
    if command == "checkout" and (paths := _checked_out(rest)):
        return restore(paths, place)
    if command == "reset" and "--hard" in rest:
        return [Effect("restore", ".")]
    writes = command == "config" and len(operands(rest)) > 1
    writes = writes or any(word in rest for word in _GIT_WRITES.get(command, ()))
    if command in _GIT_READS and not writes:
        paths = [place.path(p) for p in operands(rest) if "/" in p or FILE_NAME.search(p)]
        return shown(" ".join(["git", command, *paths]), " ".join(rest))
    if command == "add":
        return [NOOP]
    return [digested("git", words, place)]


def _checked_out(args: Words) -> list[str]:
    """Find the files that ``git checkout`` restores; none where it switches branches."""
    if "--" in args:
        return list(args[list(args).index("--") + 1 :])
    if any(word in ("-b", "-B", "--orphan", "-t") for word in args):
        return []
    words = operands(args)
    if words[:1] == ["HEAD"] or (words and re.fullmatch(r"[0-9a-f]{7,40}|HEAD[~^]\d*", words[0])):
        words = words[1:]
    if words == ["."] or (words and all(FILE_NAME.search(word) for word in words)):
        return words
    return []
