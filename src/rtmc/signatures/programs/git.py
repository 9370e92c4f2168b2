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
_NAMES_ONLY = frozenset(("branch", "tag", "config"))  # with an operand they write
_READS_IN = {"stash": ("list", "show"), "worktree": ("list",), "submodule": ("status",)}
_WRITES_IN = {
    "branch": ("-d", "-D", "-m", "-M"),
    "tag": ("-d", "-a", "-m"),
    "remote": ("add", "remove", "rm", "set-url"),
    "reflog": ("expire", "delete"),
}


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
    if _only_reads(command, rest):
        paths = [place.path(p) for p in operands(rest) if "/" in p or FILE_NAME.search(p)]
        return shown(" ".join(["git", command, *paths]), " ".join(rest))
    if command == "add":
        return [NOOP]
    return [digested("git", words, place)]


def _only_reads(command: str, args: Words) -> bool:
    """Tell whether a git command changes nothing."""
    if command in _READS_IN:
        return args[:1] != [] and args[0] in _READS_IN[command]
    if command not in _GIT_READS or any(word in args for word in _WRITES_IN.get(command, ())):
        return False
    if command in _NAMES_ONLY and not any(
        w in ("-l", "--list", "--get", "--contains") for w in args
    ):
        return len(operands(args)) <= (command == "config")
    return True


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
