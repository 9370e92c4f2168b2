"""What the pupil is shown is what the real tools show; what it says are calls they take."""

import functools
from random import Random

import pytest

pytest.importorskip("transformers", reason="needs the extra train")

from here import opener, warm_works

from rtmc.agent.calls import calls_of
from rtmc.agent.models.shorthand import END, GO, LINE, Shorthand
from rtmc.agent.tasks.tiny import TinyProblems
from rtmc.agent.tasks.tiny.program import MODULES, NAMES
from rtmc.agent.tools import TOOLS, Workbench
from rtmc.train.tiny.lessons import Habits, Lesson, lesson

CHAT = Shorthand.of([*MODULES, *NAMES])
COUNT = 24


def played(number: int) -> Lesson:
    return lesson(TinyProblems()[number], Habits(), CHAT, Random(number))


def turns_of(one: Lesson) -> list[tuple[list[int], list[int]]]:
    """Split a record into what was said, and what came back."""
    turns: list[tuple[list[int], list[int]]] = []
    for id, said in zip(one.ids, one.said, strict=True):
        if said and (not turns or turns[-1][1]):
            turns.append(([], []))
        if turns:
            turns[-1][not said].append(id)
    return turns


@pytest.mark.skipif(not warm_works(), reason="bubblewrap does not work here")
@pytest.mark.parametrize("number", range(COUNT))
def test_the_real_tools_say_the_same(number: int) -> None:
    problem = TinyProblems()[number]
    with opener() as sandbox:
        sandbox.put(problem.files)
        bench = Workbench(sandbox)
        for said, seen in turns_of(played(number)):
            _, (call,) = calls_of(CHAT.decode(said))
            assert isinstance(call.arguments, dict)
            answer = TOOLS[call.name](call.arguments, bench).text
            words = [CHAT.words[id] for id in CHAT.go_on([{"content": answer}], said[-1])]
            if call.name != "finish":
                assert words == [CHAT.words[id] for id in seen], answer


def test_the_pupil_is_of_mixed_quality() -> None:
    lessons = [played(number) for number in range(400)]
    solved = sum(one.solved for one in lessons) / len(lessons)
    assert 0.3 < solved < 0.7
    assert all(CHAT.words[one.ids[-1]] == END for one in lessons)


def test_one_line_of_the_program_parts_from_its_remark() -> None:
    for number in range(50):
        one = lesson(
            TinyProblems()[number],
            Habits(search=1, follow=1, patience=1, place=1, fix=1, test=0, give_up=0),
            CHAT,
            Random(number),
        )
        marks = [at for at, part in enumerate(one.parts) if part]
        assert len(marks) == 1
        assert one.solved
        words = [CHAT.words[id] for id in one.ids]
        start = max(at for at in range(marks[0]) if words[at] == LINE)
        line = words[start + 1 : marks[0] + 1]
        assert "#" in line
        assert words[marks[0] + 1] in (LINE, GO)


def test_what_is_spelled_out_is_read_again() -> None:
    """A line of a file, shortened and spelled out, is the line."""
    for number in range(50):
        for path, data in TinyProblems()[number].files.items():
            for line in data.decode().splitlines() if not path.startswith("test_") else ():
                if "  # " in line:
                    spelled = CHAT.decode(
                        CHAT.encode(["replace", "farm", *CHAT.words_in(line), "by", END])
                    )
                    assert f"<parameter=old_str>{line.strip()}</parameter>" in spelled


words = functools.partial(CHAT.shorten)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("old_str does not occur in farm.py; view the file and copy it exactly", "error"),
        ("old_str occurs 2 times in farm.py, at lines 3, 8; add lines", "error repeated"),
        ("edited farm.py; it reads now:\n     1\tdef fee(x):", "ok"),
        ("took back the last edit of farm.py", "ok"),
        ("there is no edit of farm.py to undo", "error"),
        ("4 passed in 0.00s", "4 passed"),
        ("FAILED test_farm.py::test_fee - assert 1 == 2\n1 failed, 2 passed in 0.00s",
         "failed fee 1 failed 2 passed"),
        ("farm.py:3:def fee(x, y):", "<line> farm def fee x y"),
        ("farm.py\nmill.py\ntest_farm.py", "<line> farm <line> mill"),
        ("no tests ran in 0.00s", "error"),
    ],
)  # fmt: skip
def test_shortened(text: str, expected: str) -> None:
    assert " ".join(CHAT.shorten(text)) == expected
