"""Commands, pipelines, and what both ways of splitting do with words and heredocs."""

import re

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["ASSIGNMENT", "Command", "Pipeline", "heredoc_body", "join_wrapped", "unquote"]

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")


class Command(Struct, frozen=True, gc=False):
    """One simple command: its words without assignments, its redirections, its standard input.

    ``redirects`` holds pairs (operator, target); ``stdin`` the text of a heredoc or here-string.
    The pseudo commands ``(`` and ``)`` open and close a subshell, ``{`` carries the redirections
    of a compound statement; an empty ``argv`` only carries redirections or assigned variables.
    """

    argv: tuple[str, ...]
    redirects: tuple[tuple[str, str], ...] = ()
    stdin: str | None = None


class Pipeline(Struct, frozen=True, gc=False):
    """Commands joined by ``|``, and what joins them to the next: ``&&  ||  ;  &`` or nothing.

    ``nested``: inside a loop, a condition or a subshell, so that the exit code of the whole text
    says nothing about it.
    """

    commands: tuple[Command, ...]
    operator: str = ""
    nested: bool = False


_QUOTED = re.compile(
    r"""(?P<ansi>\$'(?:[^'\\]++|\\.)*+')|(?P<single>'[^']*+')|(?P<double>"(?:[^"\\]++|\\.)*+")"""
    r"""|\\(?P<escaped>.)|(?P<plain>[^'"\\$]++|.)""",
    re.DOTALL,
)
_DOUBLE_ESCAPE = re.compile(r'\\([\\"$`\n])')
_ANSI_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ANSI_NAMES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


def unquote(word: str) -> str:
    """Remove quotes and backslashes as the shell does, without expanding anything."""
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    mark = word[0]
    if (mark == "'" or (mark == '"' and "\\" not in word)) and word.find(mark, 1) == len(word) - 1:
        return word[1:-1]
    parts: list[str] = []
    for piece in _QUOTED.finditer(word):
        text = piece.group()
        match piece.lastgroup:
            case "single":
                parts.append(text[1:-1])
            case "double":
                parts.append(_DOUBLE_ESCAPE.sub(lambda m: "" if m[1] == "\n" else m[1], text[1:-1]))
            case "escaped":
                parts.append("" if text == "\\\n" else text[1:])
            case "ansi":
                parts.append(_ANSI_ESCAPE.sub(lambda m: _ANSI_NAMES.get(m[1], m[0]), text[2:-1]))
            case _:
                parts.append(text)
    return "".join(parts)


_UNQUOTED_ESCAPE = re.compile(r"\\([\\$`\n])")


def heredoc_body(text: str, at: int, opening: str) -> tuple[str, int]:
    """Cut the body that starts at ``at``; an unterminated one reaches to the end, as in bash."""
    dash = opening.startswith("<<-")
    delimiter = opening[3 if dash else 2 :].strip(" \t").strip("'\"").lstrip("\\")
    end, behind = _delimiter(text, at, delimiter, dash)
    body = text[at:end] if behind >= 0 else text[at:].rstrip("\n") + "\n"
    if dash:
        body = re.sub(r"^\t+", "", body, flags=re.MULTILINE)
    if "\\" in body and not any(mark in opening for mark in "'\"\\"):
        body = _UNQUOTED_ESCAPE.sub(lambda m: "" if m[1] == "\n" else m[1], body)
    return body, behind if behind >= 0 else len(text)


def _delimiter(text: str, at: int, delimiter: str, dash: bool) -> tuple[int, int]:
    """Find the line that closes a heredoc: where it starts, and what is behind it; −1 if none."""
    if dash:
        closing = re.compile(rf"^\t*{re.escape(delimiter)}\r?$", re.MULTILINE).search(text, at)
        return (closing.start(), min(closing.end() + 1, len(text))) if closing else (-1, -1)
    found = at - 1
    while (found := text.find(delimiter, found + 1)) >= 0:
        end = found + len(delimiter)
        if (found == at or text[found - 1] == "\n") and (
            text[end : end + 1] in ("", "\n") or text[end : end + 2] == "\r\n"
        ):
            newline = text.find("\n", end)
            return found, newline + 1 if newline >= 0 else len(text)
    return -1, -1


def join_wrapped(pipelines: list[Pipeline]) -> list[Pipeline]:
    """Join a line that begins with an option or ``;`` to the line before: no command does.

    Logs of terminals break long lines so; tree-sitter joins some of them itself.
    """
    joined: list[Pipeline] = []
    for pipeline in pipelines:
        first = pipeline.commands[0]
        word = first.argv[0] if first.argv else ""
        before = joined[-1] if joined else None
        if before and before.operator == ";" and (word == ";" or (word[:1] == "-" and word[1:])):
            last = before.commands[-1]
            whole = Command(
                last.argv + first.argv, last.redirects + first.redirects, first.stdin or last.stdin
            )
            commands = (*before.commands[:-1], whole, *pipeline.commands[1:])
            joined[-1] = replace(pipeline, commands=commands)
        else:
            joined.append(pipeline)
    return joined
