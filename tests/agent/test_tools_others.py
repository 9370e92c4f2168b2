"""Search, shell, think and finish; and what all tools have in common."""

import pytest

from rtmc.agent.tools import TOOLS
from rtmc.agent.tools import search as module


@pytest.fixture
def search(bench):
    bench.sandbox.put(
        {
            "b.py": b"def f():\n    return 10\n",
            "a/b.py": b"x = 1\n" * 9 + b"def g(): return 1\n",
            "a/c.txt": "def é".encode(),
            ".git/config": b"def f()",
            "bin": b"def\0",
        }
    )
    return lambda pattern, **more: TOOLS["search"]({"pattern": pattern, **more}, bench)


@pytest.mark.parametrize(
    ("pattern", "more", "text"),
    [
        ("def", {}, "a/b.py:10:def g(): return 1\na/c.txt:1:def é\nb.py:1:def f():"),
        (r"def \w\(\)", {"path": "a"}, "a/b.py:10:def g(): return 1"),
        (r"\d\d", {}, "b.py:2:    return 10"),
        ("^x", {"path": "a/b.py"}, "\n".join(f"a/b.py:{n}:x = 1" for n in range(1, 10))),
        ("def", {"include": "*.txt"}, "a/c.txt:1:def é"),
        ("é", {"path": None}, "a/c.txt:1:def é"),
        ("10$", {"path": "./b.py"}, "b.py:2:    return 10"),
    ],
)
def test_search(search, pattern, more, text):
    seen = search(pattern, **more)
    assert (seen.text, seen.exit_code, seen.is_error) == (text, 0, False)


def test_nothing_found_is_an_answer(search):
    seen = search("--nothing", path="a")
    assert seen.text == "nothing in a matches --nothing"
    assert (seen.exit_code, seen.is_error) == (1, False)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ({"pattern": "("}, "as of grep -P"),
        ({"pattern": ""}, "the pattern is empty"),
        ({"pattern": "x\0"}, "pattern holds a NUL character; leave it out"),
        ({"pattern": "x", "path": "none"}, "there is no none; view the folder above it"),
        ({"pattern": "x", "path": "/etc"}, "/etc leads out of the repository"),
        ({}, "Object missing required field `pattern`; search takes pattern, path (optional), "
             "include (optional)"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched(bench, call, text):
    seen = TOOLS["search"](call, bench)
    assert seen.is_error
    assert text in seen.text


def test_many_and_long_lines_are_cut_in_their_order(bench, search, monkeypatch):
    monkeypatch.setattr(module, "MOST_LINES", 3)
    monkeypatch.setattr(module, "MOST_BYTES", 20)
    bench.sandbox.write("long", ("é" * 50 + "\n").encode() * 12)
    lines = search("é", path="long").text.split("\n")
    # "./long:1:" are nine bytes, six more letters of two are 21 > 20
    assert lines[:3] == [f"long:{n}:ééééé…" for n in (1, 2, 3)]
    assert lines[3] == "… and 9 more lines; narrow pattern or path"


def test_unreadable_files_and_links_out_do_not_matter(bench, search):
    bench.sandbox.run("ln -s /etc/passwd out; ln -s nowhere dangling; mkdir z; mkfifo z/pipe")
    bench.sandbox.run("echo deft > z/secret; chmod 0 z/secret")
    assert search("def g").text == "a/b.py:10:def g(): return 1"
    assert search("root:").text == "nothing in . matches root:"


def test_a_search_out_of_time(bench, search):
    bench.sandbox.run("printf 'a%.0s' {1..3000} > slow; for i in {1..9}; do cat slow; done > s2")
    bench.timeout = 0.01
    seen = search("nothing", path=".")
    assert seen.timed_out or seen.exit_code == 1  # it may be fast
    bench.timeout = 1e-9
    seen = search("nothing", path=".")
    assert seen.text.startswith("the search did not finish; narrow the path")
    assert (seen.timed_out, seen.is_error) == (True, True)


def test_bash_keeps_its_directory_and_says_its_exit_code(bench):
    def bash(command):
        seen = TOOLS["bash"]({"command": command}, bench)
        return seen.text, seen.exit_code, seen.cwd

    root = bench.sandbox.workspace
    assert bash("mkdir sub; cd sub; A=1") == ("(no output)", 0, root)
    assert bash("pwd; echo $A; false") == (f"{root}/sub\n1\n[exit code 1]\n", 1, f"{root}/sub")
    text, code, _ = bash("exit 3")
    assert text.endswith("[exit code 3]\n")
    assert code == 3
    assert bash("cd ..")[2] == f"{root}/sub"
    assert bash("echo on") == ("on\n", 0, root)


def test_bash_out_of_time(bench):
    bench.timeout = 0.3
    seen = TOOLS["bash"]({"command": "echo a; sleep 100"}, bench)
    assert (seen.timed_out, seen.exit_code, seen.is_error) == (True, None, False)
    assert seen.text.startswith("a\n[killed after 0.3 s")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ({"command": " \n"}, "the command is empty"),
        ({"command": "touch made\0"}, "command holds a NUL character; leave it out"),
        ({"command": None}, "Object missing required field `command`; bash takes command"),
        ({"command": ["ls"]}, "Expected `str`, got `array` - at `$.command`; bash takes command"),
        ({"command": "ls", "timeout": 3}, "there is no parameter 'timeout'; bash takes command"),
    ],
)
def test_what_is_no_command(bench, call, text):
    seen = TOOLS["bash"](call, bench)
    assert (seen.text, seen.is_error, seen.exit_code) == (text, True, None)


def test_think_and_finish_touch_nothing(bench):
    before = bench.sandbox.state()
    assert TOOLS["think"]({"thought": "hm"}, bench).text == "noted"
    done = TOOLS["finish"]({}, bench)
    assert (done.text, done.done) == ("finished", True)
    assert bench.sandbox.state() == before


def test_schemas_are_what_endpoints_take():
    assert TOOLS["bash"].schema() == {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Run a command in a shell that keeps its working directory and "
            "environment.",
            "parameters": {
                "type": "object",
                "properties": {
                    "command": {
                        "type": "string",
                        "description": "The command line; several lines are fine.",
                    }
                },
                "required": ["command"],
                "additionalProperties": False,
            },
        },
    }
    editor = TOOLS["str_replace_editor"].schema()["function"]["parameters"]
    assert editor["required"] == ["command", "path"]
    assert {name: about["type"] for name, about in editor["properties"].items()} == {
        "command": "string",
        "path": "string",
        "view_range": "array",
        "file_text": "string",
        "old_str": "string",
        "new_str": "string",
        "insert_line": "integer",
    }
    assert editor["properties"]["view_range"]["items"] == {"type": "integer"}
    assert set(editor["properties"]["command"]["enum"]) == {
        "view", "create", "str_replace", "insert", "undo_edit"
    }  # fmt: skip


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_every_argument_is_described(tool):
    assert tool.name in TOOLS
    for about in tool.schema()["function"]["parameters"]["properties"].values():
        assert about["description"].endswith(".")
        assert about["type"] in ("string", "integer", "array")
