"""Read outcomes that lie beside the trajectories, and join them by id.

Known shapes: report.json of the SWE-bench harness (flat, the id is its directory's name; or nested
under the id), results.json with lists of ids, results.json of Terminal-Bench, result.json of
Harbor, and, given explicitly, CSV or JSON of id → reward.

An explicit outcome wins over the record's own, that one over a file found beside the trajectories.
Such a file is joined only where it can mean one rollout and no other: it must be the nearest one
that names the id, and the rollout the nearest with that id.
"""

import csv
import io
import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from rtmc.errors import FormatError
from rtmc.formats.base import REFUSALS, as_finite, first_text, why
from rtmc.rollouts import Rollout, status_of

__all__ = ["Outcomes", "Statement", "read_outcomes", "statements_in"]


class Statement(NamedTuple):
    """What one file says of one id."""

    id: str
    reward: float | None
    resolved: bool | None
    stop_reason: str | None
    path: str

    @property
    def outcome(self) -> tuple[float | None, bool | None]:
        """What two statements must share to agree."""
        return self.reward, self.resolved


def _stated(
    identifier: str, path: str, value: Any = None, resolved: bool | None = None, stop: Any = None
) -> Statement:
    if isinstance(value, bool):
        value, resolved = float(value), value
    if value is None and resolved is not None:
        value = float(resolved)
    stop = None if stop == "unset" else first_text(stop)
    return Statement(identifier, None if value is None else float(value), resolved, stop, path)


_LISTS = {
    "resolved": True,
    "resolved_ids": True,
    "unresolved": False,
    "unresolved_ids": False,
    "empty_patch_ids": False,
    "empty_error_patch_ids": False,
}
_OTHER_LISTS = ("completed_ids", "submitted_ids", "incomplete_ids", "error_ids", "completed")


def statements_in(value: Any, path: str) -> list[Statement] | None:
    """Read a decoded JSON value as an outcome file; None if it is none.

    Only shapes that cannot be mistaken are read here; a plain mapping of ids to numbers is not
    (see ``read_outcomes``).
    """
    if not isinstance(value, dict) or not value:
        return None
    if isinstance(value.get("resolved"), bool) and "messages" not in value:
        identifier = first_text(value.get("instance_id")) or Path(path).resolve().parent.name
        return [_stated(identifier, path, resolved=value["resolved"])]
    if all(isinstance(v, dict) and isinstance(v.get("resolved"), bool) for v in value.values()):
        return [_stated(key, path, resolved=v["resolved"]) for key, v in value.items()]
    return _lists(value, path) or _terminal_bench(value, path) or _harbor(value, path)


def _lists(value: dict[str, Any], path: str) -> list[Statement] | None:
    if value.keys().isdisjoint(_LISTS):
        return None
    lists = {k: v for k, v in value.items() if k in _LISTS and isinstance(v, list)}
    if not lists:
        return None
    said: dict[str, Statement] = {}
    for key, ids in lists.items():
        for identifier in ids:
            if isinstance(identifier, str):
                said.setdefault(identifier, _stated(identifier, path, resolved=_LISTS[key]))
    return list(said.values())


def _terminal_bench(value: dict[str, Any], path: str) -> list[Statement] | None:
    results = value.get("results")
    if not isinstance(results, list) or not results:
        return None
    said = []
    for row in results:
        if not isinstance(row, dict) or "is_resolved" not in row:
            return None
        resolved = row["is_resolved"] if isinstance(row["is_resolved"], bool) else None
        for identifier in {row.get("trial_name"), row.get("task_id")}:
            if isinstance(identifier, str):
                stop = row.get("failure_mode")
                said.append(_stated(identifier, path, resolved=resolved, stop=stop))
    return said


def _harbor(value: dict[str, Any], path: str) -> list[Statement] | None:
    if "trial_name" not in value or "verifier_result" not in value:
        return None
    verifier = value["verifier_result"]
    rewards = verifier.get("rewards") if isinstance(verifier, dict) else None
    reward = rewards.get("reward") if isinstance(rewards, dict) else None
    exception = value.get("exception_info")
    stop = exception.get("exception_type") if isinstance(exception, dict) else None
    if not isinstance(reward, int | float) or as_finite(reward) is None:
        reward = None
    return [
        _stated(identifier, path, reward, stop=stop)
        for identifier in dict.fromkeys((value["trial_name"], value.get("task_name")))
        if isinstance(identifier, str)
    ]


# --- files given explicitly ----------------------------------------------------------------------

_EXPECTED = (
    "expected CSV or JSON of id and reward, a report.json, results.json or result.json, "
    "or a directory of these"
)


def read_outcomes(path: str) -> list[Statement]:
    """Read an outcome file, or all of a directory.

    Raises:
        FormatError: there is no such file, or it states no outcome.
    """
    where = Path(path)
    if where.is_dir():
        found = [
            statement
            for file in sorted(where.rglob("*.json"))
            if file.is_file()
            for statement in (_statements_of_file(file) or ())
        ]
        if not found:
            raise FormatError(f"{path}: no outcome file in this directory; {_EXPECTED}")
        return found
    try:
        raw = where.read_bytes()
    except OSError as error:
        raise FormatError(f"{path}: cannot read the outcomes ({error.strerror})") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not valid UTF-8; {_EXPECTED}") from error
    if text.lstrip()[:1] in ("{", "["):
        return _json_outcomes(text, path)
    return _csv_outcomes(text, path)


def _statements_of_file(file: Path) -> list[Statement] | None:
    try:
        return statements_in(msgspec.json.decode(file.read_bytes()), str(file))
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OSError):
        return None


def _json_outcomes(text: str, path: str) -> list[Statement]:
    value = _json_value(text, path)
    known = statements_in(value, path)
    if known is not None:
        return known
    if isinstance(value, dict) and value:
        rows = [{"id": key, "reward": reward} for key, reward in value.items()]
    else:
        rows = value if isinstance(value, list) else []
    said = []
    for number, row in enumerate(rows, 1):
        identifier = _row_id(row) if isinstance(row, dict) else None
        if identifier is None:
            raise FormatError(f"{path}: entry {number} has no id; {_EXPECTED}")
        names = ("reward", "score", "resolved", "is_resolved", "success")
        reward = next((row[name] for name in names if row.get(name) is not None), None)
        if reward is not None and not isinstance(reward, int | float):
            raise FormatError(f"{path}: the reward of {identifier!r} is {reward!r}, not a number")
        _check_finite(reward, identifier, path)
        stop = row.get("stop_reason")
        said.append(_stated(identifier, path, reward, stop=stop))
    if not said:
        raise FormatError(f"{path}: states no outcome; {_EXPECTED}")
    return said


def _json_value(text: str, path: str) -> Any:
    """Decode a JSON value, or JSON lines as the list of their values."""
    try:
        return msgspec.json.decode(text)
    except REFUSALS as error:
        whole = why(error, text.encode())
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append(msgspec.json.decode(line))
        except REFUSALS as error:
            reason = why(error, line.encode())
            if not rows and "truncated" in reason:  # one value over several lines
                raise FormatError(f"{path}: {whole}; {_EXPECTED}") from error
            raise FormatError(f"{path}:{number}: {reason}; {_EXPECTED}") from error
    return rows


def _check_finite(reward: float | None, identifier: str, where: str) -> None:
    if reward is not None and as_finite(reward) is None:
        raise FormatError(
            f"{where}: the reward of {identifier!r} is NaN or infinite; expected a finite number, "
            "or none where the outcome is not known"
        )


def _row_id(row: dict[str, Any]) -> str | None:
    names = (
        "rollout_id", "traj_id", "trajectory_id", "trial_name", "id", "problem_id", "instance_id",
        "task_id",
    )  # fmt: skip
    return first_text(*(row.get(name) for name in names))


_TRUTH = {"true": 1.0, "false": 0.0, "": None, "null": None, "none": None}


def _csv_outcomes(text: str, path: str) -> list[Statement]:
    said = []
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if not any(cell.strip() for cell in row):
            continue
        cells = [cell.strip() for cell in row]
        try:
            value = cells[1].lower()
            reward = _TRUTH[value] if value in _TRUTH else float(value)
        except (IndexError, ValueError):
            if not said and number == 1:
                continue  # the header
            raise FormatError(
                f"{path}:{number}: expected an id and a reward, got {','.join(row)!r}"
            ) from None
        _check_finite(reward, cells[0], f"{path}:{number}")
        said.append(_stated(cells[0], path, reward))
    if not said:
        raise FormatError(f"{path}: states no outcome; {_EXPECTED}")
    return said


# --- joining -------------------------------------------------------------------------------------


class Outcomes:
    """All statements, explicit and found, and their join with rollouts.

    Attributes:
        used: the explicit ids that met a rollout.
        ambiguous: ids whose found outcome could mean several rollouts, or that files disagree on.
        shared: explicit problem ids whose outcome was given to several rollouts.
    """

    def __init__(self, explicit: Iterable[Statement] = (), found: Iterable[Statement] = ()) -> None:
        self.explicit = _by_id(explicit)
        self.found = _by_id(found)
        self.used: set[str] = set()
        self.ambiguous: set[str] = set()
        self.shared: set[str] = set()

    def unmatched(self) -> list[str]:
        """Give the explicit ids that no rollout has."""
        return [identifier for identifier in self.explicit if identifier not in self.used]

    def join(self, rollouts: Sequence[Rollout], paths: Sequence[str]) -> list[Rollout]:
        """Give the rollouts of one problem their outcomes.

        Args:
            rollouts: all of one problem.
            paths: the file that each was read from.
        """
        if not self.explicit and not self.found:
            return list(rollouts)
        self._note_shared(rollouts)
        return [
            self._explicit(rollout) or self._found(rollout, index, rollouts, paths) or rollout
            for index, rollout in enumerate(rollouts)
        ]

    def _note_shared(self, rollouts: Sequence[Rollout]) -> None:
        by_problem = [r for r in rollouts if r.rollout_id not in self.explicit]
        if len(by_problem) > 1 and by_problem[0].problem_id in self.explicit:
            self.shared.add(by_problem[0].problem_id)

    def _explicit(self, rollout: Rollout) -> Rollout | None:
        for identifier in (rollout.rollout_id, rollout.problem_id):
            statements = self.explicit.get(identifier)
            if statements is None:
                continue
            self.used.add(identifier)
            statement = self._agreed(statements)
            if statement is not None and statement.reward is not None:
                return _with_outcome(rollout, statement)
        return None

    def _found(
        self, rollout: Rollout, index: int, rollouts: Sequence[Rollout], paths: Sequence[str]
    ) -> Rollout | None:
        if rollout.reward is not None or not self.found:
            return None
        where = _directory(paths[index])
        statements = self.found.get(rollout.rollout_id)
        if statements is None:
            statements = self._of_trial_directory(where)
        if statements is None:
            statements = self.found.get(rollout.problem_id)
            if statements is None:
                return None
            nearest = _nearest(statements, where)
            directories = [_directory(path) for path in paths]
            statements = [s for s in nearest if self._means_only(s, index, directories)]
            if not statements:
                self.ambiguous.add(rollout.problem_id)
                return None
        statement = self._agreed(_nearest(statements, where))
        if statement is None or (statement.reward is None and statement.stop_reason is None):
            return None
        return _with_outcome(rollout, statement)

    def _of_trial_directory(self, where: tuple[str, ...]) -> list[Statement] | None:
        """Find the result.json of a directory above that is named after the trial itself."""
        for depth in range(len(where), 0, -1):
            inside = [
                s
                for s in self.found.get(where[depth - 1], ())
                if _directory(s.path) == where[:depth]
            ]
            if inside:
                return inside
        return None

    @staticmethod
    def _means_only(
        statement: Statement, index: int, directories: Sequence[tuple[str, ...]]
    ) -> bool:
        """Tell whether rollout ``index`` lies nearer to the statement's file than any other."""
        where = _directory(statement.path)
        depths = [_common(where, directory) for directory in directories]
        return depths[index] == max(depths) and depths.count(depths[index]) == 1

    def _agreed(self, statements: Sequence[Statement]) -> Statement | None:
        """Give the one outcome that all statements share."""
        if len({s.outcome for s in statements}) > 1:
            self.ambiguous.add(statements[0].id)
            return None
        return statements[0] if statements else None


def _by_id(statements: Iterable[Statement]) -> dict[str, list[Statement]]:
    table: dict[str, list[Statement]] = {}
    for statement in statements:
        table.setdefault(statement.id, []).append(statement)
    return table


def _with_outcome(rollout: Rollout, statement: Statement) -> Rollout:
    stop = rollout.stop_reason or statement.stop_reason
    return msgspec.structs.replace(
        rollout,
        reward=statement.reward,
        stop_reason=stop,
        status=status_of(statement.reward, stop, statement.resolved),
    )


@lru_cache(maxsize=4096)
def _directory(path: str) -> tuple[str, ...]:
    return Path(os.path.realpath(path)).parent.parts


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    depth = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        depth += 1
    return depth


def _nearest(statements: Sequence[Statement], where: tuple[str, ...]) -> list[Statement]:
    """Keep the statements whose files share the longest path with ``where``."""
    depths = [_common(_directory(s.path), where) for s in statements]
    best = max(depths, default=0)
    return [s for s, depth in zip(statements, depths, strict=True) if depth == best]
