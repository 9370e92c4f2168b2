"""Examples made of failing tests, cuts of test files, and issues."""

import textwrap

import pytest

from rtmc.agent.tasks.seeded.cut import cut, cut_tests
from rtmc.agent.tasks.seeded.demonstrate import Example, Outcome
from rtmc.agent.tasks.seeded.example import programs
from rtmc.agent.tasks.seeded.text import issue, subject

MODULE = textwrap.dedent(
    """
    import os
    import pytest
    from unittest import TestCase
    from pack import f, g, Thing
    from pack import *

    SIZE = 4

    def helper(x):
        return f(x) + SIZE

    @pytest.mark.parametrize("a, b", [(1, 2)])
    def test_arguments(a, b):
        assert f(a, *[b], c=SIZE) == 3

    def test_steps():
        x = g()
        x = Thing(1)
        y = Thing(2)
        assert y.size == 2
        x.grow(3)
        result = x.look()
        assert result == helper(2)

    def test_raises():
        for bad in ["a", "b"]:
            x = Thing(bad)
            with pytest.raises(ValueError):
                x.go()

    class TestThing(TestCase):
        def setUp(self):
            self.thing = Thing(0)

        def test_equal(self):
            self.assertEqual(self.thing.look(), 5)

    def test_default(make=Thing):
        assert make(1).size == 1

    def test_fixture(tmp_path):
        assert f(tmp_path) == 1
    """
).lstrip()


def line_of(text):
    return next(n for n, line in enumerate(MODULE.splitlines(), 1) if text in line)


def first(function, failing, **values):
    begin = line_of(f"def {function}(")
    if MODULE.splitlines()[begin - 2].startswith("@"):
        begin -= 1
    found = programs(MODULE.encode(), begin, line_of(failing), values)
    return found[0] if found else None


def test_arguments_are_written_where_they_are_used():
    assert first("test_arguments", "assert f(a", a="1", b="2") == (
        "from pack import f\n\nSIZE = 4\n\nprint(f(1, 2, c=SIZE))"
    )


def test_only_what_the_value_hangs_on_is_kept():
    # y does not matter, nor what x was before; helper is on the other side
    assert first("test_steps", "assert result") == (
        "from pack import Thing\n\nx = Thing(1)\nx.grow(3)\nresult = x.look()\nprint(result)"
    )


def test_a_missing_error_and_a_loop():
    assert first("test_raises", "x.go()", bad="'b'") == (
        "from pack import Thing\n\nx = Thing('b')\nprint(x.go())"
    )


def test_a_method_of_a_class():
    assert first("test_equal", "assertEqual") == (
        "from pack import Thing\n\nthing = Thing(0)\nprint(thing.look())"
    )


def test_a_default_is_written_where_it_is_used():
    assert first("test_default", "make(1)") == "from pack import Thing\n\nprint(Thing(1).size)"


def test_fixtures_make_no_example():
    assert first("test_fixture", "f(tmp_path)") is None


def test_functions_are_cut_and_the_rest_stays():
    source = b"import a\n\n@deco\ndef f():\n    pass\n\n\ndef g(): # g\n    pass\n"
    assert cut(source, [3]) == b"import a\n\ndef g(): # g\n    pass\n"
    assert cut(source, [3, 8]) == b"import a\n\n"
    assert cut(source, [4]) is None  # decorators come first
    only = b"class A:\n    def f(self):\n        pass\n\n\nx = 1\n"
    assert cut(only, [2]) == b"class A:\n    pass\nx = 1\n"


def test_a_file_that_cannot_be_cut_goes():
    files = {"t.py": b"def f():\n    pass\n", "u.py": b"", "v.py": b"def f():\n    pass\n"}
    where = {"t.py::f": ("t.py", 1), "u.py::f": ("t.py", 1)}
    names = ["t.py::f", "u.py::f", "w.py"]
    assert cut_tests(files, names, where) == {"t.py": b"pass\n", "v.py": files["v.py"]}


@pytest.mark.parametrize(
    ("expected", "got", "words"),
    [
        (Outcome("1\n"), Outcome("2\n"), ["`1`.", "`2`.", "print"]),
        (Outcome("1\n"), Outcome("", "KeyError: 'a'"), ["`1`.", "raises `KeyError: 'a'`."]),
        (Outcome("", "KeyError: 'a'"), Outcome("2\n"), ["raise `KeyError: 'a'`.", "prints `2`."]),
        (
            Outcome("", "KeyError: 1"),
            Outcome("", "ValueError"),
            ["raise `KeyError: 1`.", "raises `ValueError`."],
        ),
        (Outcome("a\n b\n"), Outcome(" a\n"), ["```\na\n b\n```", "```\n a\n```"]),
        (Outcome("a\n"), Outcome("\n"), ["`a`.", "prints nothing."]),
    ],
)
def test_issues(expected, got, words):
    example = Example("from pack import f\n\nprint(f(1))", expected, got)
    texts = {issue(example, "pack", "1.2", str(seed)) for seed in range(30)}
    assert len(texts) > 20
    for text in texts:
        assert "pack 1.2" in text
        assert "`f`" in text.splitlines()[0] or "rror" in text.splitlines()[0]
        assert example.program in text
        for word in words[:2]:
            assert word in text
    assert issue(example, "pack", "1.2", "7") == issue(example, "pack", "1.2", "7")


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("from pack import f, g\n\nx = g()\nprint(f(x))", "`f`"),
        ("import pack\n\nprint(sorted(pack.f(1)))", "`pack.f`"),
        ("from pack import *\n\nprint(list(f(1)))", "`f`"),
        ("from pack import T\n\nt = T()\nprint(t.x)", "`T`"),
        ("import pack\n\nprint(pack.x)", "pack"),
    ],
)
def test_subjects(program, expected):
    assert subject(program, "pack") == expected
