"""Same work, same key; other work, other key: the tables of ``pairs_meet`` and ``pairs_differ``."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from rtmc.rollouts import Rollout
from rtmc.signatures import CodingSigner

from .pairs_differ import DIFFER, EXACT, STATES_DIFFER, Exact
from .pairs_meet import MEET, STATES_MEET, Pair, Run, StatePair


def rollout(what: Run) -> Rollout:
    return Rollout(
        "problem", "rollout", what.steps, root=what.root, persistent_shell=what.persistent
    )


def action(what: Run) -> str:
    return CodingSigner(("paper",)).steps(rollout(what))[-1].actions[0]


def state(what: Run, level: str) -> str:
    return CodingSigner((level,)).steps(rollout(what))[-1].states[0]


def each(rows: Sequence[Any]) -> list[Any]:
    """Name every row by its note, and number those that share one."""
    seen: dict[str, int] = {}
    named = []
    for row in rows:
        name = f"{row.level}: {row.note}" if isinstance(row, StatePair) else row.note
        seen[name] = seen.get(name, 0) + 1
        named.append(
            pytest.param(row, id=f"{name} {seen[name]}".encode("ascii", "replace").decode())
        )
    return named


@pytest.mark.parametrize("pair", each(MEET))
def test_same_work_has_one_key(pair: Pair) -> None:
    assert action(pair.a) == action(pair.b)


@pytest.mark.parametrize("pair", each(DIFFER))
def test_other_work_has_another_key(pair: Pair) -> None:
    assert action(pair.a) != action(pair.b)


@pytest.mark.parametrize("row", each(EXACT))
def test_key_is_as_specified(row: Exact) -> None:
    assert re.fullmatch(row.pattern, action(row.what))


@pytest.mark.parametrize("pair", each(STATES_MEET))
def test_same_progress_has_one_state(pair: StatePair) -> None:
    assert state(pair.a, pair.level) == state(pair.b, pair.level)


@pytest.mark.parametrize("pair", each(STATES_DIFFER))
def test_other_progress_has_another_state(pair: StatePair) -> None:
    assert state(pair.a, pair.level) != state(pair.b, pair.level)


def test_tables_are_large_enough() -> None:
    assert len(MEET) >= 170
    assert len(DIFFER) >= 170
    assert len(EXACT) >= 60
    assert len(STATES_MEET) + len(STATES_DIFFER) >= 25
