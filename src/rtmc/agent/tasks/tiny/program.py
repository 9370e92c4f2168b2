"""Make up a small program: modules of functions of integers, which call each other.

A function is a few lines, each one operation on what is known by then. A line can be written with a
remark that says in words what it should do, which is how a fault next to it can be seen.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from random import Random

__all__ = ["Function", "Line", "Program", "make", "mutations"]

MODULES = (
    "bank barn book cart clock desk farm fleet garden harbor house kitchen lake library market "
    "mill museum office park port road school shop station theater tower train valley village"
).split()
NAMES = (
    "amount balance bonus charge cost count credit debt deposit discount dose fare fee fine gain "
    "gap grade grant height income level limit load loss margin mass offer pace pay price profit "
    "quota reach rate ratio rent salary sale score share size speed stake stock surplus tax "
    "tip toll total value wage weight width worth"
).split()
Run = Callable[..., int]

PLAIN = {"+": "plus", "-": "minus", "*": "times"}
CHOICE = {"max": "larger", "min": "smaller"}
NUMBERS = range(1, 10)
ARGUMENTS = range(10)

LARGEST = 99
"""No function gives more, at any arguments that are asked for."""

LEAST_VALUES = 4
"""A function gives so many different values at least."""


@dataclass(frozen=True, slots=True)
class Line:
    """One operation.

    Attributes:
        target: the variable that gets it; empty where it is returned.
        kind: ``+ - *``, ``max``, ``min``, ``if`` (first if second > third, else fourth), or the
            name of a function.
        operands: variables and numbers.
    """

    target: str
    kind: str
    operands: tuple[str, ...]

    def code(self) -> str:
        """Write it as Python."""
        value = self.value()
        return f"{self.target} = {value}" if self.target else f"return {value}"

    def value(self) -> str:
        """Write what is on the right."""
        if self.kind in PLAIN:
            return f" {self.kind} ".join(self.operands)
        if self.kind == "if":
            first, second, third, fourth = self.operands
            return f"{first} if {second} > {third} else {fourth}"
        return f"{self.kind}({', '.join(self.operands)})"

    def words(self) -> str:
        """Say it in words."""
        if self.kind in PLAIN:
            return f" {PLAIN[self.kind]} ".join(self.operands)
        if self.kind in CHOICE:
            return f"the {CHOICE[self.kind]} of {' and '.join(self.operands)}"
        if self.kind == "if":
            first, second, third, fourth = self.operands
            return f"{first} if {second} is over {third}, else {fourth}"
        return f"the {self.kind} of {' and '.join(self.operands)}"


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    Attributes:
        name: unique in its program.
        module: where it is.
        parameters: one or two.
        lines: the last one returns.
    """

    name: str
    module: str
    parameters: tuple[str, ...]
    lines: tuple[Line, ...]

    def code(self) -> str:
        """Write it as Python, without any remark."""
        head = f"def {self.name}({', '.join(self.parameters)}):\n"
        return head + "".join(f"    {line.code()}\n" for line in self.lines)

    def with_line(self, number: int, line: Line) -> "Function":
        """Put another line in the place of one."""
        return replace(self, lines=(*self.lines[:number], line, *self.lines[number + 1 :]))

    def arguments(self) -> list[tuple[int, ...]]:
        """List all arguments that it is asked for."""
        return list(product(ARGUMENTS, repeat=len(self.parameters)))

    def calls(self) -> list[str]:
        """Name the functions that it calls."""
        known = {*PLAIN, *CHOICE, "if"}
        return [line.kind for line in self.lines if line.kind not in known]


@dataclass(frozen=True, slots=True)
class Program:
    """Some functions.

    Attributes:
        functions: in an order in which each calls later ones only.
        chain: names of functions, each of which calls the next.
    """

    functions: tuple[Function, ...]
    chain: tuple[str, ...]

    def __getitem__(self, name: str) -> Function:
        return next(function for function in self.functions if function.name == name)

    def changed(self, function: Function) -> "Program":
        """Put another function in the place of the one of that name."""
        return replace(
            self,
            functions=tuple(function if f.name == function.name else f for f in self.functions),
        )

    def modules(self) -> dict[str, list[Function]]:
        """List the functions of each module."""
        found: dict[str, list[Function]] = {}
        for function in self.functions:
            found.setdefault(function.module, []).append(function)
        return found

    def run(self) -> dict[str, Run]:
        """Give the functions as Python runs them, by name."""
        space: dict[str, Run] = {}
        exec("".join(function.code() for function in self.functions), space)
        return space


def make(rng: Random, modules: int, functions: int, lines: int, depth: int) -> Program:
    """Make up a program.

    Args:
        rng: the source of chance.
        modules: how many.
        functions: of each module.
        lines: of each function.
        depth: calls from the first function of the chain to the last.
    """
    places = rng.sample(MODULES, modules)
    names = rng.sample(NAMES, modules * functions)
    owners = [place for place in places for _ in range(functions)]
    # The chain goes through the modules in turn; where it is longer, within them.
    last = modules * functions - 1
    step = max(1, min(functions, last // depth)) if depth else 1
    first = rng.randrange(last - step * depth + 1)
    chain = [first + step * link for link in range(depth + 1)]
    made: list[Function] = []
    space: dict[str, Run] = {}
    for number in reversed(range(modules * functions)):
        callee = None
        if number in chain[:-1]:
            callee = made[chain[chain.index(number) + 1] - number - 1]
        elif made and number not in chain and rng.random() < 0.5:
            callee = rng.choice(made)
        while True:
            function = _function(rng, names[number], owners[number], lines, callee)
            exec(function.code(), space)
            values = {space[function.name](*arguments) for arguments in function.arguments()}
            if len(values) >= LEAST_VALUES and max(map(abs, values)) <= LARGEST:
                break
        made.insert(0, function)
    return Program(tuple(made), tuple(names[number] for number in chain))


def _function(rng: Random, name: str, module: str, lines: int, callee: Function | None) -> Function:
    parameters = ("x", "y")[: rng.choice((1, 2, 2))]
    known, made = list(parameters), []
    calling = rng.randrange(lines) if callee else -1
    for number in range(lines):
        target = "abcdefgh"[number] if number < lines - 1 else ""
        fresh = known[-1]  # the value of the line before is used, so that no line is idle
        if callee and number == calling:
            operands = (fresh, *(_operand(rng, known) for _ in callee.parameters[1:]))
            line = Line(target, callee.name, operands)
        else:
            line = _line(rng, target, fresh, known)
        made.append(line)
        known.append(target)
    return Function(name, module, parameters, tuple(made))


def _line(rng: Random, target: str, fresh: str, known: list[str]) -> Line:
    kind = rng.choice(("+", "+", "-", "-", "*", "max", "min", "if"))
    other = _operand(rng, known, fresh)
    if kind == "if":
        bound = str(rng.choice(NUMBERS))
        return Line(target, kind, (other, fresh, bound, _operand(rng, known, other)))
    operands = [fresh, other]
    rng.shuffle(operands)
    return Line(target, kind, tuple(operands))


def _operand(rng: Random, known: list[str], unlike: str = "") -> str:
    """Choose a variable or a number."""
    others = [name for name in known if name != unlike]
    return rng.choice(others) if others and rng.random() < 0.5 else str(rng.choice(NUMBERS))


def mutations(function: Function) -> Iterator[tuple[int, Line]]:
    """List the faults that a function can have, as the number of a line and what stands there."""
    for number, line in enumerate(function.lines):
        known = [*function.parameters, *(before.target for before in function.lines[:number])]
        for family in (PLAIN, CHOICE):
            for other in family if line.kind in family else ():
                if other != line.kind:
                    yield number, replace(line, kind=other)
        first, last = line.operands[0], line.operands[-1]
        if first != last and line.kind not in ("+", "*", *CHOICE):
            yield number, replace(line, operands=(last, *line.operands[1:-1], first))
        for place, operand in enumerate(line.operands):
            others = (
                [str(n) for n in NUMBERS if abs(n - int(operand)) in (1, 2)]
                if operand.isdigit()
                else [name for name in known if name not in line.operands]
            )
            for other in others:
                operands = (*line.operands[:place], other, *line.operands[place + 1 :])
                yield number, replace(line, operands=operands)
