"""Injected bugs: what each kind does, worked by hand, and what holds for all of them."""

import ast
import functools
import json.decoder
import re
import textwrap
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtmc.agent.tasks.seeded.mutate import KINDS, apply, mutations, sound, spots

MODULES = {
    module.__name__: module.__file__ for module in (functools, json.decoder, re, textwrap)
}  # fmt: skip


@functools.cache
def source_of(name):
    with open(MODULES[name], "rb") as file:
        source = file.read()
    return source, spots(source)


def after(source, kind):
    """Give the source after each edit of a kind."""
    source = textwrap.dedent(source).encode()
    return [apply(source, m).decode() for m in mutations(source) if m.kind == kind]


def expressions(text, kind):
    """Give what becomes of an expression of a, b and c."""
    prefix = "def f(a, b, c):\n    return "
    found = after(f"{prefix}{text}\n", kind)
    return [changed.removeprefix(prefix).rstrip("\n") for changed in found]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("comparison", "a < b", ["a <= b", "a > b"]),
        ("comparison", "a == b", ["a != b"]),
        ("comparison", "a is  not b", ["a is b"]),
        ("comparison", "a not in b", ["a in b"]),
        ("comparison", "a <= b > c", ["a < b > c", "a <= b >= c", "a <= b < c"]),
        ("comparison", "((a)  # (<\n  >= (b))", ["((a)  # (<\n  > (b))"]),
        ("arithmetic", "a + b", ["a - b"]),
        ("arithmetic", "a // b", ["a / b"]),
        ("arithmetic", "(a) ** b", ["(a) * b"]),
        ("arithmetic", "'x %s' % a", []),
        ("boolean", "a and b or c", ["a or b or c", "a and b and c"]),
        ("boolean", "not a", ["a"]),
        ("boolean", "not(a)", ["(a)"]),
        ("boundary", "a[1:]", ["a[0:]", "a[2:]"]),
        ("boundary", "range(a, 0)", ["range(a, 1)"]),
        ("boundary", "a > 1", ["a > 0", "a > 2"]),
        ("constant", "f(1)", ["f(0)", "f(2)"]),
        ("constant", "f(True)", ["f(False)"]),
        ("constant", "f(0.5)", ["f(1.5)"]),
        ("constant", 'f("ab")', ['f("a")']),
        ("constant", 'f(b"/")', ['f(b"")']),
        ("constant", 'f("")', []),
        ("constant", 'f"{a}"', []),
        ("swapped_arguments", "g(a, b)", ["g(b, a)"]),
        ("swapped_arguments", "g(a, b=b)", []),
        ("swapped_arguments", "g(a, *b)", []),
        ("swapped_arguments", "isinstance(a, b)", []),
        ("removed_branch", "a if b else c", ["a", "c"]),
    ],
)
def test_expressions(kind, text, expected):
    assert sorted(expressions(text, kind)) == sorted(expected)


def test_a_variable_becomes_one_that_is_known_at_that_line():
    # of b, c and d the two bound last before the line; e is bound after it
    found = after("def f(a, b, c):\n    d = 1\n    g(a)\n    e = 2\n", "wrong_variable")
    assert found == [
        f"def f(a, b, c):\n    d = 1\n    g({name})\n    e = 2\n" for name in ("c", "d")
    ]


def test_a_branch_is_removed_with_its_lines():
    source = """
        def f(a):
            if a:  # none
                return 0
            return 1
        """
    assert after(source, "removed_branch") == ["\ndef f(a):\n    return 1\n"]


def test_an_else_is_removed():
    source = "if a():\n    b()\nelif c():\n    d()\nelse:\n    e()\n"
    assert after(source, "removed_branch") == [
        "if a():\n    b()\n",
        "if a():\n    b()\nelif c():\n    d()\n",
    ]


def test_a_condition_is_negated():
    assert after("if a():\n    pass\n", "boolean") == ["if not a():\n    pass\n"]


def test_the_only_statement_of_a_block_becomes_pass():
    source = "def f(a):\n    '''Doc.'''\n    for x in a:\n        x.go()\n    a.b = 1\n"
    assert after(source, "removed_statement") == [
        source.replace("x.go()", "pass"),
        source.replace("    a.b = 1\n", ""),
    ]


def test_an_exception_becomes_another():
    source = "try:\n    f()\nexcept (KeyError, Own):\n    raise ValueError('text')\n"
    assert after(source, "wrong_exception") == [
        source.replace("KeyError", "IndexError"),
        source.replace("ValueError", "TypeError"),
    ]


def test_a_default_becomes_another():
    source = "def f(a=1, *, b='xy', c=None):\n    pass\n"
    assert sorted(after(source, "wrong_default")) == [
        source.replace("a=1", "a=0"),
        source.replace("'xy'", "'x'"),
        source.replace("a=1", "a=2"),
    ]


def test_what_no_behaviour_hangs_on_stays():
    source = '''
        """Module, 1 < 2."""
        __all__ = ["a", "b"]
        __version__ = "1.2"
        VERSION = (1, 2)
        T = TypeVar("T", bound=int)
        x: "list[int]" = None
        if TYPE_CHECKING:
            y = 1 < 2
        if __name__ == "__main__":
            y = 1 < 2

        def f(a: "int" = None) -> "str":
            """Function, 1 < 2."""
            assert a < 1
            raise Own("a text", 3)
        '''
    assert mutations(textwrap.dedent(source).encode()) == []


def test_the_function_around_is_known():
    source = "class A:\n    @d\n    def f(self, a=1):\n        return a < 2\n\nX = 3\n"
    found = {(m.kind, m.function, m.function_line) for m in mutations(source.encode())}
    assert ("comparison", "A.f", 2) in found
    assert ("wrong_default", "", None) in found  # it is evaluated on import
    assert ("constant", "", None) in found


def test_positions_count_bytes_and_any_line_end():
    source = "def f(a):\r\n    return 'ä', a < 1  # ö\r\n".encode()
    changed = [apply(source, m) for m in mutations(source) if m.kind == "comparison"]
    assert changed == [source.replace(b"<", b"<="), source.replace(b"<", b">")]


def test_every_kind_is_found_in_the_standard_library():
    found = {mutation.kind for name in MODULES for mutation in source_of(name)[1]}
    assert found == set(KINDS)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(MODULES)), st.data())
def test_every_edit_changes_its_range_and_nothing_else(name, data):
    source, found = source_of(name)
    mutation = data.draw(st.sampled_from(found))
    changed = apply(source, mutation)
    rest = len(source) - mutation.end
    assert changed[: mutation.start] == source[: mutation.start]
    assert changed[len(changed) - rest :] == source[mutation.end :]
    assert source[mutation.start : mutation.end].decode() == mutation.original
    assert source[: mutation.start].count(b"\n") + 1 == mutation.line
    if sound(source, mutation):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(changed)
            compile(tree, name, "exec")
        assert ast.dump(tree) != ast.dump(ast.parse(source))


def test_nearly_all_edits_of_real_modules_are_sound():
    for name in MODULES:
        source, found = source_of(name)
        some = found[::60]
        assert sum(sound(source, mutation) for mutation in some) >= 0.9 * len(some), name


def test_the_list_is_the_same_each_time():
    source, found = source_of("textwrap")
    assert spots(source) == found
    assert len({(m.start, m.end, m.replacement) for m in found}) == len(found)
