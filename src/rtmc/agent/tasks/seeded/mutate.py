"""Inject a bug: edits of a module's text that its syntax tree suggests.

The text is edited and not the tree, so that comments and layout stay. Positions are of bytes, as
``ast`` has them. What no behaviour hangs on stays as it is: docstrings, annotations, ``__all__``,
version strings, ``if TYPE_CHECKING``, messages of errors.
"""

import ast
import re
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from rtmc.agent.tasks.seeded.cut import Function, first_line

__all__ = ["KINDS", "Mutation", "apply", "mutations", "sound", "spots"]


class Mutation(msgspec.Struct, frozen=True):
    """One edit of one module.

    Attributes:
        kind: a key of ``KINDS``.
        start: first byte that is replaced.
        end: the byte after the last.
        line: of the start, from 1.
        column: of the start, in bytes from 0.
        original: what stands there.
        replacement: what comes to stand there.
        function: qualified name of the function around it; empty outside of all.
        function_line: first line of that function, of its decorators where it has some; None for
            what runs on import, defaults and decorators included.
    """

    kind: str
    start: int
    end: int
    line: int
    column: int
    original: str
    replacement: str
    function: str = ""
    function_line: int | None = None

    @property
    def description(self) -> str:
        """Say what is done, for analyses."""
        return f"{KINDS[self.kind]}: {self.original!r} becomes {self.replacement!r}"


KINDS = {
    "comparison": "another comparison",
    "arithmetic": "another operator",
    "boolean": "another condition",
    "boundary": "a bound that is off by one",
    "constant": "another constant",
    "removed_branch": "a branch is gone",
    "swapped_arguments": "two arguments are swapped",
    "wrong_variable": "another variable of the same function",
    "removed_statement": "a statement is gone",
    "wrong_exception": "another exception",
    "wrong_default": "another default",
}
"""What each kind does."""

COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<",)),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">",)),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: (r"is\s+not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: (r"not\s+in", ("in",)),
}
OPERATORS: dict[type[ast.operator], tuple[str, tuple[str, ...]]] = {
    ast.Add: ("+", ("-",)),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("+",)),
    ast.Div: ("/", ("//", "*")),
    ast.FloorDiv: ("//", ("/",)),
    ast.Mod: ("%", ("//",)),
    ast.Pow: ("**", ("*",)),
    ast.LShift: ("<<", (">>",)),
    ast.RShift: (">>", ("<<",)),
    ast.BitAnd: ("&", ("|",)),
    ast.BitOr: ("|", ("&",)),
    ast.BitXor: ("^", ("|",)),
}
EXCEPTIONS = {
    "ValueError": "TypeError",
    "TypeError": "ValueError",
    "KeyError": "IndexError",
    "IndexError": "KeyError",
    "LookupError": "AttributeError",
    "AttributeError": "KeyError",
    "StopIteration": "ValueError",
    "OverflowError": "ValueError",
    "ZeroDivisionError": "ValueError",
    "NotImplementedError": "ValueError",
    "RuntimeError": "ValueError",
    "UnicodeDecodeError": "KeyError",
    "OSError": "ValueError",
    "ImportError": "ValueError",
}

OF_TYPES = frozenset(
    "TypeVar ParamSpec TypeVarTuple NewType cast namedtuple NamedTuple overload".split()
)
"""Calls that say something of types only, or of names."""
ORDERED = frozenset("isinstance issubclass getattr hasattr setattr super warn open".split())
"""Calls whose arguments nobody swaps."""
WORDS = ("warn", "debug", "info", "warning", "error", "exception")
"""Calls whose strings are for people."""
FILLER = re.compile(rb"(?:[\s()\\]|#[^\n]*)*")
"""What may stand between an operand and its operator."""


def mutations(source: bytes) -> list[Mutation]:
    """List all edits that leave a module which compiles, with another syntax tree.

    Args:
        source: a module, in UTF-8.

    Returns:
        Edits by place; the same list each time.

    Raises:
        SyntaxError: the source is no Python.
    """
    return [mutation for mutation in spots(source) if sound(source, mutation)]


def spots(source: bytes) -> list[Mutation]:
    """List edits by what the syntax tree suggests; some of them may not be ``sound``.

    Args:
        source: a module, in UTF-8.

    Raises:
        SyntaxError: the source is no Python.
    """
    found = _Finder(source).found
    unique = {(m.start, m.end, m.replacement): m for m in reversed(found)}
    order = list(KINDS)
    return sorted(
        unique.values(), key=lambda m: (m.start, m.end, order.index(m.kind), m.replacement)
    )


def apply(source: bytes, mutation: Mutation) -> bytes:
    """Make the edit."""
    assert source[mutation.start : mutation.end].decode() == mutation.original
    return source[: mutation.start] + mutation.replacement.encode() + source[mutation.end :]


def sound(source: bytes, mutation: Mutation) -> bool:
    """Tell whether the edited module compiles, and to another syntax tree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the bug may be one that Python itself warns of
        try:
            after = ast.parse(apply(source, mutation))
            compile(after, "mutated", "exec")
        except (SyntaxError, ValueError):
            return False
        before = ast.parse(source)
    if len(before.body) != len(after.body):
        return True
    # to compare whole modules would be slow, and nothing else differs than where the edit is
    ends = [node.end_lineno or 0 for node in before.body]
    around = bisect_left(ends, mutation.line)
    return ast.dump(before.body[around]) != ast.dump(after.body[around])


class _Finder:
    """Walks a syntax tree and collects edits; knows which function it is in."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.found: list[Mutation] = []
        self.lines = [0, *(m.end() for m in re.finditer(rb"\r\n|\r|\n", source))]
        self.names: list[str] = []
        self.function: Function | None = None
        self.locals: list[tuple[str, int]] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.statements(ast.parse(source).body, owner=None)

    def at(self, line: int, column: int) -> int:
        return self.lines[line - 1] + column

    def start(self, node: ast.expr | ast.stmt | ast.excepthandler) -> int:
        return self.at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.excepthandler) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.at(node.end_lineno, node.end_col_offset)

    def text(self, node: ast.expr | ast.stmt) -> str:
        return self.source[self.start(node) : self.end(node)].decode()

    def add(self, kind: str, start: int, end: int, replacement: str) -> None:
        line = bisect_right(self.lines, start)
        function = self.function
        first = None if function is None else first_line(function)
        self.found.append(
            Mutation(
                kind, start, end, line, start - self.lines[line - 1],
                self.source[start:end].decode(), replacement,
                ".".join(self.names) if function else "", first,
            )
        )  # fmt: skip

    def replace(self, kind: str, node: ast.expr | ast.stmt, replacement: str) -> None:
        self.add(kind, self.start(node), self.end(node), replacement)

    # statements

    def statements(self, block: list[ast.stmt], owner: ast.AST | None) -> None:
        """Visit a block; ``owner`` is what it is the body of."""
        for number, node in enumerate(block):
            is_docstring = (
                number == 0
                and isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            )
            if not is_docstring and not self.is_formal(node):
                self.statement(node, alone=len(block) == 1)

    def is_formal(self, node: ast.stmt) -> bool:
        """Tell a statement that no behaviour hangs on."""
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal | ast.Assert):
            return True
        if isinstance(node, ast.If):
            return any(word in ast.dump(node.test) for word in ("'TYPE_CHECKING'", "'__name__'"))
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return any(
                isinstance(target, ast.Name)
                and (target.id.startswith("__") or "version" in target.id.lower())
                for target in targets
            )
        if isinstance(node, Function):
            return any("overload" in ast.dump(d) for d in node.decorator_list)
        return False

    def statement(self, node: ast.stmt, alone: bool) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.define(node)
                return
            case ast.ClassDef():
                self.names.append(node.name)
                self.statements(node.body, node)
                self.names.pop()
                return
            case ast.If():
                self.branch(node, alone)
            case ast.AugAssign():
                self.operator(node.op, self.end(node.target), self.start(node.value), "=")
                self.remove("removed_statement", node, alone)
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                self.remove("removed_statement", node, alone)
            case ast.Assign(targets=[ast.Name(name)]):
                if self.function and any(
                    isinstance(n, ast.Name) and n.id == name for n in ast.walk(node.value)
                ):
                    self.remove("removed_statement", node, alone)
            case ast.Expr(value=ast.Call(func=function)) if _last_name(function) not in WORDS:
                self.remove("removed_statement", node, alone)
            case ast.Raise(exc=ast.expr() as raised):
                self.exception(raised.func if isinstance(raised, ast.Call) else raised)
                return
            case ast.Try() | ast.TryStar():
                for handler in node.handlers:
                    if handler.type is not None:
                        self.exception(handler.type)
        self.children(node)

    def children(self, node: ast.stmt | ast.excepthandler | ast.match_case) -> None:
        for name, value in ast.iter_fields(node):
            if name == "annotation":
                continue
            if isinstance(value, ast.expr):
                self.expression(value, node)
            elif isinstance(value, list):
                if value and isinstance(value[0], ast.stmt):
                    self.statements(value, node)
                    continue
                for item in value:
                    if isinstance(item, ast.excepthandler | ast.match_case):
                        self.children(item)
                    elif isinstance(item, ast.withitem):
                        self.expression(item.context_expr, node)
                    elif isinstance(item, ast.expr):
                        self.expression(item, node)

    def define(self, node: Function) -> None:
        for decorator in node.decorator_list:
            self.expression(decorator, node)
        for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d)):
            self.default(default)
        outer, self.names = self.names, [*self.names, node.name]
        function, known = self.function, self.locals
        if function is None:
            self.function = node
        self.locals = [*known, *_locals(node)]
        self.statements(node.body, node)
        self.names, self.function, self.locals = outer, function, known

    def branch(self, node: ast.If, alone: bool) -> None:
        is_elif = self.source[self.start(node) :].startswith(b"elif")
        if not node.orelse and not is_elif:
            self.remove("removed_branch", node, alone)
        elif node.orelse:
            self.add("removed_branch", self.end(node.body[-1]), self.end(node.orelse[-1]), "")
        if not isinstance(node.test, ast.UnaryOp | ast.Compare | ast.BoolOp | ast.Constant):
            self.replace("boolean", node.test, f"not {self.text(node.test)}")

    def remove(self, kind: str, node: ast.stmt, alone: bool) -> None:
        """Take a statement out with its lines, where it has them to itself."""
        start, end = self.start(node), self.end(node)
        begin = self.lines[node.lineno - 1]
        rest = re.compile(rb"[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)").match(self.source, end)
        if self.source[begin:start].strip() or rest is None:
            return
        if alone:
            self.add(kind, start, end, "pass")
        else:
            self.add(kind, begin, rest.end(), "")

    def exception(self, node: ast.expr) -> None:
        for name in node.elts if isinstance(node, ast.Tuple) else [node]:
            if isinstance(name, ast.Name) and name.id in EXCEPTIONS:
                self.replace("wrong_exception", name, EXCEPTIONS[name.id])

    def default(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):
            for replacement in self.constants(node):
                self.replace("wrong_default", node, replacement)

    # expressions

    def expression(self, node: ast.expr, parent: ast.AST) -> None:
        match node:
            case ast.JoinedStr():
                return  # Python 3.11 does not know where its parts stand
            case ast.Call(func=function) if _last_name(function) in OF_TYPES:
                return
            case ast.Compare(left=left, ops=operators, comparators=others):
                for operator, (a, b) in zip(operators, pairwise([left, *others]), strict=True):
                    word, replacements = COMPARISONS[type(operator)]
                    pattern = word if word.startswith(("is", "not")) else re.escape(word)
                    self.between("comparison", a, b, pattern, replacements)
            case ast.BinOp(left=left, op=operator, right=right):
                if not _is_text(left) and not _is_text(right):
                    self.operator(operator, self.end(left), self.start(right))
            case ast.BoolOp(op=operator, values=values):
                word, other = ("and", "or") if isinstance(operator, ast.And) else ("or", "and")
                for a, b in pairwise(values):
                    self.between("boolean", a, b, word, (other,))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                start = self.start(node)
                gap = re.compile(rb"not[ \t]*").match(self.source, start)
                if gap is not None and gap.end() <= self.start(operand):
                    self.add("boolean", start, gap.end(), "")
            case ast.IfExp(body=body, orelse=orelse):
                self.replace("removed_branch", node, self.text(body))
                self.replace("removed_branch", node, self.text(orelse))
            case ast.Call():
                self.call(node)
            case ast.Constant():
                kind = "boundary" if _is_number(node) and _bounds(parent) else "constant"
                for replacement in self.constants(node):
                    self.replace(kind, node, replacement)
            case ast.Name(ctx=ast.Load()):
                self.variable(node, parent)
        for child in ast.iter_child_nodes(node):
            self.child(child, node)

    def child(self, child: ast.AST, parent: ast.expr) -> None:
        if isinstance(child, ast.keyword):
            self.expression(child.value, parent)
        elif isinstance(child, ast.comprehension):
            for part in (child.target, child.iter, *child.ifs):
                self.expression(part, parent)
        elif isinstance(child, ast.arguments):  # of a lambda
            for default in (*child.defaults, *(d for d in child.kw_defaults if d)):
                self.default(default)
        elif isinstance(child, ast.expr):
            self.expression(child, parent)

    def between(
        self, kind: str, left: ast.expr, right: ast.expr, pattern: str, words: tuple[str, ...]
    ) -> None:
        """Replace the operator between two operands."""
        self.gap(kind, self.end(left), self.start(right), pattern, words)

    def gap(self, kind: str, start: int, end: int, pattern: str, words: tuple[str, ...]) -> None:
        filler = FILLER.match(self.source, start, end)
        assert filler is not None  # it matches nothing, too
        found = re.compile(pattern.encode()).match(self.source, filler.end(), end)
        if found:
            for word in words:
                self.add(kind, found.start(), found.end(), word)

    def operator(self, operator: ast.operator, start: int, end: int, suffix: str = "") -> None:
        if type(operator) in OPERATORS:
            word, others = OPERATORS[type(operator)]
            replacements = tuple(other + suffix for other in others)
            self.gap("arithmetic", start, end, re.escape(word + suffix), replacements)

    def call(self, node: ast.Call) -> None:
        if _last_name(node.func) in (*ORDERED, *WORDS):
            return
        for a, b in pairwise(node.args):
            gap = self.source[self.end(a) : self.start(b)]
            if (
                isinstance(a, ast.Starred | ast.GeneratorExp)
                or isinstance(b, ast.Starred | ast.GeneratorExp)
                or gap.strip() != b","
                or self.text(a) == self.text(b)
            ):
                continue
            swapped = self.text(b) + gap.decode() + self.text(a)
            self.add("swapped_arguments", self.start(a), self.end(b), swapped)

    def constants(self, node: ast.Constant) -> Iterator[str]:
        """Give other constants as source."""
        text, value = self.text(node), node.value
        if isinstance(value, bool):
            yield str(not value)
        elif isinstance(value, int):
            yield str(value + 1)
            if value > 0:
                yield str(value - 1)
        elif isinstance(value, float):
            yield repr(value + 1.0)
        elif isinstance(value, str | bytes):
            plain = re.fullmatch(r"([rbRB]{0,2})(['\"])([^'\"\\\r\n{}%]+)\2", text)
            if plain:
                prefix, quote, inside = plain.groups()
                yield f"{prefix}{quote}{inside[:-1]}{quote}"

    def variable(self, node: ast.Name, parent: ast.AST) -> None:
        """Take another local name that is known at that line: the two that are closest."""
        if isinstance(parent, ast.Call) and parent.func is node:
            return
        known = [name for name, line in self.locals if line < node.lineno or line == 0]
        if self.function is None or node.id not in known or node.id in ("self", "cls"):
            return
        others = [name for name in dict.fromkeys(reversed(known)) if name != node.id]
        for other in [name for name in others if name not in ("self", "cls", "_")][:2]:
            self.replace("wrong_variable", node, other)


def _locals(node: Function) -> list[tuple[str, int]]:
    """Name what a function binds, with the line; arguments have line 0."""
    arguments = node.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    names = [(argument.arg, 0) for argument in every]
    stack: list[ast.AST] = list(node.body)
    bound = []
    while stack:
        inner = stack.pop()
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            bound.append((inner.id, inner.lineno))
        own_scope = (*Function.__args__, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp,
                     ast.DictComp, ast.GeneratorExp)  # fmt: skip
        if not isinstance(inner, own_scope):
            stack += ast.iter_child_nodes(inner)
    return names + sorted(bound, key=lambda pair: (pair[1], pair[0]))


def _last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _is_number(node: ast.Constant) -> bool:
    return isinstance(node.value, int) and not isinstance(node.value, bool)


def _bounds(parent: ast.AST) -> bool:
    """Tell whether a number there is a bound."""
    if isinstance(parent, ast.Call):
        return _last_name(parent.func) in ("range", "islice", "enumerate", "min", "max")
    return isinstance(parent, ast.Slice | ast.Subscript | ast.Compare)
