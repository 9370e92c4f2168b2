"""The editor: look at files and change them by exact text, as SWE agents know it.

Lines end at a newline and nowhere else, as they do for grep, sed and Python's tracebacks. Where
all lines of a file end in CRLF the model sees and writes plain newlines, and CRLF is kept.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from rtmc.agent.tools.base import Observation, Spot, Tool, ToolError, Workbench
from rtmc.errors import WorkspaceError

__all__ = ["EDITOR"]

CONTEXT = 4
"""Lines shown around an edit."""
MOST_BYTES = 2 << 20
"""Size of a file that is opened at most."""
MOST_PLACES = 10
"""Places named of a text that is not unique."""


class EditorArguments(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the editor takes; which fields are needed depends on the command."""

    command: Annotated[
        Literal["view", "create", "str_replace", "insert", "undo_edit"],
        Meta(description="What to do."),
    ]
    path: Annotated[str, Meta(description="File or folder, relative to the repository.")]
    view_range: Annotated[
        list[int] | None,
        Meta(description="For view: first and last line, from 1; [5, -1] goes to the end."),
    ] = None
    file_text: Annotated[str | None, Meta(description="For create: the whole file.")] = None
    old_str: Annotated[
        str | None,
        Meta(description="For str_replace: text that occurs exactly once, white space included."),
    ] = None
    new_str: Annotated[
        str | None, Meta(description="For str_replace and insert: the new text.")
    ] = None
    insert_line: Annotated[
        int | None, Meta(description="For insert: the line after which it goes; 0 = the top.")
    ] = None


def _edit(arguments: EditorArguments, bench: Workbench) -> Observation:
    spot = bench.look(arguments.path)
    match arguments.command:
        case "view":
            text = _view(arguments, spot, bench)
        case "create":
            text = _create(arguments, spot, bench)
        case "str_replace":
            text = _replace(arguments, spot, bench)
        case "insert":
            text = _insert(arguments, spot, bench)
        case "undo_edit":
            text = _undo(spot.path, bench)
    return Observation(text)


def _view(arguments: EditorArguments, spot: Spot, bench: Workbench) -> str:
    if spot.kind == "folder":
        if arguments.view_range is not None:
            raise ToolError(f"{spot.path} is a folder; view_range is for files")
        names = bench.names(spot.path) or ["(none)"]
        head = f"Here are the files and directories in {spot.path}, two levels deep:"
        return "\n".join([head, *names])
    lines = _lines(_read(spot, bench)[1])
    first, last = _range(arguments.view_range, len(lines))
    return _numbered(lines[first - 1 : last], first, bench.shown) or f"{spot.path} is empty"


def _range(given: list[int] | None, size: int) -> tuple[int, int]:
    if given is None or size == 0:
        return 1, size
    if len(given) != 2:
        raise ToolError(f"view_range is {given}; expected two line numbers, as in [1, 40]")
    first, last = given[0], size if given[1] == -1 else given[1]
    if not (1 <= first <= size and first <= last):
        raise ToolError(f"view_range is {given}; the file has lines 1 to {size}")
    return first, min(last, size)


def _create(arguments: EditorArguments, spot: Spot, bench: Workbench) -> str:
    if arguments.file_text is None:
        raise ToolError("create needs file_text")
    if spot.kind != "nothing":
        raise ToolError(f"{spot.path} exists already; change it with str_replace or insert")
    bench.change(spot.path, None, arguments.file_text.encode())
    size = len(_lines(arguments.file_text))
    return f"created {spot.path}, {size} line{'s' * (size != 1)}"


def _replace(arguments: EditorArguments, spot: Spot, bench: Workbench) -> str:
    if not arguments.old_str:
        raise ToolError("str_replace needs old_str: the text to replace")
    before, text, end = _read(spot, bench)
    old, new = (_plain(part or "", end) for part in (arguments.old_str, arguments.new_str))
    if old == new:
        raise ToolError("old_str and new_str are the same: nothing would change")
    places = _places(text, old)
    if not places:
        raise ToolError(f"old_str does not occur in {spot.path}; view the file and copy it exactly")
    if len(places) > 1:
        at = ", ".join(str(text.count("\n", 0, i) + 1) for i in islice(places, MOST_PLACES))
        raise ToolError(
            f"old_str occurs {len(places)} times in {spot.path}, at lines "
            f"{at}{', …' * (len(places) > MOST_PLACES)}; add lines around it until it is unique"
        )
    at = places[0]
    after = text[:at] + new + text[at + len(old) :]
    bench.change(spot.path, before, after.replace("\n", end).encode())
    return _around(spot, after, text.count("\n", 0, at), new.count("\n") + 1, bench)


def _places(text: str, part: str) -> list[int]:
    """Find where a text occurs, overlaps included: either could be meant."""
    found, at = [], text.find(part)
    while at >= 0:
        found.append(at)
        at = text.find(part, at + 1)
    return found


def _insert(arguments: EditorArguments, spot: Spot, bench: Workbench) -> str:
    line, new = arguments.insert_line, arguments.new_str
    if line is None or new is None:
        raise ToolError("insert needs insert_line and new_str")
    before, text, end = _read(spot, bench)
    lines = _lines(text)
    if not 0 <= line <= len(lines):
        raise ToolError(f"insert_line is {line}; {spot.path} has lines 1 to {len(lines)}; 0 = top")
    inserted = _plain(new, end).removesuffix("\n").split("\n")
    after = "\n".join([*lines[:line], *inserted, *lines[line:]])
    if line == len(lines) or text.endswith("\n"):  # else the last line stays without an end
        after += "\n"
    bench.change(spot.path, before, after.replace("\n", end).encode())
    return _around(spot, after, line, len(inserted), bench)


def _undo(path: str, bench: Workbench) -> str:
    if not bench.undo.get(path):
        raise ToolError(f"there is no edit of {path} to undo")
    before = bench.undo[path][-1]
    bench.restore(path, before)
    bench.undo[path].pop()
    if before is None:
        return f"removed {path}, which did not exist before"
    return f"took back the last edit of {path}"


def _read(spot: Spot, bench: Workbench) -> tuple[bytes, str, str]:
    """Read a file: its bytes, its text with plain newlines, and how its lines end."""
    if spot.size > MOST_BYTES and spot.kind == "file":
        raise ToolError(
            f"{spot.path} has {spot.size} bytes, the editor opens {MOST_BYTES}; use sed in bash"
        )
    try:
        data = bench.sandbox.read(spot.path)
        text = data.decode()
    except UnicodeDecodeError:
        raise ToolError(f"{spot.path} is not a text file in UTF-8; look at it with bash") from None
    except WorkspaceError as error:
        raise ToolError(f"{error}; search, or view the folder") from error
    end = "\r\n" if 0 < text.count("\n") == text.count("\r\n") else "\n"
    return data, _plain(text, end), end


def _plain(text: str, end: str) -> str:
    return text.replace("\r\n", "\n") if end == "\r\n" else text


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _around(spot: Spot, text: str, first: int, size: int, bench: Workbench) -> str:
    """Show what an edit made of a file: ``size`` lines from ``first``, counted from 0."""
    low, high = max(first - CONTEXT, 0), first + size + CONTEXT
    shown = _numbered(_lines(text)[low:high], low + 1, bench.shown)
    return f"edited {spot.path}; it reads now:\n{shown}" if shown else f"{spot.path} is empty now"


def _numbered(lines: Sequence[str], first: int, most: int) -> str:
    """Number lines, and say where they are cut to be not much more than ``most`` characters."""
    shown: list[str] = []
    for number, line in enumerate(lines, start=first):
        entry = f"{number:6}\t{line}"
        if len(entry) >= most and not shown:
            return f"{entry[:most]}\n… cut inside line {number}; read the rest of it with bash"
        most -= len(entry) + 1
        if most < 0:
            shown.append(f"… cut after line {number - 1}; go on with view_range [{number}, -1]")
            break
        shown.append(entry)
    return "\n".join(shown)


EDITOR = Tool(
    "str_replace_editor",
    "View a file or folder, create a file, replace a text in a file, insert lines, or undo the "
    "last edit of a file.",
    EditorArguments,
    _edit,
)
