"""Splitting shell text: the lexer, the parser, and that they agree."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rtmc
from rtmc.signatures.shell import Command, Pipeline, lex, parse, split, unquote

from .pairs_differ import DIFFER, EXACT
from .pairs_meet import MEET


def line(*words: str) -> list[Pipeline]:
    return [Pipeline((Command(words),))]


def argvs(text: str) -> list[tuple[str, ...]]:
    pipelines = split(text)
    assert pipelines is not None
    return [command.argv for pipeline in pipelines for command in pipeline.commands]


BOTH = [
    ("ls -la", line("ls", "-la")),
    ("PYTHONPATH=. A='x y' pytest t.py", line("pytest", "t.py")),
    ("A=1", line()),
    ("echo 'a b' \"c $d\" e\\ f", line("echo", "a b", "c $d", "e f")),
    ("echo $'a\\nb'", line("echo", "a\nb")),
    ("# only a comment", []),
    ("grep -rn '#define' . # why", line("grep", "-rn", "#define", ".")),
    (
        "cd x && pytest 2>&1 | tail -5",
        [
            Pipeline((Command(("cd", "x")),), "&&"),
            Pipeline((Command(("pytest",), (("2>&", "1"),)), Command(("tail", "-5")))),
        ],
    ),
    (
        "a; b\nc &",
        [
            Pipeline((Command(("a",)),), ";"),
            Pipeline((Command(("b",)),), ";"),
            Pipeline((Command(("c",)),), "&"),
        ],
    ),
    (
        "cat <<'EOF' > f.py\n  indented $x\n\nEOF\npython f.py",
        [
            Pipeline((Command(("cat",), ((">", "f.py"),), "  indented $x\n\n"),), ";"),
            Pipeline((Command(("python", "f.py")),)),
        ],
    ),
    (
        "cat <<EOF > f.py && python f.py\nx = 1\nEOF",
        [
            Pipeline((Command(("cat",), ((">", "f.py"),), "x = 1\n"),), "&&"),
            Pipeline((Command(("python", "f.py")),)),
        ],
    ),
    ("cat <<-EOF\n\tx\n\tEOF", [Pipeline((Command(("cat",), (), "x\n"),))]),
    ("cat <<< word", [Pipeline((Command(("cat",), (), "word\n"),))]),
    ("python - <<EOF\nx\nEOF", [Pipeline((Command(("python", "-"), (), "x\n"),))]),
    (
        "a &&\n b ||\nc",
        [
            Pipeline((Command(("a",)),), "&&"),
            Pipeline((Command(("b",)),), "||"),
            Pipeline((Command(("c",)),)),
        ],
    ),
    ("sed -i 's/a/b/' f \\\n  g", line("sed", "-i", "s/a/b/", "f", "g")),
]


@pytest.mark.parametrize(("text", "expected"), BOTH)
def test_lexer_and_parser_split_alike(text: str, expected: list[Pipeline]) -> None:
    assert lex(text) == expected
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for f in *.py; do cat $f; done", [("cat", "$f")]),
        ("if [ -f a ]; then rm a; else touch a; fi", [("rm", "a"), ("touch", "a")]),
        (
            "while read l; do echo $l; done < f",
            [("read", "l"), ("echo", "$l"), ("{", "while read l; do echo $l; done")],
        ),
        ("(cd x && make) && ls", [("(",), ("cd", "x"), ("make",), (")",), ("ls",)]),
        ("{ a; b; } > out", [("a",), ("b",), ("{", "{ a; b; }")]),
        ("X=$(python a.py)", [(), ("python", "a.py")]),
        ('echo "$(rm a)"', [("rm", "a"), ("echo", "$(rm a)")]),
        ("! grep x f", [("grep", "x", "f")]),
        ("[[ -d a ]] && ls a", [("ls", "a")]),
        ("case $x in a) ls;; esac", [("ls",)]),
    ],
)
def test_what_needs_a_grammar_goes_to_the_parser(
    text: str, expected: list[tuple[str, ...]]
) -> None:
    assert lex(text) is None
    assert argvs(text) == expected


def test_an_open_heredoc_reaches_to_the_end() -> None:
    assert split("cat <<EOF > f\nx\ny") == [Pipeline((Command(("cat",), ((">", "f"),), "x\ny\n"),))]
    assert parse("cat <<EOF > f\nx\ny") == split("cat <<EOF > f\nx\ny")


@pytest.mark.parametrize("operator", ["&&", "||", "|"])
def test_a_line_that_begins_with_an_operator_goes_on(operator: str) -> None:
    assert split(f"cat a\n  {operator} head") == split(f"cat a {operator} head")
    assert parse(f"cat a\n  {operator} head") == split(f"cat a {operator} head")


def test_a_command_that_a_terminal_wrapped_is_one_command() -> None:
    words = " ".join(f"--include=*.{i:03}" for i in range(20))
    at = words.index(" ", 120)
    wrapped = f"grep -rn x . {words[:at]} \n{words[at + 1 :]}"
    assert split(wrapped) == split(f"grep -rn x . {words}")
    assert split("ls a \nls b") != split("ls a ls b")  # short lines are two commands


@pytest.mark.parametrize("text", ["echo 'open", 'echo "open', "a && ", "| a", "a > ", "for x"])
def test_what_nothing_can_split_is_none(text: str) -> None:
    assert lex(text) is None
    assert split(text) is None


def test_unquote_undoes_shell_quoting() -> None:
    assert unquote("'it'\\''s'") == "it's"
    assert unquote('"a\\"b\\$c\\n"') == 'a"b$c\\n'
    assert unquote("\\*.py") == "*.py"


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20), min_size=1
    )
)
def test_single_quoted_words_come_back(words: list[str]) -> None:
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    assert lex("run " + quoted) == line("run", *words)


@given(st.text("ab '\"\\$`()<>|&;#\n{}[]=*!\t~-", max_size=60))
def test_lexer_and_parser_never_crash_and_agree_where_both_accept(text: str) -> None:
    by_lexer, by_parser = lex(text), parse(text)
    if by_lexer is not None and by_parser is not None and _plain(text):
        assert by_lexer == by_parser


def _plain(text: str) -> bool:
    """Leave out what the grammar is known to read in its own way."""
    return not set(text) & set("<>\\#&{}[]=!()$`'\"|;\n")


HOSTILE = """
from rtmc.signatures.shell.lexer import lex
for text in (
    "a" * 20_000, "'" * 20_001, '"' + chr(92) * 20_001, "a=" * 10_000, "((" * 5_000,
    "x <<" * 3_000, "$" * 20_000, (" " + chr(92) + chr(10)) * 10_000,
    "echo " + "'a'" * 5_000 + "'",
):
    lex(text)
print("done")
"""


def test_hostile_text_does_not_hang_the_lexer() -> None:
    # nested quantifiers would take for ever; the limit only ends such a hang
    command = [sys.executable, "-c", HOSTILE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "done\n"


def commands(group_file: Path) -> list[str]:
    return [
        command
        for group in rtmc.read(group_file)
        for rollout in group.rollouts
        for step in rollout.steps
        for call in step.calls
        if isinstance(call.arguments, dict)
        and isinstance(command := call.arguments.get("command"), str)
        and call.name in ("bash", "execute_bash")
    ]


def disagreements(texts: list[str]) -> list[str]:
    return [
        text
        for text in texts
        if (a := lex(text)) is not None and (b := parse(text)) is not None and a != b
    ]


def test_they_agree_on_the_tables() -> None:
    runs = [run for pair in (*MEET, *DIFFER) for run in (pair.a, pair.b)]
    texts = [
        call.arguments["command"]
        for run in (*runs, *(row.what for row in EXACT))
        for step in run.steps
        for call in step.calls
        if call.name == "bash"
        and isinstance(call.arguments, dict)
        and isinstance(call.arguments.get("command"), str)
    ]
    assert len(texts) > 500
    assert disagreements(texts) == []


def test_they_agree_on_the_example() -> None:
    assert disagreements(commands(Path(__file__).parents[2] / "examples" / "group.jsonl")) == []


@pytest.mark.parametrize(
    ("file", "least"),
    [
        ("groups/terminal-bench.jsonl", 2700),
        ("mini-swe-agent/v1", 150),
        ("openhands/completions", 80),
    ],
)
def test_they_agree_on_every_real_command(real: Path, file: str, least: int) -> None:
    texts = commands(real / file)
    assert len(texts) > least
    assert disagreements(texts) == []
    fast = sum(lex(text) is not None for text in texts)
    assert fast / len(texts) > 0.9
