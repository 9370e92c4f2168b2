"""Write an issue of an example: what happens, what should, and not where.

The wording varies with the problem, so that a policy cannot go by phrases.
"""

import ast
import random

from rtmc.agent.tasks.seeded.demonstrate import Example, Outcome
from rtmc.agent.tasks.seeded.example import BUILTINS

__all__ = ["issue", "subject"]

SHORT = 70
"""Characters of an output that stands within a sentence."""

TITLES = {
    "value": (
        "{subject} gives a wrong result",
        "Wrong result from {subject}",
        "{subject}: unexpected output",
        "{subject} does not do what it should",
    ),
    "raises": (
        "{subject} raises {error}",
        "{error} from {subject}",
        "Unexpected {error} with {subject}",
        "{subject} fails with {error}",
    ),
    "silent": (
        "{subject} does not raise {error}",
        "{subject} should raise {error}",
        "{error} is missing with {subject}",
        "{subject} accepts what it should refuse",
    ),
    "other": (
        "{subject} raises the wrong error",
        "Wrong exception from {subject}",
        "{subject}: the error is not the right one",
    ),
}
OPENINGS = (
    "With {package} {version} I run this:",
    "This is on {package} {version}:",
    "Here is how to see it, with {package} {version}:",
    "I found this with {package} {version}. To reproduce:",
    "A short program that shows it ({package} {version}):",
)
GOT = ("It {verb}", "What I get: it {verb}", "Now it {verb}", "This {verb}", "The program {verb}")
EXPECTED = (
    "It should {verb}",
    "I expected it to {verb}",
    "Expected: it should {verb}",
    "The right behaviour would be to {verb}",
)
CLOSINGS = (
    "The sources are in the current directory. Please find the cause and fix it there.",
    "The current directory holds the package and its tests. Please fix the package.",
    "Please fix this in the package, which is in the current directory.",
    "Could you find out why and repair it? The package is in the current directory.",
)


def issue(example: Example, package: str, version: str, seed: str) -> str:
    """Write an issue.

    Args:
        example: a program that shows the bug.
        package: its name.
        version: its version.
        seed: decides the wording.
    """
    pick = random.Random(seed)
    expected, got = example.expected, example.got
    if got.error and expected.error:
        kind = "other"
    else:
        kind = "raises" if got.error else "silent" if expected.error else "value"
    error = (got.error or expected.error or "").split(":")[0]
    title = pick.choice(TITLES[kind]).format(subject=subject(example.program, package), error=error)
    opening = pick.choice(OPENINGS).format(package=package, version=version)
    return "\n\n".join(
        [
            f"# {title}",
            opening,
            f"```python\n{example.program}\n```",
            pick.choice(GOT).format(verb=_does(got, "prints", "raises", "prints nothing")),
            pick.choice(EXPECTED).format(verb=_does(expected, "print", "raise", "print nothing")),
            pick.choice(CLOSINGS),
        ]
    )


def _does(outcome: Outcome, prints: str, raises: str, nothing: str) -> str:
    """Say what a program does."""
    if outcome.error:
        verb, text = raises, outcome.error
    elif not outcome.printed.strip():
        return f"{nothing}." if not outcome.printed.strip("\n") else f"{prints} only white space."
    else:
        verb, text = prints, outcome.printed.removesuffix("\n")
    if "\n" in text or "`" in text or len(text) > SHORT or text != text.strip():
        return f"{verb}\n\n```\n{text}\n```"
    return f"{verb} `{text}`."


def subject(program: str, package: str) -> str:
    """Name what a program is about: the outermost function of the package that it prints."""
    tree = ast.parse(program)
    imported: set[str] = set()
    defined = set(BUILTINS)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                imported |= {alias.asname or alias.name.split(".")[0] for alias in names}
            case ast.Name(id=name, ctx=ast.Store()):
                defined.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                defined.add(name)
    nodes = [node for top in reversed(tree.body) for node in ast.walk(top)]
    called = [n.func for n in nodes if isinstance(n, ast.Call) and _dotted(n.func)]
    named = [(ast.unparse(function), _root(function)) for function in called]
    for text, root in named:
        if root in imported or ("*" in imported and root not in defined):
            return f"`{text}`"
    for text, root in named:
        if "." in text and root not in BUILTINS:
            return f"`{text.split('.')[-1]}`"
    return package


def _dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
