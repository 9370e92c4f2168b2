"""Split shell text by its tokens alone."""

import re

from msgspec.structs import replace

from rtmc.signatures.shell.words import (
    ASSIGNMENT,
    Command,
    Pipeline,
    heredoc_body,
    join_wrapped,
    unquote,
)

__all__ = ["lex"]

# Every alternative of <word> starts with another character and every repeat is possessive (nothing
# is ever tried twice), so that matching is linear in the text. Words come first: they are the most.
_TOKEN = re.compile(
    r"""
    (?: [ \t] | \\\r?\n )*+
    (?:
      (?P<plain>
        (?! \# | \d[<>] ) [^\s'"\\;&|<>()$`]++ (?= [\s;&|<>] | \Z )
        (?: [ \t]++ (?! \# | \d[<>] ) [^\s'"\\;&|<>()$`]++ (?= [\s;&|<>] | \Z ) )*+
      )
    | (?P<word> (?! \# | \d[<>] )
        (?: [^\s'"\\;&|<>()$`]++
          | \\[^\r\n]
          | '[^']*+'
          | "(?: [^"\\$`]++ | \\. | \$\{[^}"'`$]*+\} | \$(?![({]) )*+"
          | \$'(?:[^'\\]++|\\.)*+'
          | \$\{[^}"'`$(\s]*+\}
          | \$(?![({'"])
        )++
      )
    | (?P<newline> \r?\n | \Z )
    | (?P<operator> && | \|\| | \|&? | ;(?!;) | &(?!>) )
    | (?P<heredoc> <<-?[ \t]*+ (?: '[^'\n]++' | "[^"\n]++" | \\?\w++ ) )
    | (?P<redirect> <<< | &>>? | \d?(?: >> | >& | >\| | > | <(?![<&]) )(?!\() )
    | (?P<comment> \#[^\n]*+ )
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_WORDS_ONLY = re.compile(r"[ \t]*+[\w./:@%+,^=~*?-][\w./:@%+,^=~*? \t-]*+\Z")
_NEEDS_GRAMMAR = frozenset(
    "for while until if case select function coproc { } [ [[ ! do done then else elif fi "
    "esac".split()
)
_GOES_ON = re.compile(r"(?:\s|#[^\n]*+\n)*+(?:&&|\|)")


class _Builder:
    """Collects words into commands, commands into pipelines."""

    __slots__ = (
        "argv",
        "commands",
        "heredocs",
        "operator",
        "pipelines",
        "redirects",
        "started",
        "stdin",
    )

    def __init__(self) -> None:
        self.pipelines: list[Pipeline] = []
        self.commands: list[Command] = []  # of the open pipeline
        self.argv: list[str] = []  # of the open command
        self.redirects: list[tuple[str, str]] = []
        self.stdin: str | None = None
        self.started = False  # the open command has a word, an assignment or a redirection
        self.operator = ";"  # the one before the open command
        # openings of heredocs that await their body, each with its pipeline and command
        self.heredocs: list[tuple[str, int, int]] = []

    def close(self, operator: str) -> bool:
        """End the open command at an operator; False where an operator has no place."""
        if not self.started:
            return self.operator == "&" and operator == ";"
        self.commands.append(Command(tuple(self.argv), tuple(self.redirects), self.stdin))
        self.argv.clear()
        self.redirects.clear()
        self.stdin, self.started = None, False
        if operator in ("|", "|&"):
            self.operator = "|"
        else:
            self.pipelines.append(Pipeline(tuple(self.commands), operator))
            self.commands, self.operator = [], operator
        return True

    def fill_heredocs(self, text: str, at: int) -> int:
        """Cut the bodies that start at ``at``, and say where the text goes on."""
        for opening, p, c in self.heredocs:
            body, at = heredoc_body(text, at, opening)
            self._give_stdin(p, c, body)
        goes_on = not self.commands and self.pipelines and _GOES_ON.match(text, at)
        if self.heredocs and goes_on:
            # the operator stands on the line after the body: join it to the command above
            found = _TOKEN.match(text, _skip(text, at))
            assert found is not None
            at, self.operator = found.end(), found["operator"]
            last = self.pipelines.pop()
            if self.operator in ("||", "&&"):
                self.pipelines.append(replace(last, operator=self.operator))
            else:
                self.commands, self.operator = list(last.commands), "|"
        self.heredocs.clear()
        return at

    def _give_stdin(self, p: int, c: int, body: str) -> None:
        if p == len(self.pipelines):
            self.commands[c] = replace(self.commands[c], stdin=body)
            return
        given = list(self.pipelines[p].commands)
        given[c] = replace(given[c], stdin=body)
        self.pipelines[p] = replace(self.pipelines[p], commands=tuple(given))

    def result(self) -> list[Pipeline] | None:
        """Give the pipelines; None where the text ends in the middle of one."""
        pipelines = self.pipelines
        if self.commands or self.operator in ("&&", "||"):
            return None
        if pipelines and pipelines[-1].operator == ";":
            pipelines[-1] = replace(pipelines[-1], operator="")
        return join_wrapped(pipelines)


def lex(text: str) -> list[Pipeline] | None:
    """Split without a grammar; None for text that needs one, or that nothing can split."""
    if _WORDS_ONLY.match(text):
        words = text.split()
        if words[0] not in _NEEDS_GRAMMAR and not ASSIGNMENT.match(words[0]):
            return [Pipeline((Command(tuple(words)),))]
    line = _Builder()
    argv = line.argv
    redirect = ""  # an operator that awaits its target
    match = _TOKEN.match
    at, end = 0, len(text)
    while True:
        token = match(text, at)
        if token is None:
            return None
        kind, at = token.lastgroup, token.end()
        assert kind is not None  # every alternative has a name
        value = token[kind]
        if kind == "plain" or kind == "word":
            words = value.split() if kind == "plain" else [unquote(value)]
            if argv and not redirect:
                argv += words
                continue
            for word in words:
                if redirect == "<<<":
                    line.stdin = word + "\n"
                elif redirect:
                    line.redirects.append((redirect, word))
                elif not argv and word in _NEEDS_GRAMMAR:
                    return None
                elif argv or not ASSIGNMENT.match(value if kind == "word" else word):
                    argv.append(word)
                line.started, redirect = True, ""
        elif kind == "comment":
            continue
        elif redirect:
            return None
        elif kind == "redirect":
            redirect = value
        elif kind == "heredoc":
            line.heredocs.append((value, len(line.pipelines), len(line.commands)))
            line.started = True
        elif kind == "operator":
            if not line.close(value):
                return None
        else:  # the end of a line
            if line.started and at < end and not line.heredocs and _GOES_ON.match(text, at):
                continue
            line.close(";")
            at = line.fill_heredocs(text, at)
            if at >= end:
                return line.result()


def _skip(text: str, at: int) -> int:
    """Step over empty lines and comments."""
    while (token := _TOKEN.match(text, at)) and token.lastgroup in ("newline", "comment"):
        at = token.end()
    return at
