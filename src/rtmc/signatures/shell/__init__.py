"""Split shell text into simple commands, joined as the shell would join them.

Two ways to the same result. ``lexer`` handles words, quotes, comments, lists, pipes, redirections
and heredocs: nine of ten commands of real agents. What has a grammar of its own (loops,
subshells, substitutions) goes to ``grammar``, tree-sitter-bash. A differential test holds the two
together.

Expansions are not made: ``$X`` and ``*.py`` stay in the word as they are written.
"""

from itertools import pairwise

from rtmc.signatures.shell.grammar import parse
from rtmc.signatures.shell.lexer import lex
from rtmc.signatures.shell.words import Command, Pipeline, unquote

__all__ = ["Command", "Pipeline", "lex", "parse", "split", "unquote"]


def split(text: str) -> list[Pipeline] | None:
    """Split shell text into its pipelines, in order; None where it is no shell text."""
    if "\n" in text and len(text) > _TERMINAL_WIDTH and "<<" not in text:
        text = _unwrap(text)
    pipelines = lex(text)
    return parse(text) if pipelines is None else pipelines


_TERMINAL_WIDTH = 100
_CONSOLE_WIDTH = 160


def _unwrap(text: str) -> str:
    """Join the lines that a terminal has broken.

    It breaks at a word, leaving the blank in front of the break, where the next word would not
    have fitted; at the last column of a wide console it leaves none.
    """
    lines = text.split("\n")
    if " \n" not in text and max(map(len, lines)) < _CONSOLE_WIDTH - 3:
        return text
    out = [lines[0]]
    for before, line in pairwise(lines):
        if _breaks(before, line):
            out.append(line)
        elif _CONSOLE_WIDTH - 3 <= len(before) <= _CONSOLE_WIDTH and line[:1].strip():
            out.append(" " + line)
        else:
            out.append("\n" + line)
    return "".join(out)


def _breaks(line: str, following: str) -> bool:
    """Tell whether the first word of the following line would not have fitted on the line."""
    if line[-1:] != " " or not following[:1].strip():
        return False
    return len(line) + len(following.split(None, 1)[0]) >= _TERMINAL_WIDTH
