"""Work on tiny problems without a model: by rules, with mistakes, from what the tools say alone.

Each rollout is as careful as its seed has it, so that some succeed and some fail, in ways that a
model has too: it looks in the wrong file, mends the wrong line, trusts a change it has not tested.
"""

import re
from collections.abc import Generator, Iterator
from random import Random

from rtmc.agent.models.base import Dialogue

__all__ = ["mixed", "oracle"]

Work = Generator[str, str, None]
"""Says a turn, and is sent what came back."""

_REMARKED = re.compile(r"^\s*(\d+)\t(    .*?)  # (.*)$", re.MULTILINE)
_DESCRIBED = re.compile(r'    """(.*)\."""$')
_NUMBERED = re.compile(r"^\s*(\d+)\t(.*)$", re.MULTILINE)
_OPERAND = r"([a-z]|\d+)"
_WORDS = (
    (rf"the larger of {_OPERAND} and {_OPERAND}", r"max(\1, \2)"),
    (rf"the smaller of {_OPERAND} and {_OPERAND}", r"min(\1, \2)"),
    (rf"{_OPERAND} if {_OPERAND} is over {_OPERAND}, else {_OPERAND}", r"\1 if \2 > \3 else \4"),
    (rf"the (\w+) of {_OPERAND} and {_OPERAND}", r"\1(\2, \3)"),
    (rf"the (\w+) of {_OPERAND}", r"\1(\2)"),
    (rf"{_OPERAND} plus {_OPERAND}", r"\1 + \2"),
    (rf"{_OPERAND} minus {_OPERAND}", r"\1 - \2"),
    (rf"{_OPERAND} times {_OPERAND}", r"\1 * \2"),
)


def call(name: str, **arguments: object) -> str:
    """Write a call as a model without native tools does."""
    rows = "".join(f"<parameter={key}>{value}</parameter>\n" for key, value in arguments.items())
    return f"<function={name}>\n{rows}</function>"


def view(path: str) -> str:
    """Look at a file."""
    return call("str_replace_editor", command="view", path=path)


def change(path: str, old: str, new: str) -> str:
    """Change a text that occurs once."""
    return call("str_replace_editor", command="str_replace", path=path, old_str=old, new_str=new)


def mixed(dialogue: Dialogue) -> str:
    """Say the next turn; it follows from the dialogue alone."""
    issue = str(dialogue.messages[1]["content"])
    said = [m["content"] for m in dialogue.messages[2:] if m["role"] != "assistant"]
    work = _work(issue, Random(dialogue.seed))
    turn = next(work)
    for text in said:
        turn = work.send(text)
    return turn


def oracle(file: str, line: int, right: str) -> list[str]:
    """Mend a fault whose place is known, test and finish.

    Args:
        file: its path.
        line: its number, from 1.
        right: what should stand there.
    """
    command = f"sed -i '{line}s/.*/{re.escape(right).replace('/', chr(92) + '/')}/' {file}"
    return [view(file), call("bash", command=command), call("bash", command="pytest -q"),
            call("finish")]  # fmt: skip


def _work(issue: str, rng: Random) -> Work:
    """Find the fault, mend it, test it, finish: as carefully as chance has it."""
    care = rng.uniform(0.3, 1.0)

    def careful() -> bool:
        return rng.random() < care

    found = re.search(r"(\w+)\([\d, ]*\)", issue)
    name = found[1] if found else ""
    if rng.random() < 0.3:
        yield call("think", thought=f"I look for {name} first.")
    if rng.random() < 0.1:
        yield "<function=bash>\n<parameter=cmd>ls</parameter>\n</function>"
    place = yield from _locate(name, rng, careful())
    fixed = None
    seen: set[str] = set()
    while place and place not in seen and len(seen) < 6:
        seen.add(place)
        text = yield view(place)
        fixes = list(_faults(text)) if careful() else []
        if not fixes and not careful():
            fixes = list(_guesses(text, rng))
        if fixes:
            fixed = place, rng.choice(fixes), text
            break
        place = yield from _next_place(text, name, rng)
    if fixed is None:
        yield call("bash", command="python -m pytest -q")
        yield call("finish")
        return
    path, (old, new), text = fixed
    if not careful():
        new = _slip(new, rng)
    if rng.random() < 0.2:
        yield call("str_replace_editor", command="create", path="check.py",
                   file_text=f"from {path[:-3]} import *\nprint('checked')")  # fmt: skip
        yield call("bash", command="python check.py; rm check.py")
    yield change(path, *_unique(text, old, new))
    if careful():
        report = yield call("bash", command=rng.choice(("pytest -q", "python -m pytest -q")))
        if "failed" in report and careful():
            yield call("str_replace_editor", command="undo_edit", path=path)
            text = yield view(path)
            for right in list(_faults(text))[:1]:
                yield change(path, *_unique(text, *right))
                yield call("bash", command="pytest -q")
    while rng.random() < 0.02:
        yield "I think that this is it."
    yield call("finish")


def _locate(name: str, rng: Random, careful: bool) -> Generator[str, str, str]:
    """Find the file of a function."""
    if careful:
        text = yield call("search", pattern=f"def {name}\\(")
        found = re.search(r"^(\w+\.py):", text, re.MULTILINE)
        return found[1] if found else ""
    text = yield call("str_replace_editor", command="view", path=".")
    files = [path for path in re.findall(r"\w+\.py", text) if not path.startswith("test_")]
    return rng.choice(sorted(files)) if files else ""


def _next_place(text: str, name: str, rng: Random) -> Generator[str, str, str]:
    """Go where a function that is called here comes from."""
    imports = {
        imported: module
        for module, names in re.findall(r"from (\w+) import ([\w, ]+)", text)
        for imported in names.split(", ")
    }
    body = re.search(rf"def {name}\(.*?(?=\n\s*\d+\tdef |\Z)", text, re.DOTALL)
    called = re.findall(r"(\w+)\(", body[0])[1:] if body else []
    inside = [module for imported, module in imports.items() if imported in called]
    options = inside or sorted(set(imports.values()))
    if not options:
        text = yield call("search", pattern="def ")
        found = set(re.findall(r"^(\w+)\.py:", text, re.MULTILINE))
        options = sorted(module for module in found if not module.startswith("test_"))
    return f"{rng.choice(options)}.py" if options else ""


def _faults(text: str) -> Iterator[tuple[str, str]]:
    """Compare each line with what is said of it; give the wrong ones, and how they should be."""
    pairs = [(code, words) for _, code, words in _REMARKED.findall(text)]
    rows = [row for _, row in _NUMBERED.findall(text)]
    for number, row in enumerate(rows):
        described = _DESCRIBED.match(row)
        if described:
            said = (described[1][0].lower() + described[1][1:]).split("; ")
            words = [re.sub(r"^(\w is|give) ", "", each) for each in said]
            pairs += zip(rows[number + 1 :], words, strict=False)
    for code, words in pairs:
        right = _in_code(words, code)
        if right and right != code:
            yield code, right


def _in_code(words: str, code: str) -> str | None:
    """Write what is said as the code it should be."""
    head = code[: code.index("=") + 2] if "=" in code else "    return "
    for pattern, meant in _WORDS:
        if re.fullmatch(pattern, words):
            return head + re.sub(pattern, meant, words)
    return None


def _guesses(text: str, rng: Random) -> Iterator[tuple[str, str]]:
    """Change some line in some way."""
    rows = [row for _, row in _NUMBERED.findall(text) if re.search(r"[-+*]|\d", row[4:])]
    for row in rng.sample(rows, min(2, len(rows))):
        code = row.partition("  #")[0]
        if code.startswith("    ") and '"""' not in code:
            yield code, _slip(code, rng)


def _slip(code: str, rng: Random) -> str:
    """Get something wrong."""
    for old, new in rng.sample((("+", "-"), ("-", "+"), ("*", "+"), ("max", "min"), ("min", "max"),
                                (">", "<")), 6):  # fmt: skip
        if old in code:
            return code.replace(old, new)
    return re.sub(r"\d+", lambda number: str(int(number[0]) + 1), code, count=1)


def _unique(text: str, old: str, new: str) -> tuple[str, str]:
    """Widen a text to the line before where it occurs more than once."""
    rows = [row for _, row in _NUMBERED.findall(text)]
    if sum(old in row for row in rows) > 1:
        at = next(number for number, row in enumerate(rows) if row.startswith(old))
        return f"{rows[at - 1]}\n{old}", f"{rows[at - 1]}\n{new}"
    return old, new
