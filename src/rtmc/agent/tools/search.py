"""The search: which lines of which files match a pattern."""

from typing import Annotated

import msgspec
from msgspec import Meta

from rtmc.agent.tools.base import Observation, Tool, ToolError, Workbench

__all__ = ["SEARCH"]

MOST_LINES = 100
MOST_BYTES = 200
"""Bytes of a line that are shown at most."""

# grep's own order is that of the disk.
_SCRIPT = """\
lines=$1 bytes=$2
shift 2
found=$(grep "$@" 2>&1)
code=$?
printf '%s\\n' "$found" | wc -l
printf '%s\\n' "$found" | LC_ALL=C sort -t : -k 1,1 -k 2,2n | head -n "$lines" | cut -b "-$bytes"
exit $code
"""


class SearchArguments(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the search takes."""

    pattern: Annotated[str, Meta(description="A regular expression, as of grep -P.")]
    path: Annotated[str, Meta(description="File or folder to search in.")] = "."
    include: Annotated[str, Meta(description="Only files of such names, as in *.py.")] = ""


def _search(arguments: SearchArguments, bench: Workbench) -> Observation:
    if not arguments.pattern:
        raise ToolError("the pattern is empty")
    spot = bench.look(arguments.path)
    if spot.kind == "nothing":
        raise ToolError(f"there is no {spot.path}; view the folder above it")
    options = ["-rsnHIP", "--exclude-dir=.git", "--exclude-dir=__pycache__"]
    if arguments.include:
        options.append(f"--include={arguments.include}")
    where = "." if spot.path == "." else f"./{spot.path}"
    argv = ["sh", "-c", _SCRIPT, "sh", str(MOST_LINES), str(MOST_BYTES + 1), *options]
    argv += ["-e", arguments.pattern, "--", where]
    result = bench.sandbox.exec(argv, timeout=bench.timeout)
    if result.exit_code is None:
        text = "the search did not finish; narrow the path, or simplify the pattern"
        return Observation(text, is_error=True, timed_out=result.timed_out)
    count, _, output = result.output.partition("\n")
    if not output.startswith("./"):
        if result.exit_code > 1 and (said := output.strip() or count) != "1":
            raise ToolError(f"{said}; the pattern is a regular expression, as of grep -P")
        return Observation(f"nothing in {spot.path} matches {arguments.pattern}", exit_code=1)
    shown = [_shortened(line).removeprefix("./") for line in output.splitlines()]
    if int(count) > MOST_LINES:
        shown.append(f"… and {int(count) - MOST_LINES} more lines; narrow pattern or path")
    return Observation("\n".join(shown), exit_code=0)


def _shortened(line: str) -> str:
    """Mark a line that was cut, perhaps inside a character."""
    data = line.encode()
    return data[:MOST_BYTES].decode(errors="ignore") + "…" if len(data) > MOST_BYTES else line


SEARCH = Tool("search", "Find lines that match a pattern.", SearchArguments, _search)
