"""Programs that search: in files, for files, for programs."""

import re

from rtmc.signatures.effects import Effect
from rtmc.signatures.programs.base import Place, Words, operands

PATH_LOOKUP = "$PATH"
"""Target of a search for a program."""

_GREP_VALUES = (
    "-e -f -A -B -C -m -d -D -g -t -T --include --exclude --exclude-dir --type --glob "
    "--max-count --color --context --regexp --file --max-depth -j -M -E_"
)


_GIVES_PATTERN = re.compile(r"-[a-zA-Z]*[ef]$|--regexp|--file|--files")


def grep(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Search the named paths, or the current folder."""
    words = operands(args, _GREP_VALUES)
    given = any(map(_GIVES_PATTERN.match, args))
    paths = words if given else words[1:]
    detail = " ".join(args)
    return [Effect("search", place.path(p), detail=detail) for p in paths or ["."]]


_FIND_GLOBAL = frozenset(("-H", "-L", "-P"))
_FIND_NAMES = ("-name", "-iname", "-path", "-wholename", "-regex")


def find_parts(args: Words) -> tuple[list[str], list[str], str, list[str]]:
    """Take apart the arguments of find: folders, expression, name pattern, command of -exec."""
    folders: list[str] = []
    at = 0
    while at < len(args) and (args[at] in _FIND_GLOBAL or args[at][:1] not in ("-", "(", "!")):
        if args[at] not in _FIND_GLOBAL:
            folders.append(args[at])
        at += 1
    expression = list(args[at:])
    name = next((expression[i + 1] for i, w in enumerate(expression[:-1]) if w in _FIND_NAMES), "")
    command: list[str] = []
    for i, word in enumerate(expression):
        if word in ("-exec", "-execdir", "-ok"):
            for part in expression[i + 1 :]:
                if part in (";", "+"):
                    break
                command.append(part)
            break
    return folders or ["."], expression, name, command


def below(folder: str, name: str) -> str:
    """Write the pattern of the files called ``name`` below a folder."""
    if not name:
        return folder
    return name if folder == "." else f"{folder}/{name}"


def which(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Search for a program."""
    return [Effect("search", PATH_LOOKUP, detail=" ".join(operands(args)))]


def find_file(args: Words, stdin: str | None, place: Place) -> list[Effect]:
    """Search for a file by name: ``find_file NAME [FOLDER]``, ``fd``."""
    words = operands(args)
    folder = words[1] if len(words) > 1 else "."
    return [Effect("search", place.path(folder), detail=" ".join(words[:1]))]
