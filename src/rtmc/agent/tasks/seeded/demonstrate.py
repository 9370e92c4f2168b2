"""Find a program that behaves one way with the bug, and another without it."""

import inspect
import re
from collections.abc import Mapping, Sequence

import msgspec

from rtmc.agent.sandbox import Sandbox
from rtmc.agent.tasks.seeded import runner

__all__ = ["Example", "Outcome", "demonstrate"]

MOST_CHARACTERS = 1200
"""Length of what a program prints."""
SECONDS = 60.0
"""Wall time of all programs together."""
OURS = ("NameError", "ModuleNotFoundError", "ImportError")
"""Errors of a program that lacks something."""
BARE = {"", "True", "False", "None"}
"""Outputs that say little."""
BY_CHANCE = re.compile(r"0x[0-9a-f]{6,}|\{[^{}:]+,[^{}:]*\}")
"""An address, or a set, whose order changes from run to run."""
NOT_ITEMS = re.compile(r"object is not iterable|not supported between instances")
"""What comes of listing or sorting something that is not for it."""


class Outcome(msgspec.Struct, frozen=True):
    """What a program does.

    Attributes:
        printed: on stdout.
        error: the exception that ended it, as ``Type: message``.
    """

    printed: str
    error: str | None = None


class Example(msgspec.Struct, frozen=True):
    """A program that shows a bug.

    Attributes:
        program: runs in the workspace.
        expected: what it does without the bug.
        got: what it does with the bug.
    """

    program: str
    expected: Outcome
    got: Outcome


def demonstrate(
    sandbox: Sandbox,
    programs: Sequence[str],
    broken: Mapping[str, bytes],
    whole: Mapping[str, bytes],
) -> Example | None:
    """Run programs with the bug and without, and take the one that shows it best.

    Args:
        sandbox: with the workspace.
        programs: to be tried.
        broken: the files that differ, with the bug; they are in place afterwards.
        whole: the same files without.
    """
    if not programs:
        return None
    sandbox.put(whole)
    expected = _run(sandbox, programs)
    sandbox.put(broken)
    got = _run(sandbox, programs)
    pairs = zip(programs, expected, got, strict=True)
    shown = [Example(p, e, g) for p, e, g in pairs if e and g and _differ(e, g) and _told(p, e, g)]
    for example in sorted(shown, key=_cost)[:3]:
        again = _run(sandbox, [example.program])[0]
        sandbox.put(whole)
        before = _run(sandbox, [example.program])[0]
        sandbox.put(broken)
        if (before, again) == (example.expected, example.got):
            return example
    return None


def _run(sandbox: Sandbox, programs: Sequence[str]) -> list[Outcome | None]:
    result = sandbox.exec(
        [*sandbox.python, "-c", inspect.getsource(runner)],
        stdin=msgspec.json.encode(programs),
        timeout=SECONDS,
    )
    try:
        return msgspec.json.decode(result.output, type=list[Outcome | None])
    except msgspec.MsgspecError:  # it was stopped, or printed more than is kept
        return [None] * len(programs)


def _told(program: str, *outcomes: Outcome) -> bool:
    """Tell whether an issue can say what happens: it is short, not by chance, and not our doing."""
    texts = [outcome.printed + (outcome.error or "") for outcome in outcomes]
    if any(BY_CHANCE.search(text) for text in texts) or len("".join(texts)) > MOST_CHARACTERS:
        return False
    return not (_of_items(program) and any(NOT_ITEMS.search(text) for text in texts))


def _of_items(program: str) -> bool:
    return "print(list(" in program or "print(sorted(" in program


def _differ(expected: Outcome, got: Outcome) -> bool:
    """Tell whether one sees that the outcomes are not the same."""
    if expected.error and expected.error.startswith(OURS):
        return False
    return expected.error != got.error or _seen(expected) != _seen(got)


def _seen(outcome: Outcome) -> list[str]:
    return [line.rstrip() for line in outcome.printed.rstrip().splitlines()]


def _cost(example: Example) -> tuple[bool, bool, int, str]:
    """Order examples: values tell more than their items, or than True, False and nothing do.

    Of those that tell as much, the shorter one comes first.
    """
    printed = {example.expected.printed.strip(), example.got.printed.strip()}
    size = len(example.program) + len(example.expected.printed + example.got.printed)
    return _of_items(example.program), printed <= BARE, size, example.program
