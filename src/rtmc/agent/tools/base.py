"""What a tool is: a name, arguments that describe themselves, and a function that acts."""

import functools
import posixpath
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from rtmc.agent.sandbox.base import Sandbox, Spot
from rtmc.errors import RtmcError, WorkspaceError

__all__ = ["Observation", "Tool", "ToolError", "Workbench"]

LISTED = 300
"""Entries of a folder that are shown at most."""

MOST_ERROR = 2000
"""Characters of an error that are shown at most: it may quote what the model wrote."""

_NAMES = """\
find "$1" -mindepth 1 -maxdepth 2 '(' -name '.?*' -o -name __pycache__ ')' -prune \
-o -type d -printf '%p/\\n' -o -printf '%p\\n' | LC_ALL=C sort | head -n "$2"
"""


class ToolError(RtmcError, ValueError):
    """A call that cannot be carried out; the message is for the model, and says what to do."""


class Observation(msgspec.Struct, frozen=True):
    """What came back from one call.

    Attributes:
        text: what the model gets to read.
        exit_code: of a command, where it has one.
        is_error: the call was refused or failed in the tool itself.
        timed_out: the command was stopped.
        done: the agent says that it has finished.
        cwd: the directory that the call's paths are relative to.
    """

    text: str
    exit_code: int | None = None
    is_error: bool = False
    timed_out: bool = False
    done: bool = False
    cwd: str | None = None


@dataclass(slots=True)
class Workbench:
    """What the tools of one rollout share.

    Attributes:
        sandbox: where they act.
        timeout: seconds that a command may take.
        shown: characters of a file that are shown at most.
        cwd: where the shell is.
        undo: the contents of each file before its edits, oldest first; None where there was none.
    """

    sandbox: Sandbox
    timeout: float = 60.0
    shown: int = 20_000
    cwd: str = ""
    undo: dict[str, list[bytes | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start the shell in the workspace."""
        self.cwd = self.cwd or self.sandbox.workspace

    def look(self, path: str) -> Spot:
        """Tell what is at a path as the model wrote it.

        Raises:
            ToolError: it leads out of the workspace.
            WorkspaceError: it cannot be looked at.
        """
        root = self.sandbox.workspace
        if not path.strip():
            raise ToolError("the path is empty; '.' is the repository itself")
        full = posixpath.normpath(posixpath.join(root, path.strip()))
        below = posixpath.relpath(full, root)
        spot = None if below.split("/")[0] == ".." else self.sandbox.look(below)
        if spot is None or spot.kind == "outside":
            raise ToolError(
                f"{path} leads out of the repository {root}; give a path relative to it, or use "
                "bash"
            )
        return spot

    def names(self, folder: str) -> list[str]:
        """List a folder two levels deep, without what is hidden; folders end in a slash."""
        where = "." if folder == "." else f"./{folder}"
        argv = ["sh", "-c", _NAMES, "sh", where, str(LISTED + 1)]
        names = [name.removeprefix("./") for name in self.sandbox.exec(argv).output.splitlines()]
        return [*names[:LISTED], "… and more; view a folder of these"] if names[LISTED:] else names

    def change(self, path: str, before: bytes | None, after: bytes) -> None:
        """Set the bytes of a file, and remember what they were.

        Raises:
            WorkspaceError: it cannot be written; it is as it was.
        """
        try:
            self.sandbox.write(path, after)
        except WorkspaceError:
            with suppress(WorkspaceError):
                self.restore(path, before)  # a full disk may have cut it
            raise
        self.undo.setdefault(path, []).append(before)

    def restore(self, path: str, before: bytes | None) -> None:
        """Set the bytes of a file, or remove it where it has none."""
        if before is None:
            self.sandbox.exec(["rm", "-f", "--", path])
        else:
            self.sandbox.write(path, before)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Attributes:
        name: what the model calls it.
        about: what it does, for the model.
        arguments: a struct whose fields are described by ``msgspec.Meta``.
        act: carries out a call; may raise ``ToolError``.
        in_shell: it acts where the shell is, not in the workspace.
    """

    name: str
    about: str
    arguments: type[msgspec.Struct]
    act: Callable[[Any, Workbench], Observation]
    in_shell: bool = False

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """The JSON schema of each argument, by its name."""
        return _parameters(self.arguments)

    @property
    def required(self) -> list[str]:
        """The arguments that a call must have."""
        fields = msgspec.structs.fields(self.arguments)
        return [field.name for field in fields if field.required]

    def schema(self) -> dict[str, Any]:
        """Describe it as the JSON that chat endpoints take."""
        parameters = {
            "type": "object",
            "properties": self.parameters,
            "required": self.required,
            "additionalProperties": False,
        }
        function = {"name": self.name, "description": self.about, "parameters": parameters}
        return {"type": "function", "function": function}

    def usage(self) -> str:
        """Say in one line what it takes."""
        takes = []
        for name, about in self.parameters.items():
            notes = ["one of " + ", ".join(about["enum"])] if "enum" in about else []
            notes += [] if name in self.required else ["optional"]
            takes.append(f"{name} ({'; '.join(notes)})" if notes else name)
        return f"{self.name} takes {', '.join(takes)}"

    def __call__(self, arguments: dict[str, Any], bench: Workbench) -> Observation:
        """Check the arguments and act; what is wrong comes back as an observation."""
        cwd = bench.cwd if self.in_shell else bench.sandbox.workspace
        try:
            seen = self.act(self._checked(arguments), bench)
        except (ToolError, WorkspaceError) as error:
            seen = Observation(str(error)[:MOST_ERROR], is_error=True)
        return msgspec.structs.replace(seen, cwd=cwd)

    def _checked(self, arguments: dict[str, Any]) -> msgspec.Struct:
        given: dict[str, Any] = {}
        for name, value in arguments.items():
            if name not in self.parameters:
                raise ToolError(f"there is no parameter {name!r}; {self.usage()}")
            if isinstance(value, str) and "\0" in value:
                raise ToolError(f"{name} holds a NUL character; leave it out")
            if value is not None:  # as endpoints fill what is optional
                is_list = self.parameters[name]["type"] == "array"
                given[name] = _listed(value) if is_list and isinstance(value, str) else value
        try:
            return msgspec.convert(given, self.arguments, strict=False)
        except msgspec.ValidationError as error:
            raise ToolError(f"{error}; {self.usage()}") from error


def _listed(text: str) -> Any:
    """Read a list that a model wrote as text, as it must between XML tags."""
    try:
        return msgspec.json.decode(text if text.strip().startswith("[") else f"[{text}]")
    except (msgspec.DecodeError, RecursionError):
        return text


@functools.cache
def _parameters(arguments: type[msgspec.Struct]) -> dict[str, dict[str, Any]]:
    """Describe the fields of a struct; one that may be left out need not be called nullable."""
    (_, components) = msgspec.json.schema_components([arguments])
    found: dict[str, dict[str, Any]] = {}
    for name, about in components[arguments.__name__]["properties"].items():
        plain = {key: about[key] for key in about if key not in ("anyOf", "default")}
        for kind in about.get("anyOf", []):
            plain |= kind if kind != {"type": "null"} else {}
        found[name] = {"type": "string", **plain}
    return found
