"""Split shell text into simple commands, joined as the shell would join them.

Two ways to the same result. ``lex`` handles words, quotes, comments, lists, pipes, redirections
and heredocs: nine of ten commands of real agents. What has a grammar of its own (loops,
subshells, substitutions) goes to ``parse``, tree-sitter-bash. A differential test holds the two
together.

Expansions are not made: ``$X`` and ``*.py`` stay in the word as they are written.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace
from tree_sitter import Language, Node, Parser

__all__ = ["Command", "Pipeline", "lex", "parse", "split", "unquote"]


class Command(Struct, frozen=True, gc=False):
    """One simple command: its words without assignments, its redirections, its standard input.

    ``redirects`` holds pairs (operator, target); ``stdin`` the text of a heredoc or here-string.
    The pseudo commands ``(`` and ``)`` open and close a subshell, ``{`` carries the redirections
    of a compound statement; an empty ``argv`` only carries redirections or assigned variables.
    """

    argv: tuple[str, ...]
    redirects: tuple[tuple[str, str], ...] = ()
    stdin: str | None = None


class Pipeline(Struct, frozen=True, gc=False):
    """Commands joined by ``|``, and what joins them to the next: ``&&  ||  ;  &`` or nothing.

    ``nested``: inside a loop, a condition or a subshell, so that the exit code of the whole text
    says nothing about it.
    """

    commands: tuple[Command, ...]
    operator: str = ""
    nested: bool = False


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


def _join_wrapped(pipelines: list[Pipeline]) -> list[Pipeline]:
    """Join a line that begins with an option or ``;`` to the line before: no command does.

    Logs of terminals break long lines so; tree-sitter joins some of them itself.
    """
    joined: list[Pipeline] = []
    for pipeline in pipelines:
        first = pipeline.commands[0]
        word = first.argv[0] if first.argv else ""
        before = joined[-1] if joined else None
        if before and before.operator == ";" and (word == ";" or (word[:1] == "-" and word[1:])):
            last = before.commands[-1]
            whole = Command(
                last.argv + first.argv, last.redirects + first.redirects, first.stdin or last.stdin
            )
            commands = (*before.commands[:-1], whole, *pipeline.commands[1:])
            joined[-1] = replace(pipeline, commands=commands)
        else:
            joined.append(pipeline)
    return joined


# --- words -------------------------------------------------------------------------------------

_QUOTED = re.compile(
    r"""(?P<ansi>\$'(?:[^'\\]++|\\.)*+')|(?P<single>'[^']*+')|(?P<double>"(?:[^"\\]++|\\.)*+")"""
    r"""|\\(?P<escaped>.)|(?P<plain>[^'"\\$]++|.)""",
    re.DOTALL,
)
_DOUBLE_ESCAPE = re.compile(r'\\([\\"$`\n])')
_ANSI_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ANSI_NAMES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


def unquote(word: str) -> str:
    """Remove quotes and backslashes as the shell does, without expanding anything."""
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    parts: list[str] = []
    for piece in _QUOTED.finditer(word):
        text = piece.group()
        match piece.lastgroup:
            case "single":
                parts.append(text[1:-1])
            case "double":
                parts.append(_DOUBLE_ESCAPE.sub(lambda m: "" if m[1] == "\n" else m[1], text[1:-1]))
            case "escaped":
                parts.append("" if text == "\\\n" else text[1:])
            case "ansi":
                parts.append(_ANSI_ESCAPE.sub(lambda m: _ANSI_NAMES.get(m[1], m[0]), text[2:-1]))
            case _:
                parts.append(text)
    return "".join(parts)


# --- the lexer ---------------------------------------------------------------------------------

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
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
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
            body, at = _heredoc_body(text, at, opening)
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
        return _join_wrapped(pipelines)


def lex(text: str) -> list[Pipeline] | None:
    """Split without a grammar; None for text that needs one, or that nothing can split."""
    if _WORDS_ONLY.match(text):
        words = text.split()
        if words[0] not in _NEEDS_GRAMMAR and not _ASSIGNMENT.match(words[0]):
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
                elif argv or not _ASSIGNMENT.match(value if kind == "word" else word):
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


_UNQUOTED_ESCAPE = re.compile(r"\\([\\$`\n])")


def _heredoc_body(text: str, at: int, opening: str) -> tuple[str, int]:
    """Cut the body that starts at ``at``; an unterminated one reaches to the end, as in bash."""
    dash = opening.startswith("<<-")
    delimiter = opening[3 if dash else 2 :].strip(" \t").strip("'\"").lstrip("\\")
    end, behind = _delimiter(text, at, delimiter, dash)
    body = text[at:end] if behind >= 0 else text[at:].rstrip("\n") + "\n"
    if dash:
        body = re.sub(r"^\t+", "", body, flags=re.MULTILINE)
    if "\\" in body and not any(mark in opening for mark in "'\"\\"):
        body = _UNQUOTED_ESCAPE.sub(lambda m: "" if m[1] == "\n" else m[1], body)
    return body, behind if behind >= 0 else len(text)


def _delimiter(text: str, at: int, delimiter: str, dash: bool) -> tuple[int, int]:
    """Find the line that closes a heredoc: where it starts, and what is behind it; −1 if none."""
    if dash:
        closing = re.compile(rf"^\t*{re.escape(delimiter)}\r?$", re.MULTILINE).search(text, at)
        return (closing.start(), min(closing.end() + 1, len(text))) if closing else (-1, -1)
    found = at - 1
    while (found := text.find(delimiter, found + 1)) >= 0:
        end = found + len(delimiter)
        if (found == at or text[found - 1] == "\n") and (
            text[end : end + 1] in ("", "\n") or text[end : end + 2] == "\r\n"
        ):
            newline = text.find("\n", end)
            return found, newline + 1 if newline >= 0 else len(text)
    return -1, -1


# --- the parser --------------------------------------------------------------------------------


@cache
def _parser() -> Parser:
    import tree_sitter_bash

    return Parser(Language(tree_sitter_bash.language()))


_JOINED_LINE = re.compile(r"\n[ \t]*(?=&&|\|)")


def parse(text: str) -> list[Pipeline] | None:
    """Split with tree-sitter-bash; None where it finds an error that cannot be mended.

    Before an error is believed, lines that begin with an operator are joined to the line before
    (real logs have them where a terminal has wrapped), and an open heredoc is closed.
    """
    for attempt in (text, _mend(text)):
        source = attempt.encode("utf-8", "surrogatepass")
        root = _parser().parse(source).root_node
        if not root.has_error:
            return _join_wrapped(list(_Walk(source).statements(root, nested=False)))
    return None


def _mend(text: str) -> str:
    opened = list(re.finditer(r"<<-?[ \t]*(['\"]?)(\w+)\1", text))
    if opened and not re.search(rf"^\t*{opened[-1][2]}\s*$", text, re.MULTILINE):
        text = f"{text.rstrip(chr(10))}\n{opened[-1][2]}\n"
    return text if opened else _JOINED_LINE.sub(" ", text)


_LISTS = frozenset(("program", "list", "compound_statement", "do_group", "else_clause"))
_COMPOUND = frozenset(
    "if_statement elif_clause else_clause for_statement c_style_for_statement while_statement "
    "case_statement case_item do_group compound_statement".split()
)
_CONDITIONS = frozenset(("test_command", "arithmetic_expansion", "comment", "variable_name"))


class _Walk:
    """Turn a syntax tree into pipelines."""

    def __init__(self, source: bytes) -> None:
        self.source = source

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def statements(self, node: Node, nested: bool) -> Iterator[Pipeline]:
        """Yield the pipelines of a list of statements, each with the operator behind it."""
        waiting: Pipeline | None = None
        for child in node.children:
            if not child.is_named:
                operator = child.type
                if waiting and operator in ("&&", "||", "&"):
                    waiting = replace(waiting, operator=operator)
                continue
            for pipeline in self.statement(child, nested):
                if waiting:
                    yield waiting
                waiting = pipeline if pipeline.operator else replace(pipeline, operator=";")
        if waiting:
            at_end = waiting.operator == ";"
            yield replace(waiting, operator="") if at_end else waiting

    def statement(self, node: Node, nested: bool) -> Iterator[Pipeline]:
        match node.type:
            case "list" | "program":
                yield from self.statements(node, nested)
            case "command" | "declaration_command" | "unset_command":
                yield from self.inside(node)
                yield Pipeline((self.command(node),), "", nested)
            case "variable_assignment" | "variable_assignments":
                yield Pipeline((Command(()),), "", nested)
                yield from self.inside(node)
            case "pipeline":
                yield from self.pipeline(node, nested)
            case "redirected_statement":
                yield from self.redirected(node, nested)
            case "negated_command":
                for child in node.named_children:
                    yield from self.statement(child, True)
            case "subshell":
                yield Pipeline((Command(("(",)),), ";", True)
                yield from self.statements(node, True)
                yield Pipeline((Command((")",)),), "", True)
            case kind if kind in _COMPOUND:
                yield from self.statements(node, True)
            case _:
                return  # conditions, words of a loop, function definitions: nothing runs

    def inside(self, node: Node) -> Iterator[Pipeline]:
        """Yield what the substitutions in words and assignments run."""
        for child in node.children:
            if child.type == "command_substitution":
                for pipeline in self.statements(child, True):
                    yield replace(pipeline, operator=";")
            elif child.child_count and child.type not in ("subscript", "heredoc_redirect"):
                yield from self.inside(child)

    def pipeline(self, node: Node, nested: bool) -> Iterator[Pipeline]:
        """Yield a pipeline; a list at its head keeps all but its last element to itself."""
        stages = [child for child in node.named_children if child.type != "comment"]
        head = list(self.statement(stages[0], nested))
        for stage in stages[1:]:
            tail = list(self.statement(stage, nested))
            if (
                head
                and tail
                and not (head[-1].commands[-1].argv == (")",) or tail[0].nested > nested)
            ):
                joined = head[-1].commands + tail[0].commands
                head[-1] = Pipeline(joined, tail[0].operator, nested)
                head += tail[1:]
            else:
                head += tail
        yield from head

    def redirected(self, node: Node, nested: bool) -> Iterator[Pipeline]:
        """Yield a statement with redirections, which belong to its last command."""
        body = node.child_by_field_name("body")
        redirects: list[tuple[str, str]] = []
        extra: list[str] = []
        stdin: str | None = None
        rest: list[Pipeline] = []
        continued = ""
        for child in node.children:
            if body is not None and child.id == body.id:
                continue
            if child.type == "file_redirect":
                self.file_redirect(child, redirects, extra)
            elif child.type == "herestring_redirect":
                stdin = unquote(self.text(child.named_children[-1])) + "\n"
            elif child.type == "heredoc_redirect":
                stdin = self.heredoc(child, redirects, extra)
                continued, rest = self.behind_heredoc(child, nested)
        if body is not None:  # the grammar loses a `-` in front of a heredoc
            behind = next((c for c in node.children if c.start_byte >= body.end_byte), body)
            extra[:0] = self.source[body.end_byte : behind.start_byte].decode().split()
        pipelines = list(self.statement(body, nested)) if body is not None else []
        last = pipelines[-1].commands[-1] if pipelines else Command(())
        if not pipelines or last.argv == (")",) or pipelines[-1].nested > nested:
            # what a compound statement prints goes into the file
            words = ("{", self.text(body)) if body is not None else ()
            whole = Command(words, tuple(redirects), stdin)
            pipelines.append(Pipeline((whole,), "", bool(pipelines)))
        else:
            given = replace(
                last,
                argv=last.argv + tuple(extra),
                redirects=last.redirects + tuple(redirects),
                stdin=last.stdin if stdin is None else stdin,
            )
            commands = (*pipelines[-1].commands[:-1], given)
            pipelines[-1] = replace(pipelines[-1], commands=commands)
        if continued == "|" and rest:
            commands = pipelines[-1].commands + rest[0].commands
            pipelines[-1] = Pipeline(commands, rest[0].operator, nested)
            rest = rest[1:]
        elif continued:
            pipelines[-1] = replace(pipelines[-1], operator=continued)
        yield from pipelines
        yield from rest

    def file_redirect(self, node: Node, redirects: list[tuple[str, str]], extra: list[str]) -> None:
        descriptor = operator = ""
        words: list[str] = []
        for child in node.children:
            if child.type == "file_descriptor":
                descriptor = self.text(child)
            elif not child.is_named:
                operator = child.type
            else:
                words.append(unquote(self.text(child)))
        if words:  # the grammar takes the words behind the target for targets too
            redirects.append((descriptor + operator, words[0]))
            extra += words[1:]

    def heredoc(self, node: Node, redirects: list[tuple[str, str]], extra: list[str]) -> str:
        """Cut a heredoc's body from the source: its node has lost leading blanks."""
        body = delimiter = None
        opening = "<<"
        for child in node.children:
            match child.type:
                case "<<" | "<<-":
                    opening = child.type
                case "heredoc_start":
                    delimiter = child
                case "heredoc_body" | "heredoc_end" if body is None:
                    body = child
                case "file_redirect":
                    self.file_redirect(child, redirects, extra)
                case kind if kind in ("word", "string", "raw_string", "concatenation", "number"):
                    extra.append(unquote(self.text(child)))
        if body is None or delimiter is None:
            return ""
        line = self.source[delimiter.start_byte : body.start_byte].rstrip()
        start = self.source.index(b"\n", delimiter.start_byte + len(line)) + 1
        text = self.source[start:].decode("utf-8", "replace")
        return _heredoc_body(text, 0, opening + self.text(delimiter))[0]

    def behind_heredoc(self, node: Node, nested: bool) -> tuple[str, list[Pipeline]]:
        """Find what follows the opening on its line: ``cat <<EOF && python x``, ``<<EOF | sh``."""
        operator = ""
        rest: list[Pipeline] = []
        for child in node.children:
            if child.type in ("&&", "||"):
                operator = child.type
            elif child.type == "pipeline":
                operator = "|"
                rest += self.pipeline_tail(child, nested)
            elif child.type in ("command", "list", "redirected_statement", "subshell"):
                rest += self.statement(child, nested)
        return operator, rest

    def pipeline_tail(self, node: Node, nested: bool) -> Iterator[Pipeline]:
        commands: list[Command] = []
        for child in node.named_children:
            for pipeline in self.statement(child, nested):
                commands += pipeline.commands
        yield Pipeline(tuple(commands), "", nested)

    def command(self, node: Node) -> Command:
        argv: list[str] = []
        redirects: list[tuple[str, str]] = []
        stdin: str | None = None
        for child in node.children:
            match child.type:
                case "variable_assignment" if _ASSIGNMENT.match(self.text(child)):
                    if node.type != "command":
                        argv.append(unquote(self.text(child)))
                case "file_redirect":
                    self.file_redirect(child, redirects, argv)
                case "herestring_redirect":
                    stdin = unquote(self.text(child.named_children[-1])) + "\n"
                case "comment":
                    continue
                case _:
                    argv.append(unquote(self.text(child).lstrip("\n")))
        return Command(tuple(argv), tuple(redirects), stdin)
