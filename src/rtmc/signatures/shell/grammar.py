"""Split shell text by its syntax tree, from tree-sitter-bash."""

import re
from collections.abc import Iterator
from functools import cache

from msgspec.structs import replace
from tree_sitter import Language, Node, Parser

from rtmc.signatures.shell.words import (
    ASSIGNMENT,
    Command,
    Pipeline,
    heredoc_body,
    join_wrapped,
    unquote,
)

__all__ = ["parse"]


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
            return join_wrapped(list(_Walk(source).statements(root, nested=False)))
    return None


def _mend(text: str) -> str:
    opened = list(re.finditer(r"<<-?[ \t]*(['\"]?)(\w+)\1", text))
    if opened and not re.search(rf"^\t*{opened[-1][2]}\s*$", text, re.MULTILINE):
        text = f"{text.rstrip(chr(10))}\n{opened[-1][2]}\n"
    return text if opened else _JOINED_LINE.sub(" ", text)


_COMPOUND = frozenset(
    "if_statement elif_clause else_clause for_statement c_style_for_statement while_statement "
    "case_statement case_item do_group compound_statement".split()
)


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
        return heredoc_body(text, 0, opening + self.text(delimiter))[0]

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
                case "variable_assignment" if ASSIGNMENT.match(self.text(child)):
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
