"""Split shell text by its tokens alone."""

import re

from rtmc.signatures.shell.words import (
    ASSIGNMENT,
    Command,
    Pipeline,
    heredoc_body,
    join_wrapped,
    unquote,
)

__all__ = ["lex"]

# A token: a run of plain words, if there is one, with what stands behind it. Every alternative of
# <word> starts with another character and every repeat is possessive (nothing is ever tried
# twice), so that matching is linear in the text.
_PLAIN = r"(?! \# | \d[<>] ) [a-zA-Z0-9_./:@%+,=~*?!#\[\]^{}-]++ (?= [ \t\r\n;&|<>] | \Z )"
_BLANK = r"[ \t]*+ (?: \\\r?\n [ \t]*+ )*+"
_TOKEN = re.compile(
    rf"""
    {_BLANK}
    (?P<plain> {_PLAIN} (?: [ \t]++ {_PLAIN} )*+ )?+
    {_BLANK}
    (?:
      (?P<newline> \r?\n | \Z )
    | (?P<operator> && | \|\| | \|&? | ;(?!;) | &(?!>) )
    | (?P<word> (?! \# | \d[<>] )
        (?: [^ \t\r\n\f\v'"\\;&|<>()$`]++
          | \\[^\r\n]
          | '[^']*+'
          | "(?: [^"\\$`]++ | \\. | \$\{{[^}}"'`$]*+\}} | \$(?![({{]) )*+"
          | \$'(?:[^'\\]++|\\.)*+'
          | \$\{{[^}}"'`$(\s]*+\}}
          | \$(?![({{'"])
        )++
      )
    | (?P<redirect> <<< | &>>? | \d?(?: >> | >& | >\| | > | <(?![<&]) )(?!\() )
    | (?P<heredoc> <<-?[ \t]*+ (?: '[^'\n]++' | "[^"\n]++" | \\?\w++ ) )
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
        "redirect",
        "redirects",
        "started",
        "stdin",
    )

    def __init__(self) -> None:
        self.pipelines: list[Pipeline] = []
        self.commands: list[Command] = []  # of the open pipeline
        self.argv: list[str] = []  # of the open command
        self.redirects: list[tuple[str, str]] = []
        self.redirect = ""  # the operator that awaits its target
        self.stdin: str | None = None
        self.started = False  # the open command has a word, an assignment or a redirection
        self.operator = ";"  # the one before the open command
        # openings of heredocs that await their body, each with its pipeline and command
        self.heredocs: list[tuple[str, int, int]] = []

    def take(self, word: str, raw: str) -> bool:
        """Take a word, unquoted and as written; False for one that starts a compound statement."""
        if self.redirect:
            if self.redirect == "<<<":
                self.stdin = word + "\n"
            else:
                self.redirects.append((self.redirect, word))
            self.redirect = ""
        elif self.argv or not ("=" in raw and ASSIGNMENT.match(raw)):
            if not self.argv and word in _NEEDS_GRAMMAR:
                return False
            self.argv.append(word)
        self.started = True
        return True

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
                self.pipelines.append(Pipeline(last.commands, self.operator))
            else:
                self.commands, self.operator = list(last.commands), "|"
        self.heredocs.clear()
        return at

    def _give_stdin(self, p: int, c: int, body: str) -> None:
        is_open = p == len(self.pipelines)
        commands = self.commands if is_open else list(self.pipelines[p].commands)
        commands[c] = Command(commands[c].argv, commands[c].redirects, body)
        if not is_open:
            self.pipelines[p] = Pipeline(tuple(commands), self.pipelines[p].operator)

    def result(self) -> list[Pipeline] | None:
        """Give the pipelines; None where the text ends in the middle of one."""
        pipelines = self.pipelines
        if self.commands or self.operator in ("&&", "||"):
            return None
        if pipelines and pipelines[-1].operator == ";":
            pipelines[-1] = Pipeline(pipelines[-1].commands)
        return join_wrapped(pipelines) if len(pipelines) > 1 else pipelines


def lex(text: str) -> list[Pipeline] | None:
    """Split without a grammar; None for text that needs one, or that nothing can split."""
    if _WORDS_ONLY.match(text):
        words = text.split()
        while words and "=" in words[0] and ASSIGNMENT.match(words[0]):
            del words[0]
        if not words or words[0] not in _NEEDS_GRAMMAR:
            return [Pipeline((Command(tuple(words)),))]
    line = _Builder()
    argv = line.argv
    match = _TOKEN.match
    at, end = 0, len(text)
    while True:
        token = match(text, at)
        if token is None:
            return None
        plain, kind, at = token["plain"], token.lastgroup, token.end()
        if plain:
            words = plain.split()
            while words and (not argv or line.redirect):
                if not line.take(words[0], words[0]):
                    return None
                del words[0]
            argv += words
        if kind == "word":
            word = token["word"]
            if not line.take(unquote(word), word):
                return None
            continue
        if kind == "comment":
            continue
        if line.redirect:
            return None
        if kind == "operator":
            if not line.close(token["operator"]):
                return None
        elif kind == "redirect":
            line.redirect = token["redirect"]
        elif kind == "heredoc":
            line.heredocs.append((token["heredoc"], len(line.pipelines), len(line.commands)))
            line.started = True
        else:  # the end of a line
            if line.started and at < end and not line.heredocs and _GOES_ON.match(text, at):
                continue
            line.close(";")
            if at < end or line.heredocs:
                at = line.fill_heredocs(text, at)
            if at >= end:
                return line.result()


def _skip(text: str, at: int) -> int:
    """Step over empty lines and comments."""
    while (token := _TOKEN.match(text, at)) and token.lastgroup in ("newline", "comment"):
        at = token.end()
    return at
