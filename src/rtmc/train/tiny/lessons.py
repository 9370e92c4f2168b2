"""Made-up rollouts of mixed quality on ``tiny`` problems, for the start checkpoint to imitate.

A pupil works on a problem whose answer it knows, and does what an agent that does not know would
do: it looks in the wrong file, changes a line that was right, does not test, gives up. How often is
said by ``Habits``. Nothing runs: what tools would say is worked out here, word for word as the real
ones say it to the shorthand (a test compares them).
"""

import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from random import Random

import msgspec

from rtmc.agent.models.base import Message
from rtmc.agent.models.shorthand import END, GO, LINE, Shorthand, code
from rtmc.agent.tasks import Problem

__all__ = ["Desk", "Habits", "Lesson", "lesson"]


class Habits(msgspec.Struct, frozen=True):
    """How often the pupil does what a good agent would; probabilities.

    Attributes:
        search: looks for the function of the issue, and not in a file at random.
        follow: where it sees no fault, goes to where a called function comes from.
        patience: where it sees no fault, changes nothing there.
        place: changes the line that is wrong, and not another of that file.
        fix: writes there what the remark says, and not something else.
        test: runs the tests after a change.
        retry: takes a change back when a test fails, and looks again.
        give_up: finishes without a change, at each step.
    """

    search: float = 0.8
    follow: float = 0.85
    patience: float = 0.75
    place: float = 0.8
    fix: float = 0.8
    test: float = 0.6
    retry: float = 0.6
    give_up: float = 0.02


@dataclass(frozen=True, slots=True)
class Lesson:
    """One rollout, as tokens.

    Attributes:
        ids: the record.
        said: whether the pupil said a token.
        parts: at the last word of a line with a remark, whether code and remark part there; None
            elsewhere.
        solved: whether the program is as it should be at the end.
    """

    ids: list[int]
    said: list[bool]
    parts: list[bool | None]
    solved: bool


class Desk:
    """The workspace of a problem, and what the tools would say of it."""

    def __init__(self, problem: Problem) -> None:
        """Lay the files out."""
        self.files = {path: data.decode() for path, data in problem.files.items()}
        self._undo: list[tuple[str, str]] = []

    def view(self, path: str) -> str:
        """Show a file, or the list of files."""
        if path == ".":
            return "\n".join(sorted(self.files))
        if path not in self.files:
            return f"there is no {path}"
        lines = self.files[path].splitlines()
        return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, 1))

    def search(self, pattern: str) -> str:
        """Show the lines that hold a text."""
        found = [
            f"{path}:{number}:{line}"
            for path in sorted(self.files)
            for number, line in enumerate(self.files[path].splitlines(), 1)
            if pattern in line
        ]
        return "\n".join(found) or f"nothing matches {pattern}"

    def replace(self, path: str, old: str, new: str) -> str:
        """Change a text that occurs once."""
        text = self.files.get(path, "")
        if text.count(old) != 1:
            times = text.count(old)
            return f"old_str occurs {times} times" if times else "old_str does not occur"
        self._undo.append((path, text))
        self.files[path] = text.replace(old, new)
        return f"edited {path}; it reads now:"

    def undo(self, path: str) -> str:
        """Take the last change back."""
        if not self._undo or self._undo[-1][0] != path:
            return f"there is no edit of {path} to undo"
        path, self.files[path] = self._undo.pop()
        return f"took back the last edit of {path}"

    def test(self) -> str:
        """Run the tests; show what pytest says of each that failed, and the counts."""
        space: dict[str, Callable[..., int]] = {}
        for path, text in self.files.items():
            if not path.startswith("test_"):
                exec(re.sub(r"^from .*$", "", text, flags=re.MULTILINE), space)
        failed, passed = [], 0
        for path in sorted(self.files):
            for name, asserts in _tests(self.files[path]) if path.startswith("test_") else ():
                if all(_gives(space[called], args, value) for called, args, value in asserts):
                    passed += 1
                else:
                    failed.append(f"FAILED {path}::{name}")
        if not failed and not passed:
            return "no tests ran in 0.00s"
        counts = [f"{len(failed)} failed"] * bool(failed) + [f"{passed} passed"] * bool(passed)
        return "\n".join([*failed, f"{', '.join(counts)} in 0.00s"])


def _tests(text: str) -> Iterator[tuple[str, list[tuple[str, tuple[int, ...], int]]]]:
    """List the tests of a file, and what each asserts."""
    for part in text.split("\n\n\n")[1:]:
        head, *rows = part.strip().splitlines()
        asserts = []
        for row in rows:
            name, args, value = re.findall(r"assert (\w+)\((.*)\) == (.*)", row)[0]
            asserts.append((name, tuple(map(int, args.split(", "))), int(value)))
        yield head.removeprefix("def ").removesuffix("():"), asserts


def _gives(function: Callable[..., int], args: tuple[int, ...], value: int) -> bool:
    try:
        return function(*args) == value
    except NameError:  # of a variable that is not set there
        return False


def lesson(problem: Problem, habits: Habits, chat: Shorthand, rng: Random) -> Lesson:
    """Play one rollout."""
    desk = Desk(problem)
    ids = chat.begin([_said(problem.text)])
    said = [False] * len(ids)
    turns = _Pupil(problem, desk, habits, chat, rng).work()
    turn = next(turns, None)
    while turn is not None:
        written = chat.encode([*turn, END])
        answer = _act(desk, turn)
        seen = chat.go_on([_said(answer)], written[-1])
        ids += [*written, *seen]
        said += [True] * len(written) + [False] * len(seen)
        try:
            turn = turns.send(answer)
        except StopIteration:
            turn = None
    last = chat.encode(["finish", END])
    ids += last
    said += [True] * len(last)
    parts = _where_they_part([chat.words[id] for id in ids])
    return Lesson(ids, said, parts, _is_solved(problem, desk))


def _where_they_part(words: list[str]) -> list[bool | None]:
    """Compare the code of each line that was shown with its remark."""
    found: list[bool | None] = [None] * len(words)
    start = 0
    for at, word in enumerate(words):
        if word == LINE:
            start = at
        is_last = at + 1 == len(words) or words[at + 1] in (LINE, GO)
        line = words[start + 1 : at + 1]
        if is_last and "#" in line and GO not in line:
            middle = line.index("#")
            found[at] = line[1 if line[0] == "return" else 2 : middle] != line[middle + 1 :]
    return found


def _said(text: str) -> Message:
    return {"role": "user", "content": text}


def _act(desk: Desk, turn: list[str]) -> str:
    """Carry out a turn."""
    action, words = turn[0], turn[1:]
    path = f"{words[0]}.py" if words else "."
    if action == "search":
        return desk.search(f"def {words[0]}")
    if action == "view":
        return desk.view(path)
    if action == "replace":
        at = words.index("by")
        return desk.replace(path, code(words[1:at]), code(words[at + 1 :]))
    return desk.undo(path) if action == "undo" else desk.test()


def _is_solved(problem: Problem, desk: Desk) -> bool:
    """Say whether nothing but the faulty line was changed, and that to what it should be."""
    facts = problem.facts
    right = {path: data.decode() for path, data in problem.files.items()}
    lines = right[facts["file"]].split("\n")
    lines[facts["line"] - 1] = facts["right"]
    right[facts["file"]] = "\n".join(lines)
    return right == desk.files


@dataclass(slots=True)
class _Pupil:
    """Who plays: what it knows, and what it does with some chance."""

    problem: Problem
    desk: Desk
    habits: Habits
    chat: Shorthand
    rng: Random

    def work(self) -> Generator[list[str], str, None]:
        """Look, change, test, until it has enough; it does not say that it finishes."""
        modules = sorted(path[:-3] for path in self.desk.files if not path.startswith("test_"))
        entry = self.problem.facts["chain"][0]
        if self.does("search"):
            found = yield ["search", entry]
            module = found.partition(".py:")[0]
        else:
            if self.rng.random() < 0.3:
                yield ["view"]
            module = self.rng.choice(modules)
        changes = 0
        for _ in range(8):
            if self.does("give_up"):
                return
            text = yield ["view", module]
            turn = self.change(module, text)
            if turn is None:
                module = self.next_module(module, entry, modules)
                continue
            yield from self.carry_out(turn)
            if not self.does("test"):
                return
            report = yield ["test"]
            changes += 1
            if "failed" not in report or changes == 3 or not self.does("retry"):
                return
            yield ["undo", module]

    def does(self, habit: str) -> bool:
        """Let chance decide."""
        return self.rng.random() < getattr(self.habits, habit)

    def change(self, module: str, text: str) -> list[str] | None:
        """Choose what to change in a file, if anything."""
        facts = self.problem.facts
        is_here = f"{module}.py" == facts["file"]
        if not is_here and self.does("patience"):
            return None
        rows = [line for line in text.split("\n") if "  # " in line]
        rows = [row.partition("\t")[2].strip() for row in rows]
        wrong, right = facts["wrong"].strip(), facts["right"].strip()
        if is_here and self.does("place"):
            row, new = wrong, right if self.does("fix") else None
        else:
            row, new = self.rng.choice(rows), None
        old = self.chat.words_in(row)
        before = old[: old.index("#")]
        after = self.chat.words_in(new) if new else old
        after = after[: after.index("#")] if new else self.slip(before)
        return ["replace", module, *before, "by", *after]

    def slip(self, words: list[str]) -> list[str]:
        """Write something else."""
        start = 1 if words[0] == "return" else 2
        while True:
            at = self.rng.randrange(start, len(words))
            for kind in _KINDS:
                if words[at] in kind:
                    new = self.rng.choice([word for word in kind if word != words[at]])
                    return [*words[:at], new, *words[at + 1 :]]

    def carry_out(self, turn: list[str]) -> Generator[list[str], str, None]:
        """Change a text; where it stands there more than once, name its remark too."""
        answer = yield turn
        if "occurs" not in answer:
            return
        at = turn.index("by")
        old = code(turn[2:at])
        text = self.desk.files[f"{turn[1]}.py"]
        rows = [line.strip() for line in text.split("\n") if f"{old}  # " in line]
        facts = self.problem.facts
        row = facts["wrong"].strip() if facts["wrong"].strip() in rows else self.rng.choice(rows)
        words = self.chat.words_in(row)
        remark = words[words.index("#") :]
        yield [*turn[:at], *remark, *turn[at:], *remark]

    def next_module(self, module: str, entry: str, modules: list[str]) -> str:
        """Go where a called function comes from, or anywhere."""
        chain = self.problem.facts["chain"]
        homes = [self.home(name) for name in chain]
        if self.does("follow"):
            if module in homes[:-1]:
                return homes[len(homes) - 1 - homes[::-1].index(module) + 1]
            return homes[0]
        return self.rng.choice([other for other in modules if other != module])

    def home(self, name: str) -> str:
        """Name the module of a function."""
        return next(path[:-3] for path, text in self.desk.files.items() if f"def {name}(" in text)


_KINDS = (("+", "-", "*"), ("max", "min"), tuple("xyabc"), tuple("123456789"))
