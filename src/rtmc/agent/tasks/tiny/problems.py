"""Problems: a program with one fault, an issue that tells of one wrong result, and tests."""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from random import Random
from typing import Literal, overload

import msgspec

from rtmc.agent.tasks.base import Problem
from rtmc.agent.tasks.tiny.program import LARGEST, Function, Line, Program, make, mutations
from rtmc.errors import OptionError

__all__ = ["Knobs", "TinyProblems"]

Split = Literal["train", "test"]
Call = tuple[str, tuple[int, ...]]

TEST_SHARE = 4
"""One program in so many belongs to the test split, by a hash of what it computes."""

COUNT = 100_000

ISSUES = (
    "{call} gives {wrong}, but it should give {right}.",
    "I get {wrong} from {call}. The right result is {right}.",
    "{call} should be {right}; it is {wrong}.",
    "Wrong result: {call} returns {wrong} instead of {right}.",
)


class Knobs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How hard the problems are.

    Attributes:
        modules: files of the program, 1 to 8.
        functions: of each file, 1 to 6.
        lines: of each function, 1 to 7.
        depth: calls from the function of the issue to the one with the fault; less than there are
            functions.
        cue: what says how it should be: a remark at each ``line``, one text for each ``function``,
            or ``none``, which leaves the tests.
        visible: share of the tests that the agent can see and run.
    """

    modules: int = 3
    functions: int = 2
    lines: int = 3
    depth: int = 1
    cue: Literal["line", "function", "none"] = "line"
    visible: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what cannot be made.

        Raises:
            OptionError: a knob is out of its range.
        """
        for name, least, most in (
            ("modules", 1, 8), ("functions", 1, 6), ("lines", 1, 7), ("visible", 0, 1),
            ("depth", 0, self.modules * self.functions - 1),
        ):  # fmt: skip
            if not least <= getattr(self, name) <= most:
                raise OptionError(
                    f"tiny: {name} is {getattr(self, name)}; expected {least} to {most}"
                )


class TinyProblems(Sequence[Problem]):
    """The problems of one split at some knobs; each is made when it is asked for.

    Splits are disjoint: a program belongs to one by a hash of what it computes, names left aside.
    """

    def __init__(self, knobs: Knobs = Knobs(), split: Split = "train") -> None:
        """Choose them; none is made yet."""
        self.knobs, self.split = knobs, split
        written = msgspec.json.encode(knobs)
        other = "" if knobs == Knobs() else f"-{blake2b(written, digest_size=3).hexdigest()}"
        self._prefix = f"tiny-{split}{other}"  # problems of other knobs are other problems
        self._made = lru_cache(maxsize=256)(self._make)

    def __len__(self) -> int:
        return COUNT

    @overload
    def __getitem__(self, index: int) -> Problem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Problem]: ...
    def __getitem__(self, index: int | slice) -> Problem | Sequence[Problem]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(COUNT))]
        if not -COUNT <= index < COUNT:
            raise IndexError(index)
        return self._made(index % COUNT)

    def _make(self, index: int) -> Problem:
        k = self.knobs
        rng = Random(f"tiny {msgspec.json.encode(k).decode()} {self.split} {index}")
        while True:
            program = make(rng, k.modules, k.functions, k.lines, k.depth)
            if split_of(program) != self.split:
                continue
            tests = _tests(rng, program)
            found = _fault(rng, program, tests)
            if found:
                return self._problem(rng, index, program, tests, *found)

    def _problem(
        self,
        rng: Random,
        index: int,
        program: Program,
        tests: dict[str, dict[Call, int]],
        number: int,
        line: Line,
        call: Call,
    ) -> Problem:
        """Write it down."""
        cue, guilty = self.knobs.cue, program[program.chain[-1]]
        faulty = program.changed(guilty.with_line(number, line))
        name, args = call
        right, wrong = (each.run()[name](*args) for each in (program, faulty))
        issue = rng.choice(ISSUES).format(call=_written(call), wrong=wrong, right=right)
        shown = {test: tests[test] for test in tests if rng.random() < self.knobs.visible}
        names = [f.name for f in program.functions]
        order = rng.sample(names, len(names))  # where a function stands says nothing of its calls
        files = _sources(faulty, program, cue, order)
        path = f"{guilty.module}.py"
        text = files[path].splitlines()
        start = next(at for at, row in enumerate(text, 1) if row.startswith(f"def {guilty.name}("))
        at = start + number + (2 if cue == "function" else 1)
        return Problem(
            f"{self._prefix}-{index}",
            issue,
            {
                **_bytes(files),
                **_bytes(_test_files(program, shown)),
            },
            _bytes(_test_files(program, tests)),
            tuple(f"test_{_home(program, name)}.py::{name}" for name in tests),
            {
                "knobs": self.knobs,
                "file": path,
                "function": guilty.name,
                "line": at,
                "wrong": text[at - 1],
                "right": _line_text(guilty.lines[number], guilty.lines[number], cue),
                "chain": program.chain,
            },
        )


def split_of(program: Program) -> Split:
    """Tell the split of a program, by what it computes: its names do not count."""
    text = repr([(f.parameters, f.lines) for f in program.functions])
    for number, function in enumerate(program.functions):
        text = text.replace(f"'{function.name}'", f"f{number}")
    hashed = blake2b(text.encode(), digest_size=8).digest()
    return "test" if int.from_bytes(hashed, "big") % TEST_SHARE == 0 else "train"


def _tests(rng: Random, program: Program) -> dict[str, dict[Call, int]]:
    """Choose what each test asserts: calls and their right values."""
    space = program.run()
    tests: dict[str, dict[Call, int]] = {}
    for function in program.functions:
        values: list[tuple[Call, int]] = []
        while len({value for _, value in values}) < 2:
            chosen = rng.sample(function.arguments(), 3)
            values = [((function.name, args), space[function.name](*args)) for args in chosen]
        tests[f"test_{function.name}"] = dict(values)
    return tests


def _fault(
    rng: Random, program: Program, tests: dict[str, dict[Call, int]]
) -> tuple[int, Line, Call] | None:
    """Choose a fault that the tests see, and a call of the chain's first function that shows it."""
    guilty, entry = program[program.chain[-1]], program[program.chain[0]]
    own = tests[f"test_{guilty.name}"]
    tested = {call for asserts in tests.values() for call in asserts}
    calls = [(entry.name, args) for args in entry.arguments() if (entry.name, args) not in tested]
    right = program.run()
    for number, line in rng.sample(options := list(mutations(guilty)), len(options)):
        wrong = program.changed(guilty.with_line(number, line)).run()
        if all(wrong[name](*args) == value for (name, args), value in own.items()):
            continue
        for name, args in rng.sample(calls, len(calls)):
            if right[name](*args) != wrong[name](*args) and abs(wrong[name](*args)) <= LARGEST:
                return number, line, (name, args)
    return None


def _written(call: Call) -> str:
    return f"{call[0]}({', '.join(map(str, call[1]))})"


def _line_text(line: Line, right: Line, cue: str) -> str:
    """Write a line as it stands in a file; the remark says what would be right."""
    code = f"    {line.code()}"
    return f"{code}  # {right.words()}" if cue == "line" else code


def _sources(faulty: Program, right: Program, cue: str, order: list[str]) -> dict[str, str]:
    """Write the modules."""
    files = {}
    for module, functions in faulty.modules().items():
        here = sorted(functions, key=lambda f: order.index(f.name))
        called = {name for function in functions for name in function.calls()}
        homes = {_home(faulty, name) for name in called} - {module}
        parts = ["".join(_import(home, faulty, called) for home in sorted(homes))] if homes else []
        parts += [_function_text(function, right[function.name], cue) for function in here]
        files[f"{module}.py"] = "\n\n".join(parts)
    return files


def _import(home: str, program: Program, called: set[str]) -> str:
    names = sorted(name for name in called if _home(program, name) == home)
    return f"from {home} import {', '.join(names)}\n"


def _function_text(function: Function, right: Function, cue: str) -> str:
    said = "; ".join(
        f"{line.target} is {line.words()}" if line.target else f"give {line.words()}"
        for line in right.lines
    )
    return "".join(
        f"{text}\n"
        for text in (
            f"def {function.name}({', '.join(function.parameters)}):",
            *([f'    """{said[0].upper()}{said[1:]}."""'] if cue == "function" else []),
            *(_line_text(*pair, cue) for pair in zip(function.lines, right.lines, strict=True)),
        )
    )


def _home(program: Program, name: str) -> str:
    """Name the module of a function, or of a test of it."""
    return program[name.removeprefix("test_")].module


def _test_files(program: Program, tests: dict[str, dict[Call, int]]) -> dict[str, str]:
    """Write the tests, a file for each module that has some."""
    files: dict[str, str] = {}
    for module, functions in program.modules().items():
        names = [name for name in tests if _home(program, name) == module]
        if not names:
            continue
        own = {name.removeprefix("test_") for name in names}
        imported = ", ".join(sorted(f.name for f in functions if f.name in own))
        parts = [f"from {module} import {imported}\n"]
        for name in names:
            asserts = [
                f"    assert {_written(call)} == {value}\n" for call, value in tests[name].items()
            ]
            parts.append(f"def {name}():\n{''.join(asserts)}")
        files[f"test_{module}.py"] = "\n\n".join(parts)
    return files


def _bytes(files: dict[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}
