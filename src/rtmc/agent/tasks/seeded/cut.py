"""Take single tests out of test files: text edits, so that all the rest stays as it is."""

import ast
from collections.abc import Iterable, Mapping

__all__ = ["Function", "cut", "cut_tests", "first_line"]

Function = ast.FunctionDef | ast.AsyncFunctionDef


def cut_tests(
    files: Mapping[str, bytes], names: Iterable[str], where: Mapping[str, tuple[str, int]]
) -> dict[str, bytes]:
    """Take tests out of a workspace; a file that cannot be cut is left out whole.

    Args:
        files: the workspace.
        names: node ids of tests, or of files.
        where: file and first line of each test function.
    """
    lines: dict[str, set[int]] = {}
    whole: set[str] = set()
    for name in names:
        path = name.split("::")[0]
        place, line = where.get(name, ("", 0))
        if place == path:
            lines.setdefault(path, set()).add(line)
        else:
            whole.add(path)
    result = dict(files)
    for path in lines.keys() - whole:
        shorter = cut(files[path], lines[path])
        if shorter is None:
            whole.add(path)
        else:
            result[path] = shorter
    for path in whole:
        result.pop(path, None)
    return result


def cut(source: bytes, first_lines: Iterable[int]) -> bytes | None:
    """Take functions out of a module, each given by its first line, which may be a decorator's.

    Returns:
        The shorter module; None where one of the lines begins no function.
    """
    wanted = set(first_lines)
    lines = source.splitlines(keepends=True)
    blocks = [
        block
        for node in ast.walk(ast.parse(source))
        for name in ("body", "orelse", "finalbody")
        if isinstance(block := getattr(node, name, None), list)
    ]
    for block in blocks:
        gone = [node for node in block if isinstance(node, Function) and first_line(node) in wanted]
        for node in gone:
            wanted.discard(first_line(node))
            assert node.end_lineno is not None
            end = node.end_lineno
            indent = lines[node.lineno - 1][: node.col_offset]
            while end < len(lines) and not lines[end].strip():
                lines[end] = b""
                end += 1
            lines[first_line(node) - 1 : node.end_lineno] = [b""] * (
                node.end_lineno - first_line(node) + 1
            )
            if node is gone[-1] and len(gone) == len(block):
                lines[first_line(node) - 1] = indent + b"pass\n"
    return None if wanted else b"".join(lines)


def first_line(node: Function) -> int:
    """Give the first line of a function, decorators included, as its code object has it."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
