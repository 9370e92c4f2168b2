r"""Turn SWE-agent's own commands into tool calls.

SWE-agent writes every action as one line (or block) of text; most look like shell but are
functions of its tool bundles:

    edit 12:14⏎text⏎end_of_edit        edit {start, end, text, path}
    edit⏎text⏎end_of_edit              edit {text, path}              (after set_cursors)
    edit 'old' 'new' [replace-all]     edit {search, replace, replace_all?, path}
    insert 'text' [line]               insert {text, line?, path}
    open "f" [line] · goto N           open {path, line?} · goto {line, path}
    create f · scroll_up · scroll_down
    search_dir t [dir] · search_file t [file] · find_file name [dir]
    set_cursors a b · submit
    str_replace_editor view /p --view_range 1 9 …   str_replace_editor {command, path, …}

``path`` is the open file where the command works on it. All other text is shell: ``bash``.
"""

import re
from typing import Any

from rtmc.rollouts import ToolCall

__all__ = ["split_words", "tool_call"]

_PIECE = re.compile(
    r"""(?P<space>\s+)|'(?P<single>[^']*)'|"(?P<double>(?:\\.|[^"\\])*)"|\\(?P<escaped>.)"""
    r"""|(?P<plain>[^\s'"\\]+)""",
    re.DOTALL,
)
_ESCAPED = re.compile(r'\\(["\\])')

_LINES = re.compile(r"edit\s+(\d+):(\d+)\s*\n")
_REPLACE_ALL = {"true": True, "1": True, "replace-all": True, "replace_all": True,
                "false": False, "0": False}  # fmt: skip


def split_words(text: str) -> list[str]:
    """Split like ``shlex.split``, in one pass of a regular expression.

    ``shlex`` takes a character at a time, and an edit's text is long.

    Raises:
        ValueError: a quote is not closed.
    """
    words: list[str] = []
    word: list[str] | None = None
    at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise ValueError("a quotation is not closed")
        at = piece.end()
        kind = piece.lastgroup
        if kind == "space":
            if word is not None:
                words.append("".join(word))
                word = None
            continue
        part = piece.group(kind or 0)
        if kind == "double":
            part = _ESCAPED.sub(r"\1", part)
        word = [*(word or ()), part]
    if word is not None:
        words.append("".join(word))
    return words


def tool_call(action: str, open_file: str | None = None) -> ToolCall:
    """Read one action; ``open_file`` is the file that was open before it.

    An action of a bundle whose quoting is broken keeps its text as malformed arguments.
    """
    text = action.strip("\r\n")
    name = text.split(None, 1)[0] if text.strip() else ""
    reader = _READERS.get(name)
    if reader is None:
        return ToolCall("bash", {"command": text})
    at_open_file = {"path": open_file} if open_file else {}
    if name == "edit" and (block := _edit_block(text)) is not None:
        return ToolCall("edit", {**block, **at_open_file})
    try:
        words = split_words(text)
    except ValueError:
        return ToolCall(name, text)
    arguments = reader(words[1:], at_open_file)
    # the right word but not the right arguments: a shell line such as `open x; ls`
    return ToolCall("bash", {"command": text}) if arguments is None else ToolCall(name, arguments)


Arguments = dict[str, Any]


def _edit_block(text: str) -> Arguments | None:
    lines = _LINES.match(text)
    if lines is not None:
        span = {"start": int(lines.group(1)), "end": int(lines.group(2))}
        return {**span, "text": _until_end_of_edit(text[lines.end() :])}
    first, newline, rest = text.partition("\n")
    return {"text": _until_end_of_edit(rest)} if newline and first.strip() == "edit" else None


def _until_end_of_edit(body: str) -> str:
    body = body.rstrip()
    if body == "end_of_edit":
        return ""
    return body.removesuffix("\nend_of_edit")


def _edit(words: list[str], opened: Arguments) -> Arguments | None:
    if not 2 <= len(words) <= 3:
        return None
    arguments: Arguments = {"search": words[0], "replace": words[1]}
    if len(words) == 3:
        replace_all = _REPLACE_ALL.get(words[2].lower().removeprefix("--"))
        if replace_all is None:
            return None
        arguments["replace_all"] = replace_all
    return {**arguments, **opened}


def _insert(words: list[str], opened: Arguments) -> Arguments | None:
    if not words or len(words) > 2 or (len(words) == 2 and not words[1].isdigit()):
        return None
    line = {"line": int(words[1])} if len(words) == 2 else {}
    return {"text": words[0], **line, **opened}


def _open(words: list[str], opened: Arguments) -> Arguments | None:
    if not words or len(words) > 2 or (len(words) == 2 and not words[1].isdigit()):
        return None
    return {"path": words[0], "line": int(words[1])} if len(words) == 2 else {"path": words[0]}


def _goto(words: list[str], opened: Arguments) -> Arguments | None:
    return {"line": int(words[0]), **opened} if len(words) == 1 and words[0].isdigit() else None


def _scroll(words: list[str], opened: Arguments) -> Arguments | None:
    return None if words else opened


def _create(words: list[str], opened: Arguments) -> Arguments | None:
    return {"path": words[0]} if len(words) == 1 else None


def _search(words: list[str], opened: Arguments) -> Arguments | None:
    if len(words) == 2:
        return {"query": words[0], "path": words[1]}
    return {"query": words[0]} if len(words) == 1 else None


def _search_file(words: list[str], opened: Arguments) -> Arguments | None:
    found = _search(words, opened)
    return None if found is None else {**opened, **found}


def _set_cursors(words: list[str], opened: Arguments) -> Arguments | None:
    if len(words) != 2 or not all(word.isdigit() for word in words):
        return None
    return {"start": int(words[0]), "end": int(words[1]), **opened}


def _submit(words: list[str], opened: Arguments) -> Arguments | None:
    return {} if words in ([], ["-f"]) else None


_EDITOR_OPTIONS = ("file_text", "old_str", "new_str", "insert_line", "view_range")


def _editor(words: list[str], opened: Arguments) -> Arguments | None:
    if len(words) < 2 or words[0].startswith("-"):
        return None
    arguments: Arguments = {"command": words[0], "path": words[1]}
    at = 2
    while at < len(words):
        option = words[at].removeprefix("--")
        if option not in _EDITOR_OPTIONS or option == words[at]:
            return None
        width = 2 if option == "view_range" else 1
        values = words[at + 1 : at + 1 + width]
        if len(values) < width:
            return None
        if option in ("view_range", "insert_line"):
            if not all(value.lstrip("-").isdigit() for value in values):
                return None
            numbers = [int(value) for value in values]
            arguments[option] = numbers if width == 2 else numbers[0]
        else:
            arguments[option] = values[0]
        at += 1 + width
    return arguments


_READERS = {
    "edit": _edit,
    "insert": _insert,
    "open": _open,
    "goto": _goto,
    "scroll_up": _scroll,
    "scroll_down": _scroll,
    "create": _create,
    "search_dir": _search,
    "find_file": _search,
    "search_file": _search_file,
    "set_cursors": _set_cursors,
    "submit": _submit,
    "str_replace_editor": _editor,
}
