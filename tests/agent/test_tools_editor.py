"""The editor on real files."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtmc.agent.sandbox import BwrapSandbox
from rtmc.agent.tools import TOOLS, Workbench
from rtmc.agent.tools import editor as module

USAGE = (
    "str_replace_editor takes command (one of create, insert, str_replace, undo_edit, view), path, "
    "view_range (optional), file_text (optional), old_str (optional), new_str (optional), "
    "insert_line (optional)"
)
OUT = "leads out of the repository {root}; give a path relative to it, or use bash"


@pytest.fixture
def files(bench):
    """A file of ten lines and some odd ones."""
    bench.sandbox.put(
        {
            "src/ten.txt": "".join(f"line {n}\n" for n in range(1, 11)).encode(),
            "open.txt": b"a\nb",
            "empty": b"",
            "crlf.txt": b"a\r\nb\r\n",
            "mixed.txt": b"a\r\nb\n",
            "latin.txt": b"caf\xe9\n",
        }
    )
    return bench.sandbox


# --- view ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "view_range", "text"),
    [
        ("src/ten.txt", [9, 10], "     9\tline 9\n    10\tline 10"),
        ("src/ten.txt", [9, -1], "     9\tline 9\n    10\tline 10"),
        ("src/ten.txt", [9, 99], "     9\tline 9\n    10\tline 10"),
        ("src/ten.txt", "[1, 1]", "     1\tline 1"),  # as between XML tags
        ("src/ten.txt", "2, 2", "     2\tline 2"),
        ("src/ten.txt", ["3", "3"], "     3\tline 3"),
        ("./src/../src//ten.txt", [1, 1], "     1\tline 1"),
        (" src/ten.txt\n", [1, 1], "     1\tline 1"),
        ("open.txt", None, "     1\ta\n     2\tb"),
        ("crlf.txt", None, "     1\ta\n     2\tb"),
        ("mixed.txt", None, "     1\ta\r\n     2\tb"),
        ("empty", None, "empty is empty"),
        ("empty", [1, -1], "empty is empty"),
    ],
)
def test_view_a_file(files, edit, path, view_range, text):
    seen = edit("view", path, view_range=view_range)
    assert (seen.text, seen.is_error, seen.exit_code) == (text, False, None)


def test_paths_may_be_absolute_or_links(files, edit):
    files.run("ln -s src/ten.txt link; ln -s src folder")
    for path in ("link", "folder/ten.txt", f"{files.workspace}/src/ten.txt"):
        assert edit("view", path, view_range=[1, 1]).text == "     1\tline 1"


def test_a_line_ends_at_a_newline_and_nowhere_else(bench, edit):
    """As grep, sed and Python count; str.splitlines would find six lines here."""
    bench.sandbox.write("odd", "a\fb\vc\u2028d\x85e\rf\ng\n".encode())
    assert edit("view", "odd", view_range=[2, 2]).text == "     2\tg"
    assert edit("insert", "odd", insert_line=1, new_str="new").text.endswith(
        "     2\tnew\n     3\tg"
    )
    assert bench.sandbox.run("sed -n 2p odd").output == "new\n"


def test_view_a_folder(files, edit):
    files.run("mkdir -p .git a/b/c a/__pycache__ bare; touch a/b/c/deep a/x .hidden ./-dash")
    assert edit("view", ".").text == (
        "Here are the files and directories in ., two levels deep:\n"
        "-dash\na/\na/b/\na/x\nbare/\ncrlf.txt\nempty\nlatin.txt\nmixed.txt\nopen.txt\n"
        "src/\nsrc/ten.txt"
    )
    assert edit("view", files.workspace).text == edit("view", ".").text
    assert edit("view", "a/b/").text.endswith("in a/b, two levels deep:\na/b/c/\na/b/c/deep")
    assert edit("view", "bare").text.endswith(":\n(none)")
    assert edit("view", "-dash").text == "-dash is empty"
    files.run("touch a/{1..400}")
    shown = edit("view", "a").text.split("\n")
    assert len(shown) == 302
    assert shown[-1] == "… and more; view a folder of these"


def test_a_long_file_is_cut_and_says_where_to_go_on(files, bench, edit):
    bench.shown = 56  # "     1\tline 1\n" are 14 characters
    shown = edit("view", "src/ten.txt").text
    assert shown.split("\n")[-2:] == [
        "     4\tline 4",
        "… cut after line 4; go on with view_range [5, -1]",
    ]
    assert edit("view", "src/ten.txt", view_range=[5, -1]).text.startswith("     5\tline 5\n")
    assert edit("view", "src/ten.txt", view_range=[1, 4]).text.endswith("line 4")
    files.write("wide", b"x" * 100 + b"\nnext\n")
    assert edit("view", "wide").text == (
        "     1\t" + "x" * 49 + "\n… cut inside line 1; read the rest of it with bash"
    )


def test_a_huge_file_is_not_opened(files, edit, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    files.write("huge", b"x" * 101)
    for command in ("view", "str_replace", "insert"):
        seen = edit(command, "huge", old_str="a", new_str="b", insert_line=0)
        assert seen.is_error
        assert seen.text == "huge has 101 bytes, the editor opens 100; use sed in bash"


# --- edits --------------------------------------------------------------------------------------


def test_create_replace_insert_and_take_it_all_back(files, edit):
    before = files.state()
    made = edit("create", "new/deep/m.py", file_text="def f():\n    return 1")
    assert made.text == "created new/deep/m.py, 2 lines"
    assert files.read("new/deep/m.py") == b"def f():\n    return 1"
    changed = edit("str_replace", "new/deep/m.py", old_str="return 1", new_str="return 2")
    assert changed.text == (
        "edited new/deep/m.py; it reads now:\n     1\tdef f():\n     2\t    return 2"
    )
    grown = edit("insert", "./new/deep/m.py", insert_line=0, new_str="import os\n")
    assert grown.text.split("\n")[1:] == [
        "     1\timport os", "     2\tdef f():", "     3\t    return 2"
    ]  # fmt: skip
    assert edit("undo_edit", "new/deep/m.py").text == "took back the last edit of new/deep/m.py"
    assert files.read("new/deep/m.py") == b"def f():\n    return 2"
    edit("undo_edit", f"{files.workspace}/new/deep/m.py")
    assert files.read("new/deep/m.py") == b"def f():\n    return 1"
    gone = edit("undo_edit", "new/deep/m.py")
    assert gone.text == "removed new/deep/m.py, which did not exist before"
    assert files.state() == before
    nothing = edit("undo_edit", "new/deep/m.py")
    assert nothing.text == "there is no edit of new/deep/m.py to undo"
    assert nothing.is_error


def test_an_edit_shows_four_lines_around(files, edit):
    seen = edit("str_replace", "src/ten.txt", old_str="line 6\n", new_str="six\n6½\n")
    numbers = [int(line.split("\t")[0]) for line in seen.text.split("\n")[1:]]
    # six and 6½ are lines 6 and 7; the line after them was touched too, then come four more
    assert numbers == list(range(2, 13))[: len(numbers)]
    assert numbers[0] == 2
    assert "     6\tsix\n     7\t6½\n     8\tline 7\n" in seen.text


@pytest.mark.parametrize(
    ("path", "line", "new", "data"),
    [
        ("open.txt", 0, "x", b"x\na\nb"),
        ("open.txt", 1, "x\n", b"a\nx\nb"),
        ("open.txt", 2, "x", b"a\nb\nx\n"),
        ("open.txt", "2", "x\n\n", b"a\nb\nx\n\n"),
        ("empty", 0, "x", b"x\n"),
        ("empty", 0, "", b"\n"),
        ("crlf.txt", 1, "x\ny", b"a\r\nx\r\ny\r\nb\r\n"),
        ("crlf.txt", 2, "x\r\n", b"a\r\nb\r\nx\r\n"),
        ("mixed.txt", 2, "x", b"a\r\nb\nx\n"),
    ],
)
def test_insert(files, edit, path, line, new, data):
    before = files.read(path)
    assert not edit("insert", path, insert_line=line, new_str=new).is_error
    assert files.read(path) == data
    edit("undo_edit", path)
    assert files.read(path) == before


@pytest.mark.parametrize(
    ("path", "old", "new", "data"),
    [
        ("open.txt", "b", None, b"a\n"),
        ("open.txt", "a\nb", "", b""),
        ("crlf.txt", "a\nb", "a\nc\nb", b"a\r\nc\r\nb\r\n"),
        ("crlf.txt", "a\r\nb", "c", b"c\r\n"),
        ("mixed.txt", "a\r\n", "c\n", b"c\nb\n"),
    ],
)
def test_replace(files, edit, path, old, new, data):
    seen = edit("str_replace", path, old_str=old, new_str=new)
    assert not seen.is_error
    assert files.read(path) == data
    if not data:
        assert seen.text == "open.txt is empty now"


def test_programs_stay_programs(files, edit):
    files.run("echo 'echo one' > run.sh; chmod 755 run.sh")
    edit("str_replace", "run.sh", old_str="one", new_str="two")
    assert files.run("./run.sh").output == "two\n"


def test_a_link_and_its_file_have_one_history(files, edit):
    files.run("ln -s open.txt link")
    edit("str_replace", "link", old_str="a", new_str="1")
    edit("str_replace", "open.txt", old_str="b", new_str="2")
    assert files.run("readlink link").output == "open.txt\n"
    edit("undo_edit", "link")
    assert files.read("open.txt") == b"1\nb"


def test_a_file_that_would_be_too_large_is_left_as_it_was(open_bench):
    bench = open_bench(file_size=1000)
    bench.sandbox.write("a.txt", b"kept\n")
    editor = TOOLS["str_replace_editor"]
    big = {"command": "insert", "path": "a.txt", "insert_line": 0, "new_str": "x" * 2000}
    seen = editor(big, bench)
    assert seen.is_error
    assert seen.text == "cannot write a.txt: it would be larger than 1000 bytes"
    assert bench.sandbox.read("a.txt") == b"kept\n"
    new = editor({"command": "create", "path": "b.txt", "file_text": "x" * 2000}, bench)
    assert new.is_error
    assert bench.look("b.txt").kind == "nothing"
    assert not any(bench.undo.values())


def test_a_write_that_breaks_off_is_taken_back(open_bench):
    """A file system that fills up has already cut the file by then."""
    bench = open_bench(disk=1 << 20)
    if not isinstance(bench.sandbox, BwrapSandbox):
        pytest.skip("only bubblewrap holds the size of the disk")
    bench.sandbox.write("a.txt", b"kept\n" * 1000)
    call = {"command": "insert", "path": "a.txt", "insert_line": 0, "new_str": "x" * (2 << 20)}
    seen = TOOLS["str_replace_editor"](call, bench)
    assert seen.text == "cannot write a.txt: No space left on device"
    assert bench.sandbox.read("a.txt") == b"kept\n" * 1000
    call = {"command": "create", "path": "b.txt", "file_text": "x" * (2 << 20)}
    assert TOOLS["str_replace_editor"](call, bench).is_error
    assert bench.look("b.txt").kind == "nothing"


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "path", "more", "text"),
    [
        ("view", "src/ten.txt", {"view_range": [11, 12]},
         "view_range is [11, 12]; the file has lines 1 to 10"),
        ("view", "src/ten.txt", {"view_range": [0, 2]},
         "view_range is [0, 2]; the file has lines 1 to 10"),
        ("view", "src/ten.txt", {"view_range": [3, 2]},
         "view_range is [3, 2]; the file has lines 1 to 10"),
        ("view", "src/ten.txt", {"view_range": [3]},
         "view_range is [3]; expected two line numbers, as in [1, 40]"),
        ("view", "src/ten.txt", {"view_range": "all"},
         f"Expected `array | null`, got `str` - at `$.view_range`; {USAGE}"),
        ("view", "src", {"view_range": [1, 2]}, "src is a folder; view_range is for files"),
        ("view", "none.py", {},
         "cannot read none.py: No such file or directory; search, or view the folder"),
        ("view", "latin.txt", {}, "latin.txt is not a text file in UTF-8; look at it with bash"),
        ("view", "", {}, "the path is empty; '.' is the repository itself"),
        ("view", "a\0b", {}, "path holds a NUL character; leave it out"),
        ("view", 5, {}, f"Expected `str`, got `int` - at `$.path`; {USAGE}"),
        ("view", None, {}, f"Object missing required field `path`; {USAGE}"),
        ("open", "src", {}, f"Invalid enum value 'open' - at `$.command`; {USAGE}"),
        ("view", "src", {"line": 3}, f"there is no parameter 'line'; {USAGE}"),
        ("create", "x", {}, "create needs file_text"),
        ("create", "open.txt", {"file_text": ""},
         "open.txt exists already; change it with str_replace or insert"),
        ("create", "src", {"file_text": ""},
         "src exists already; change it with str_replace or insert"),
        ("create", "open.txt/x", {"file_text": ""}, "cannot write open.txt/x: File exists"),
        ("str_replace", "open.txt", {}, "str_replace needs old_str: the text to replace"),
        ("str_replace", "open.txt", {"old_str": "a", "new_str": "a"},
         "old_str and new_str are the same: nothing would change"),
        ("str_replace", "open.txt", {"old_str": "c"},
         "old_str does not occur in open.txt; view the file and copy it exactly"),
        ("str_replace", "src/ten.txt", {"old_str": "1"},
         "old_str occurs 2 times in src/ten.txt, at lines 1, 10; "
         "add lines around it until it is unique"),
        ("str_replace", "src/ten.txt", {"old_str": "e"},
         "old_str occurs 10 times in src/ten.txt, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10; "
         "add lines around it until it is unique"),
        ("str_replace", "src", {"old_str": "e"},
         "cannot read src: it is a folder; search, or view the folder"),
        ("insert", "open.txt", {"insert_line": 1}, "insert needs insert_line and new_str"),
        ("insert", "open.txt", {"new_str": ""}, "insert needs insert_line and new_str"),
        ("insert", "open.txt", {"insert_line": 3, "new_str": "x"},
         "insert_line is 3; open.txt has lines 1 to 2; 0 = top"),
        ("insert", "open.txt", {"insert_line": "end", "new_str": "x"},
         f"Expected `int | null`, got `str` - at `$.insert_line`; {USAGE}"),
        ("undo_edit", "open.txt", {}, "there is no edit of open.txt to undo"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_and_changes_nothing(files, edit, command, path, more, text):
    before = files.state()
    seen = edit(command, path, **more)
    assert (seen.text, seen.is_error) == (text, True)
    assert files.state() == before


def test_overlapping_places_are_not_unique(bench, edit):
    bench.sandbox.write("a", b"aaa")
    assert "occurs 2 times" in edit("str_replace", "a", old_str="aa", new_str="b").text
    bench.sandbox.write("a", b"aaa\n" * 10)
    assert "occurs 30 times in a, at lines 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, …; add" in (
        edit("str_replace", "a", old_str="a", new_str="b").text
    )


@pytest.mark.parametrize("command", ["view", "create", "str_replace", "insert", "undo_edit"])
@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "src/../../x", "etc/passwd", "loose/new"])
def test_nothing_outside_the_workspace_is_touched(files, edit, command, path):
    files.run("ln -s /etc etc; ln -s /tmp loose")
    seen = edit(command, path, file_text="x", old_str="root", new_str="x", insert_line=0)
    assert seen.text == f"{path} {OUT.format(root=files.workspace)}"
    assert files.run("ls /tmp").output.find("new") < 0


def test_pipes_and_dangling_links_are_no_files(files, edit):
    files.run("mkfifo pipe; ln -s nowhere dangling")
    assert edit("view", "pipe").text.startswith("cannot read pipe: it is no plain file")
    for path in ("pipe", "dangling"):
        assert "exists already" in edit("create", path, file_text="x").text


def test_a_very_long_path_is_answered_briefly(bench, edit):
    for size in (300, 5_000, 500_000):
        seen = edit("view", "x" * size)
        assert seen.is_error
        assert len(seen.text) <= 2000


# --- properties ---------------------------------------------------------------------------------

WORDS = st.text("ab\n\t é", max_size=6)
EDITS = st.lists(
    st.tuples(st.just("str_replace"), WORDS, WORDS)
    | st.tuples(st.just("insert"), st.integers(-1, 6), WORDS)
    | st.tuples(st.just("undo_edit"), st.none(), st.none()),
    max_size=8,
)


def places(text, part):
    return sum(text.startswith(part, at) for at in range(len(text)))


@settings(max_examples=40)
@given(st.text("ab\n\t é", max_size=30), st.sampled_from(["\n", "\r\n"]), EDITS)
def test_edits_are_those_of_a_text_and_undo_restores(shared, start, end, edits):
    """The same edits on a str, line by line, with its history."""
    if "\n" not in start:
        end = "\n"  # without a line there is no line end to keep
    bench, history = Workbench(shared), [start]
    shared.write("f", start.replace("\n", end).encode())
    editor = TOOLS["str_replace_editor"]
    for command, what, new in edits:
        text, call = history[-1], {"command": command, "path": "f", "new_str": new}
        match command:
            case "str_replace":
                call["old_str"] = what
                works = bool(what) and what != new and places(text, what) == 1
                changed = text.replace(what, new) if works else text
            case "insert":
                call["insert_line"] = what
                lines = text.removesuffix("\n").split("\n") if text else []
                works = 0 <= what <= len(lines)
                added = new if new.endswith("\n") else new + "\n"
                above = "".join(f"{line}\n" for line in lines[:what])
                below = text.removeprefix(above) if what < len(lines) else ""
                changed = above + added + below
            case _:
                works = len(history) > 1
        if end == "\r\n" and works and command != "undo_edit" and "\n" not in changed:
            continue  # it would leave no line end to know it by
        assert editor(call, bench).is_error is not works
        if works:
            history = history[:-1] if command == "undo_edit" else [*history, changed]
        assert shared.read("f").decode() == history[-1].replace("\n", end)
    while len(history) > 1:
        history.pop()
        editor({"command": "undo_edit", "path": "f"}, bench)
        assert shared.read("f").decode() == history[-1].replace("\n", end)


@settings(max_examples=20)
@given(st.text(max_size=40).filter(lambda text: "\0" not in text))
def test_any_text_is_created_as_it_is(shared, text):
    shared.exec(["rm", "-f", "new"])
    call = {"command": "create", "path": "new", "file_text": text}
    assert not TOOLS["str_replace_editor"](call, Workbench(shared)).is_error
    assert shared.read("new").decode() == text
