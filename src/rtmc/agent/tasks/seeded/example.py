"""Make small programs of a failing test: what the test looks at, and what that takes.

A program is what a user would paste into an issue: imports, a few statements, one ``print``. It is
only a guess; whether it shows the bug is found out by running it (``demonstrate``).
"""

import ast
import builtins
import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from rtmc.agent.tasks.seeded.cut import Function
from rtmc.agent.tasks.seeded.cut import first_line as first_line_of

__all__ = ["MOST_LINES", "programs"]

MOST_LINES = 24
"""Lines of a program."""
MOST_COLUMNS = 400
"""Columns of a line: what an issue can hold of a long literal."""
INLINE = 60
"""Characters of a literal that is written where it is used."""
TESTING = (
    "pytest",
    "unittest",
    "mock",
    "monkeypatch",
    "caplog",
    "capsys",
    "tmp_path",
    "__file__",
    "assert",
)
"""Words of a program that is a test and no example."""
BUILTINS = frozenset(dir(builtins))


def programs(
    source: bytes, first_line: int, line: int, values: Mapping[str, str], most: int = 8
) -> list[str]:
    """List programs that may show what made a test fail.

    Args:
        source: the test's module.
        first_line: of the test function.
        line: where it failed.
        values: source of the literals that names had there.
        most: how many.
    """
    module = ast.parse(source)
    found = _find(module, first_line)
    if found is None:
        return []
    function, owner = found
    path = _path(function.body, line)
    if not path:
        return []
    fixed = _fixed(function, path, values)
    before = _before(path)
    if owner is not None:
        before = [*_set_up(owner), *before]
    tops = [node for node in module.body if not isinstance(node, ast.Expr)]
    texts = (
        text
        for expression, earlier in _looked_at(path[-1][1])
        for printed in _printed(expression)
        if (text := _write(printed, [*before, *earlier], tops, fixed)) is not None
    )
    return list(islice(dict.fromkeys(texts), most))


def _find(module: ast.Module, first_line: int) -> tuple[Function, ast.ClassDef | None] | None:
    """Find a function by its first line, and the class that it is a method of."""
    for owner in ast.walk(module):
        for node in _block(owner):
            if isinstance(node, Function) and first_line_of(node) == first_line:
                return node, owner if isinstance(owner, ast.ClassDef) else None
    return None


def _block(node: ast.AST) -> list[ast.stmt]:
    body = getattr(node, "body", None)
    return body if isinstance(body, list) else []


def _path(block: list[ast.stmt], line: int) -> list[tuple[list[ast.stmt], ast.stmt]]:
    """Go down to the statement of a line: each block on the way, and the statement in it."""
    for node in block:
        assert node.end_lineno is not None
        if not node.lineno <= line <= node.end_lineno:
            continue
        if isinstance(node, ast.With) and any(_raises(i.context_expr) for i in node.items):
            return [(block, node)]
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(node, name, None)
            if isinstance(inner, list) and (deeper := _path(inner, line)):
                return [(block, node), *deeper]
        return [(block, node)]
    return []


def _raises(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _name(node.func).lower() in (
        "raises", "assertraises", "assertraisesregex", "assert_raises",
    )  # fmt: skip


def _name(node: ast.expr) -> str:
    """Give the last name of a dotted one."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _fixed(
    function: Function, path: Sequence[tuple[list[ast.stmt], ast.stmt]], values: Mapping[str, str]
) -> dict[str, str]:
    """Give the source of names that come from outside the statements: arguments, loops."""
    arguments = function.args
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    for _, node in path:
        if isinstance(node, ast.For):
            names |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    defaults = zip(reversed(positional), reversed(arguments.defaults), strict=False)
    return {
        **{name: ast.unparse(default) for name, default in defaults},
        **{name: values[name] for name in names if name in values},
    }


def _before(path: Sequence[tuple[list[ast.stmt], ast.stmt]]) -> list[ast.stmt]:
    """List the statements that stand before the last one of a path, outermost first."""
    earlier: list[ast.stmt] = []
    for block, node in path:
        earlier += block[: block.index(node)]
    return earlier


def _set_up(owner: ast.ClassDef) -> list[ast.stmt]:
    """List what a class of tests defines for its methods."""
    found: list[ast.stmt] = [node for node in owner.body if isinstance(node, ast.Assign)]
    for node in owner.body:
        if isinstance(node, Function) and node.name in ("setUp", "setup_method", "setUpClass"):
            found += node.body
    return found


def _looked_at(node: ast.stmt) -> Iterator[tuple[ast.expr, list[ast.stmt]]]:
    """Give the expressions that a statement looks at, with the statements they need before."""
    match node:
        case ast.Assert(test=test):
            yield from ((expression, []) for expression in _sides(test))
        case ast.With(body=[*earlier, ast.Expr(value=last) | ast.Assign(value=last)]):
            yield last, earlier
        case ast.Expr(value=ast.Call(func=function, args=arguments)) if (
            "raises" in _name(function).lower() and len(arguments) > 1
        ):
            yield ast.Call(arguments[1], arguments[2:], []), []
        case ast.Expr(value=ast.Call(func=function, args=[first])) if (
            "assert" in _name(function).lower()
        ):
            yield from ((expression, []) for expression in _sides(first))
        case ast.Expr(value=ast.Call(func=function, args=arguments)) if _is_check(function):
            yield from ((argument, []) for argument in arguments)
        case ast.Expr(value=value) | ast.Assign(value=value):
            yield value, []


def _is_check(function: ast.expr) -> bool:
    name = _name(function).lower()
    return any(word in name for word in ("assert", "eq", "check", "chk", "expect", "same"))


def _sides(test: ast.expr) -> Iterator[ast.expr]:
    """Give what a condition is about, from its parts to the whole."""
    match test:
        case ast.Compare(left=left, comparators=[right]):
            yield left
            yield right
        case ast.BoolOp(values=values):
            for value in values:
                yield from _sides(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _sides(operand)
            return
        case ast.Call(func=ast.Name("all" | "any" | "len" | "bool"), args=[argument]):
            yield argument
    yield test


def _printed(expression: ast.expr) -> Iterator[ast.expr]:
    """Give what is printed for an expression: itself, or its items."""
    if isinstance(expression, ast.Constant | ast.Lambda | ast.Starred):
        return
    yield expression
    for name in ("repr", "list", "sorted"):
        yield ast.Call(ast.Name(name, ast.Load()), [expression], [])


class _Plain(ast.NodeTransformer):
    """Writes ``self.x`` as ``x``, and short known values where they are used."""

    def __init__(self, fixed: Mapping[str, str]) -> None:
        self.fixed = fixed

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            return ast.Name(node.attr, node.ctx)
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Write ``f(*[a, b])`` as ``f(a, b)``."""
        self.generic_visit(node)
        arguments = []
        for argument in node.args:
            match argument:
                case ast.Starred(value=ast.List(elts=items) | ast.Tuple(elts=items)):
                    arguments += items
                case _:
                    arguments.append(argument)
        node.args = arguments
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        text = self.fixed.get(node.id, "")
        if isinstance(node.ctx, ast.Load) and text and len(text) <= INLINE:
            return ast.parse(text, mode="eval").body
        return node


def _write(
    printed: ast.expr, before: Sequence[ast.stmt], tops: Sequence[ast.stmt], fixed: dict[str, str]
) -> str | None:
    """Write a program that prints an expression; None where it is no example."""
    plain = _Plain(fixed)
    printed = plain.visit(copy.deepcopy(printed))
    steps = [plain.visit(copy.deepcopy(node)) for node in before]
    needed = _loaded(printed)
    body = _slice(steps, needed)
    needed -= {name for node in body for name in _stored(node)} - _loaded(*body)
    values = [
        ast.parse(f"{name} = {text}").body[0]
        for name, text in fixed.items()
        if name in needed and len(text) > INLINE
    ]
    needed -= set(fixed)
    head = _slice_top(tops, needed)
    imports = [node for node in head if isinstance(node, ast.Import | ast.ImportFrom)]
    rest = [node for node in head if not isinstance(node, ast.Import | ast.ImportFrom)]
    show = ast.Expr(ast.Call(ast.Name("print", ast.Load()), [printed], []))
    parts = [imports, [*rest, *values], [*body, show]]
    text = "\n\n".join(_unparse(part) for part in parts if part)
    relative = any(isinstance(node, ast.ImportFrom) and node.level for node in imports)
    if not imports or relative or any(word in text for word in TESTING):
        return None
    lines = text.splitlines()
    if len(lines) > MOST_LINES or max(map(len, lines)) > MOST_COLUMNS:
        return None
    return text


def _unparse(block: Sequence[ast.stmt]) -> str:
    """Write statements as source, definitions apart from the rest."""
    text = ""
    for node in block:
        apart = isinstance(node, Function | ast.ClassDef)
        text += "\n" * (apart and bool(text)) + ast.unparse(ast.fix_missing_locations(node)) + "\n"
        text += "\n" * apart
    return re.sub("\n{3,}", "\n\n", text).strip("\n")


def _slice(steps: Sequence[ast.stmt], needed: set[str]) -> list[ast.stmt]:
    """Keep the statements that names depend on; ``needed`` grows by the names these need."""
    kept: list[ast.stmt] = []
    for node in reversed(steps):
        if isinstance(node, ast.Assert):
            continue
        touched = _stored(node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            if "assert" in _name(node.value.func).lower():
                continue
            touched = touched | {_root(node.value.func)}
        if touched & needed:
            kept.insert(0, node)
            if isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets):
                needed -= touched  # what it was before does not matter
            needed |= _loaded(node)
    return kept


def _slice_top(tops: Sequence[ast.stmt], needed: set[str]) -> list[ast.stmt]:
    """Keep what a module defines of the names that are needed."""
    kept: dict[int, ast.stmt] = {}
    missing = set(needed)
    for number, node in reversed(list(enumerate(tops))):
        names = _stored(node)
        if names & needed:
            if isinstance(node, ast.Import | ast.ImportFrom):
                node = copy.copy(node)
                node.names = [alias for alias in node.names if _bound(alias) in needed]
            kept[number] = node
            loaded = _loaded(node)
            needed |= loaded
            missing = (missing | loaded) - names
    if missing - BUILTINS:
        kept |= {number: node for number, node in enumerate(tops) if "*" in _stored(node)}
    return [kept[number] for number in sorted(kept)]


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]


def _loaded(*nodes: ast.AST) -> set[str]:
    """Name what is read."""
    return {
        node.id
        for top in nodes
        for node in ast.walk(top)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def _stored(node: ast.stmt) -> set[str]:
    """Name what a statement binds or changes."""
    if isinstance(node, Function | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {_bound(alias) for alias in node.names}
    names = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name | ast.Attribute | ast.Subscript) and not isinstance(
            inner.ctx, ast.Load
        ):
            names.add(_root(inner))
        elif isinstance(inner, Function | ast.ClassDef):
            names.add(inner.name)
    return names


def _root(node: ast.expr) -> str:
    """Give the name that an attribute or an item belongs to."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
