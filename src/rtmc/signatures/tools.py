"""Say what one tool call did: editors, viewers, searches and shells of the known agents.

Dedicated tools and shell commands meet in the same keys: ``cat f``, ``open f`` and
``view {path: f}`` are one effect.
"""

import re
import shlex
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from rtmc.rollouts import ToolCall
from rtmc.signatures import results
from rtmc.signatures.effects import Effect, digest, edit_digest
from rtmc.signatures.programs.base import NOOP
from rtmc.signatures.programs.changes import patch_effects
from rtmc.signatures.programs.views import bucket
from rtmc.signatures.session import Session

__all__ = ["Tools"]

MALFORMED = Effect("malformed")
Arguments = dict[str, Any]

_SHELLS = frozenset(
    "bash execute_bash terminal shell run execute_command run_command shell_command exec_command "
    "run_terminal_cmd run_shell_command sandbox_shell command cmd exec bash_tool run_bash "
    "local_shell container.exec".split()
)
_COMMAND_NAMES = ("command", "cmd", "script", "code", "input", "keystrokes")
_KEYS = frozenset(("C-c", "C-d", "C-z", ""))
_EDITORS = frozenset(
    "str_replace_editor str_replace_based_edit_tool file_editor edit_anthropic oh_editor "
    "text_editor str_replace_based_edit_tool_20250728".split()
)
_THINKS = frozenset(
    "think todowrite todoread task_tracker update_plan message plan exitplanmode".split()
)
_FINISHES = frozenset("finish submit complete attempt_completion final_answer done".split())


def _text(arguments: Arguments, *names: str) -> str | None:
    """Find the first of several argument names that holds text."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, bool | int | float):
            return str(value)
    return None


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"\s*-?\d+\s*", value):
        return int(value)
    return None


def _range(value: object) -> tuple[int, int | None] | None:
    """Read a view range: ``[345, 389]``, its text, or two numbers in a text; −1 = the end."""
    if isinstance(value, str):
        value = [int(number) for number in re.findall(r"-?\d+", value)]
    if not isinstance(value, list | tuple) or not value:
        return None
    numbers = [_number(item) for item in value]
    first = numbers[0]
    if first is None:
        return None
    last = numbers[1] if len(numbers) > 1 else None
    return first, None if last is None or last < 0 else last


@lru_cache(maxsize=1024)
def _bare(name: str) -> str:
    """Take the server or namespace off a tool's name: ``mcp__files__Read`` is ``read``."""
    return name.lower().rsplit("__", 1)[-1].removeprefix("functions.")


class Tools:
    """The tools of one rollout: what they did, with the file that is open and the shell."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.open_file = ""

    def effects(self, call: ToolCall) -> list[Effect]:
        """Say what a call did."""
        if call.cwd is not None:
            self.session.start_in(call.cwd)
        if isinstance(call.arguments, str):
            return [MALFORMED]
        name = _bare(call.name)
        if name in _SHELLS:
            return self._shell(call, call.arguments)
        handler = _HANDLERS.get(name)
        if handler is None:
            return [_unknown(call)]
        effects = handler(self, call.arguments)
        if effects == [MALFORMED]:
            return effects
        output = call.output or ""
        refused = bool(call.is_error) or results.is_refusal(results.clean(output[:4000]))
        if refused:
            effects = [
                replace(e, result="err") if e.kind not in ("noop", "think", "finish") else e
                for e in effects
            ]
        effects = [_as_folder(e, output) for e in effects]
        self.session.see(effects)
        return effects

    # --- shells --------------------------------------------------------------------------------

    def _shell(self, call: ToolCall, arguments: Arguments) -> list[Effect]:
        command = arguments.get("command")
        if command is None:
            command = next((arguments[name] for name in _COMMAND_NAMES if name in arguments), None)
        if isinstance(command, list) and all(isinstance(word, str) for word in command):
            if len(command) == 3 and command[1] in ("-lc", "-c"):
                command = command[2]
            else:
                command = shlex.join(command)
        if not isinstance(command, str):
            return [NOOP] if arguments.get("restart") or arguments.get("reset") else [MALFORMED]
        if len(arguments) > 1 and (directory := _text(arguments, "workdir", "cwd", "directory")):
            self.session.start_in(directory)
        output = call.output or ""
        timed_out = call.timed_out or (call.exit_code is None and results.timed_out(output))
        exit_code = call.exit_code
        if exit_code is None and call.is_error:
            exit_code = 1
        is_input = arguments.get("is_input")
        if is_input in (True, "true", "True") and command.strip() not in _KEYS:
            return [Effect("execute", digest=digest("input " + command.strip()))]
        return self.session.run(command, output, exit_code, timed_out)

    # --- editors -------------------------------------------------------------------------------

    def _path(self, arguments: Arguments) -> str | None:
        path = _text(arguments, "path", "file_path", "filename", "file", "target_file", "filepath")
        if path is None or not path.strip():
            return None
        return self.session.place.path(path.strip())

    def _editor(self, arguments: Arguments) -> list[Effect]:
        command = _text(arguments, "command", "cmd", "action")
        path = self._path(arguments)
        if command is None or path is None:
            return [MALFORMED]
        match command.strip():
            case "view":
                return [self._view(path, arguments.get("view_range"))]
            case "create" | "write":
                return self._write(arguments)
            case "str_replace" | "replace":
                return self._exchange(arguments)
            case "insert":
                return self._insert(arguments)
            case "undo_edit" | "undo":
                return [Effect("restore", path, "undo")]
        return [MALFORMED]

    def _view(self, path: str, view_range: object) -> Effect:
        lines = _range(view_range)
        return Effect("view", path, bucket(*lines) if lines else "full")

    def _write(self, arguments: Arguments) -> list[Effect]:
        path = self._path(arguments)
        if path is None:
            return [MALFORMED]
        self.open_file = path
        text = _text(arguments, "file_text", "content", "contents", "text", "code") or ""
        return [Effect("create", path, digest=edit_digest(text) if text.strip() else "")]

    def _exchange(self, arguments: Arguments) -> list[Effect]:
        path = self._path(arguments) or self.open_file
        old = _text(arguments, "old_str", "old_string", "search", "old_text")
        new = _text(arguments, "new_str", "new_string", "replace", "new_text")
        if not path or old is None:
            return [MALFORMED]
        if old == "" and self._path(arguments):  # Claude Code creates a file this way
            return self._write({**arguments, "content": new or ""})
        return [Effect("modify", path, "replace", edit_digest(new or "", old))]

    def _insert(self, arguments: Arguments) -> list[Effect]:
        path = self._path(arguments) or self.open_file
        text = _text(arguments, "new_str", "text", "insert_text", "content")
        if not path or text is None:
            return [MALFORMED]
        return [Effect("modify", path, "insert", edit_digest(text))]

    def _edit(self, arguments: Arguments) -> list[Effect]:
        """``edit`` of every agent: by search and replace, by lines, or a whole new text."""
        if any(name in arguments for name in ("search", "old_string", "old_str", "old_text")):
            return self._exchange(arguments)
        if "command" in arguments and "path" in arguments:  # an OpenHands event
            return self._editor(arguments)
        path = self._path(arguments) or self.open_file
        text = _text(
            arguments, "text", "replacement_text", "new_content", "content", "new_str", "code_edit"
        )
        if not path or text is None:
            return [MALFORMED]
        return [Effect("modify", path, "replace", edit_digest(text))]

    def _multi_edit(self, arguments: Arguments) -> list[Effect]:
        edits = arguments.get("edits")
        if not isinstance(edits, list) or not all(isinstance(edit, dict) for edit in edits):
            return [MALFORMED]
        path = {"file_path": _text(arguments, "file_path", "path") or ""}
        return [effect for edit in edits for effect in self._exchange({**path, **edit})]

    def _apply_patch(self, arguments: Arguments) -> list[Effect]:
        text = _text(arguments, "input", "patch", "diff") or ""
        return patch_effects(text, self.session.place) or [MALFORMED]

    # --- viewers and searches ------------------------------------------------------------------

    def _open(self, arguments: Arguments) -> list[Effect]:
        path = self._path(arguments)
        if path is None:
            return [MALFORMED]
        self.open_file = path
        line = _number(arguments.get("line", arguments.get("line_number")))
        return [Effect("view", path, bucket(line, line) if line is not None else "full")]

    def _goto(self, arguments: Arguments) -> list[Effect]:
        path = self._path(arguments) or self.open_file
        line = _number(arguments.get("line", arguments.get("line_number")))
        if not path or line is None:
            return [MALFORMED]
        return [Effect("view", path, bucket(line, line))]

    def _scroll(self, arguments: Arguments) -> list[Effect]:
        path = self._path(arguments) or self.open_file
        return [Effect("view", path, "scroll")] if path else [NOOP]

    def _read(self, arguments: Arguments) -> list[Effect]:
        """``Read`` with offset and limit; ``read`` with start and end; a view otherwise."""
        path = self._path(arguments)
        if path is None:
            return [MALFORMED]
        if arguments.get("view_range") is not None:
            return [self._view(path, arguments["view_range"])]
        offset = _number(arguments.get("offset", arguments.get("start_line")))
        limit = _number(arguments.get("limit"))
        end = _number(arguments.get("end_line"))
        if offset is None and limit is None and end is None:
            return [Effect("view", path, "full")]
        first = max(offset or 1, 1)
        last = end if end is not None else first + limit - 1 if limit is not None else None
        return [Effect("view", path, bucket(first, last))]

    def _list(self, arguments: Arguments) -> list[Effect]:
        return [Effect("view", self._path(arguments) or self.session.place.path("."), "dir")]

    def _search(self, arguments: Arguments) -> list[Effect]:
        where = (
            _text(arguments, "path", "dir", "file", "directory", "dir_path", "search_path") or "."
        )
        what = (
            _text(arguments, "pattern", "query", "search_term", "regex", "file_name", "term") or ""
        )
        return [Effect("search", self.session.place.path(where), detail=what)]

    def _search_open(self, arguments: Arguments) -> list[Effect]:
        """``search_file`` looks into the open file unless it names one."""
        path = self._path(arguments) or self.open_file
        what = _text(arguments, "query", "search_term", "pattern") or ""
        return [Effect("search", path or self.session.place.path("."), detail=what)]

    # --- the rest ------------------------------------------------------------------------------

    def _think(self, arguments: Arguments) -> list[Effect]:
        return [Effect("think")]

    def _finish(self, arguments: Arguments) -> list[Effect]:
        return [Effect("finish")]

    def _nothing(self, arguments: Arguments) -> list[Effect]:
        return [NOOP]

    def _python(self, arguments: Arguments) -> list[Effect]:
        code = _text(arguments, "code", "source", "input")
        if code is None:
            return [MALFORMED]
        return [Effect("execute", digest=edit_digest(code), runs_code=True)]


_FOLDER = re.compile(r"(?:Here's|Here are) the files and directories|Directory:|Listing of ")


def _as_folder(effect: Effect, output: str) -> Effect:
    """A view of a folder is known by its answer; a scroll by the first line that it shows."""
    if effect.kind != "view":
        return effect
    if effect.scope == "full" and _FOLDER.match(output[:200].lstrip()):
        return replace(effect, scope="dir")
    if effect.scope == "scroll":
        shown = re.search(r"^(\d+):", results.clean(output[:4000]), re.MULTILINE)
        if not shown:
            return NOOP
        return replace(effect, scope=bucket(int(shown[1]), int(shown[1])))
    return effect


def _unknown(call: ToolCall) -> Effect:
    """A tool that is not known is a run of that tool; its arguments enter the level ``full``."""
    detail = msgspec.json.encode(call.arguments, order="sorted").decode()
    result = "err" if call.is_error else "timeout" if call.timed_out else ""
    return Effect("execute", call.name, result=result, detail=detail)


_Handler = Callable[[Tools, Arguments], list[Effect]]
_HANDLERS: dict[str, _Handler] = {
    **dict.fromkeys(_EDITORS, Tools._editor),
    **dict.fromkeys(_THINKS, Tools._think),
    **dict.fromkeys(_FINISHES, Tools._finish),
    **dict.fromkeys(("create", "write", "write_file", "create_file", "writefile"), Tools._write),
    **dict.fromkeys(("edit", "edit_file", "replace"), Tools._edit),
    **dict.fromkeys(("multiedit", "multi_edit"), Tools._multi_edit),
    **dict.fromkeys(("insert", "insert_text"), Tools._insert),
    **dict.fromkeys(("apply_patch", "patch"), Tools._apply_patch),
    **dict.fromkeys(("open", "open_file"), Tools._open),
    **dict.fromkeys(("goto", "goto_line"), Tools._goto),
    **dict.fromkeys(("scroll_up", "scroll_down"), Tools._scroll),
    **dict.fromkeys(("read", "read_file", "view", "view_file", "readfile", "cat"), Tools._read),
    **dict.fromkeys(("ls", "list_dir", "list_directory", "list_files"), Tools._list),
    **dict.fromkeys(
        ("grep", "glob", "search", "search_dir", "find_file", "search_files", "grep_search",
         "file_search", "codebase_search", "search_file_content", "find_files"),
        Tools._search,
    ),
    "search_file": Tools._search_open,
    "set_cursors": Tools._nothing,
    **dict.fromkeys(
        ("run_ipython", "execute_ipython_cell", "ipython", "python", "execute_python"),
        Tools._python,
    ),
}  # fmt: skip
