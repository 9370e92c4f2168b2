"""Steps that do different work in similar words, and single steps with the key they must have.

``DIFFER`` holds pairs whose action keys must not be equal, ``STATES_DIFFER`` pairs of rollouts
whose states must not be, and ``EXACT`` steps with a pattern of their whole written key.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from rtmc.rollouts import Step

from .pairs_meet import (
    BODY,
    CARGO_FAIL,
    CARGO_OK,
    DJANGO_OK,
    GO_FAIL,
    GO_OK,
    JEST_FAIL,
    JEST_OK,
    LINES,
    NEW,
    OLD,
    PYTEST_ERROR,
    PYTEST_FAIL,
    PYTEST_PASS,
    SYMPY_FAIL,
    SYMPY_OK,
    UNITTEST_FAIL,
    UNITTEST_OK,
    Pair,
    Run,
    StatePair,
    as_run,
    bash,
    editor,
    free,
    prose,
    raw,
    run,
    run_of,
    together,
    tool,
)


class Exact(NamedTuple):
    note: str
    what: Run
    pattern: str


def differ(note: str, a: Step | Run, b: Step | Run) -> Pair:
    return Pair(note, as_run(a), as_run(b))


def apart(note: str, *steps: Step | Run) -> Iterator[Pair]:
    """All pairs of a few steps."""
    for a, b in combinations(steps, 2):
        yield differ(note, a, b)


CAT = bash("cat src/core.py")
NO_MATCH = (
    "No replacement was performed, old_str `x` did not appear verbatim in /testbed/src/core.py."
)
PYTEST = bash("pytest tests/test_core.py", PYTEST_PASS)


def view_pairs() -> Iterator[Pair]:
    yield differ("next bucket", bash("sed -n '90,100p' a.py"), bash("sed -n '101,110p' a.py"))
    yield differ("across a border", bash("sed -n '90,100p' a.py"), bash("sed -n '90,101p' a.py"))
    yield differ("nl, other lines", bash("nl -ba a.py | sed -n '951,980p'"),
                 bash("nl -ba a.py | sed -n '748,780p'"))  # fmt: skip
    yield differ("view_range, other lines", editor("view", "/testbed/a.py", view_range=[345, 389]),
                 editor("view", "/testbed/a.py", view_range=[445, 489]))  # fmt: skip
    yield differ("text of a range", editor("view", "/testbed/a.py", view_range="[345, 389]"),
                 editor("view", "/testbed/a.py", view_range="[345, -1]"))  # fmt: skip
    yield differ("full or a range", bash("cat a.py"), bash("sed -n '1,50p' a.py"))
    yield differ("full or open range", bash("cat a.py"), bash("sed -n '150,$p' a.py"))
    yield differ("full or head", bash("cat a.py"), bash("cat a.py | head -50"))
    yield differ("full or tail", bash("cat a.py"), bash("tail -50 a.py"))
    yield differ("head or tail", bash("head -20 a.py"), bash("tail -20 a.py"))
    yield differ("tail -n or tail -n +", bash("tail -n 200 a.py"), bash("tail -n +200 a.py"))
    yield differ("short or long head", bash("head -50 a.py"), bash("head -150 a.py"))
    yield differ("open at another line", tool("open", path="a.py", line=20),
                 tool("open", path="a.py", line=1474))  # fmt: skip
    yield differ("opened at a line or whole", tool("open", path="a.py", line=250),
                 tool("open", path="a.py"))  # fmt: skip
    yield differ("goto another line", run(tool("open", path="a.py"), tool("goto", line=10)),
                 run(tool("open", path="a.py"), tool("goto", line=910)))  # fmt: skip
    yield differ("goto in another file", run(tool("open", path="a.py"), tool("goto", line=10)),
                 run(tool("open", path="b.py"), tool("goto", line=10)))  # fmt: skip
    yield differ(
        "Read at another offset",
        tool("Read", file_path="/repo/a.py", offset=10, limit=20),
        tool("Read", file_path="/repo/a.py", offset=510, limit=20),
    )
    yield differ("awk, other lines", bash("awk 'NR>=10 && NR<=20' a.py"),
                 bash("awk 'NR>=210 && NR<=220' a.py"))  # fmt: skip
    yield differ("one of two ranges", bash("sed -n '10,20p;150,160p' a.py"),
                 bash("sed -n '10,20p' a.py"))  # fmt: skip
    yield differ("first range only shared", bash("sed -n '10,20p;150,160p' a.py"),
                 bash("sed -n '10,20p;350,360p' a.py"))  # fmt: skip
    yield differ("same name, other folder", bash("cat src/core.py"), bash("cat lib/core.py"))
    yield differ("same name, at the root", bash("cat src/core.py"), bash("cat core.py"))
    yield differ("deeper", bash("cat src/core.py"), bash("cat src/src/core.py"))
    yield differ("other file type", bash("cat src/core.py"), bash("cat src/core.pyi"))
    yield differ("case", bash("cat README.md"), bash("cat readme.md"))
    yield differ("cd elsewhere", bash("cd src && cat core.py"), bash("cd lib && cat core.py"))
    yield differ("cd kept", run(bash("cd src"), bash("cat core.py")),
                 run(bash("ls"), bash("cat core.py")))  # fmt: skip
    yield differ("cd forgotten", run(bash("cd src"), bash("cat core.py")),
                 run(bash("cd src"), bash("cat core.py"), persistent=False))  # fmt: skip
    yield differ("subshell's cd is lost", bash("(cd src && ls); cat core.py"),
                 bash("cd src && ls; cat core.py"))  # fmt: skip
    yield differ("bash -c's cd is lost", run(bash("bash -c 'cd src'"), bash("cat core.py")),
                 run(bash("cd src"), bash("cat core.py")))  # fmt: skip
    yield differ("recorded directory", bash("cat core.py", cwd="/testbed/src"),
                 bash("cat core.py", cwd="/testbed/lib"))  # fmt: skip
    yield differ(
        "named root or not",
        run(bash("cat /home/dev/widget/a.py"), root="/home/dev/widget"),
        run(bash("cat /home/dev/other/a.py"), root="/home/dev/widget"),
    )
    yield differ("outside the root", bash("cat /etc/a.conf"), bash("cat /testbed/a.conf"))
    yield differ("one file or two", bash("cat a.py"), bash("cat a.py b.py"))
    yield differ("order of two files", bash("cat a.py; cat b.py"), bash("cat b.py; cat a.py"))
    yield differ("second file differs", bash("cat a.py b.py"), bash("cat a.py c.py"))
    yield differ("file or folder", bash("cat src"), bash("ls src"))
    yield differ("folders", bash("ls src"), bash("ls lib"))
    yield differ("folder and its parent", bash("ls src"), bash("ls ."))
    yield differ("folder and child", bash("ls -la tests"), bash("ls -la tests/data"))
    yield differ("missing file", bash("cat a.py"),
                 bash("cat a.py", "cat: a.py: No such file or directory\n", 1))  # fmt: skip
    yield differ(
        "missing file, editor",
        editor("view", "/testbed/a.py"),
        editor(
            "view",
            "/testbed/a.py",
            "ERROR:\nInvalid `path` parameter: /testbed/a.py. "
            "The path /testbed/a.py does not exist. Please provide a valid path.",
        ),
    )
    yield differ(
        "error flag",
        tool("Read", file_path="/repo/a.py"),
        tool("Read", file_path="/repo/a.py", said="File does not exist.", error=True),
    )
    yield differ("glob or file", bash("cat *.py"), bash("cat a.py"))
    yield differ("variables", bash("cat $A"), bash("cat $B"))
    yield differ("diff or listing", bash("git diff"), bash("ls"))
    yield differ("diff or add", bash("git diff"), bash("git add -A"))
    yield differ("view or copy", bash("cat a.py"), bash("cat a.py > b.py"))


def search_pairs() -> Iterator[Pair]:
    yield differ("search or read", bash("grep -n run a.py"), bash("cat a.py"))
    yield differ("piped search or read", bash("cat a.py | grep run"), bash("cat a.py | head -50"))
    yield differ("other file", bash("grep -n run a.py"), bash("grep -n run b.py"))
    yield differ("other folder", bash("grep -rn run src"), bash("grep -rn run tests"))
    yield differ("file or folder", bash("grep -rn run src"), bash("grep -n run src/core.py"))
    yield differ("folder or everything", bash("grep -rn run src"), bash("grep -rn run ."))
    yield differ("find elsewhere", bash("find src -name '*.py'"), bash("find lib -name '*.py'"))
    yield differ("after cd", bash("cd src && grep -rn run ."), bash("grep -rn run ."))
    yield differ("pattern looks like a file", bash("grep -n b.py a.py"), bash("grep -n a.py b.py"))
    yield differ("Grep elsewhere", tool("Grep", pattern="x", path="/repo/src"),
                 tool("Grep", pattern="x", path="/repo/lib"))  # fmt: skip
    yield differ("search_dir elsewhere", tool("search_dir", query="x", path="src"),
                 tool("search_dir", query="x", path="lib"))  # fmt: skip
    yield differ(
        "nothing found or broken",
        bash("grep -n run a.py", "", 1),
        bash("grep -n run a.py", "grep: a.py: No such file or directory\n", 2),
    )
    yield differ("submit as a word", bash("grep -rn submit_form ."), tool("submit"))
    yield differ("marker as a word", bash("grep -rn COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT ."),
                 bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"))  # fmt: skip
    yield differ("pytest as a word", bash("grep -rn pytest ."), bash("pytest ."))
    yield differ("rm as a word", bash("grep -rn 'rm -rf src' src"), bash("rm -rf src"))
    yield differ("sed -i as a word", bash("grep -n 'sed -i' a.py"), bash("sed -i s/a/b/ a.py"))
    yield differ(
        "list or delete", bash("find . -name '*.pyc'"), bash("find . -name '*.pyc' -delete")
    )
    yield differ("xargs grep or xargs rm", bash("find . -name '*.orig' | xargs grep -l x"),
                 bash("find . -name '*.orig' | xargs rm"))  # fmt: skip
    yield differ("exec grep or exec rm", bash("find src -name '*.py' -exec grep -l x {} \\;"),
                 bash("find src -name '*.py' -exec rm {} \\;"))  # fmt: skip
    yield differ("grep -l, then sed -i", bash("grep -rl old src"),
                 bash("grep -rl old src | xargs sed -i 's/old/new/g'"))  # fmt: skip
    yield differ("xargs rm, other place", bash("find src -name '*.orig' | xargs rm"),
                 bash("find lib -name '*.orig' | xargs rm"))  # fmt: skip
    yield differ("search into a file", bash("grep -rn run src"),
                 bash("grep -rn run src > hits.txt"))  # fmt: skip
    yield differ("search, then edit", bash("grep -n a x.py"),
                 bash("grep -n a x.py && sed -i s/a/b/ x.py"))  # fmt: skip
    yield differ("search or process kill", bash("ps aux | grep server.py"),
                 bash("ps aux | grep server.py | awk '{print $2}' | xargs kill -9"))  # fmt: skip


def replace(
    old: str, new: str, path: str = "/testbed/src/core.py", said: str | None = None
) -> Step:
    return editor("str_replace", path, said, old_str=old, new_str=new)


def edit_pairs() -> Iterator[Pair]:
    base = replace(OLD, NEW)
    yield differ("one blank inside", base, replace(OLD, NEW.replace("total / unit", "total /unit")))
    yield differ("one blank before", base, replace(OLD, f" {NEW}"))
    yield differ("blanks behind a line", base, replace(OLD, f"{NEW} "))
    yield differ("tab for blanks", base, replace(OLD, NEW.replace("        ", "\t")))
    yield differ("one character", base, replace(OLD, NEW.replace("round", "floor")))
    yield differ("a comment added", base, replace(OLD, f"{NEW}  # nearest"))
    yield differ("a comment changed", replace(OLD, f"{NEW}  # up"), replace(OLD, f"{NEW}  # down"))
    yield differ(
        "blank line inside", replace(OLD, f"{NEW}\n{OLD}"), replace(OLD, f"{NEW}\n\n{OLD}")
    )
    yield differ("other old text", base, replace(OLD.replace("int", "float"), NEW))
    yield differ("old and new exchanged", base, replace(NEW, OLD))
    yield differ("text moved from old to new", replace("ab", "c"), replace("a", "bc"))
    yield differ("other file", base, replace(OLD, NEW, "/testbed/src/util.py"))
    yield differ("same name, other folder", base, replace(OLD, NEW, "/testbed/lib/core.py"))
    yield differ("refused or accepted", base, replace(OLD, NEW, said=NO_MATCH))
    yield differ(
        "several matches or one", base,
        replace(OLD, NEW, said="No replacement was performed. Multiple occurrences of old_str "
                f"`{OLD}` in lines [4, 90]. Please ensure it is unique"))  # fmt: skip
    yield differ("refused, then corrected", replace(OLD, NEW, said=NO_MATCH),
                 replace(f"{OLD}\n", f"{NEW}\n"))  # fmt: skip
    lint = (
        "Your proposed edit has introduced new syntax error(s). Please read this error message "
        "carefully and then retry editing the file.\r\n\r\nERRORS:\r\n- E999 IndentationError"
    )
    edit = {"start": 9, "end": 9, "path": "a.py"}
    yield differ("refused by the linter", tool("edit", text="return x", said=lint, **edit),
                 tool("edit", text="return x", said="File updated.", **edit))  # fmt: skip
    yield differ("indentation corrected", tool("edit", text="return x", said=lint, **edit),
                 tool("edit", text="    return x", said="File updated.", **edit))  # fmt: skip
    yield differ("indentation", tool("edit", text="return x", said="File updated.", **edit),
                 tool("edit", text="    return x", said="File updated.", **edit))  # fmt: skip
    yield differ(
        "Edit refused",
        tool("Edit", file_path="/repo/a.py", old_string="a", new_string="b"),
        tool(
            "Edit",
            file_path="/repo/a.py",
            old_string="a",
            new_string="b",
            error=True,
            said="<tool_use_error>String to replace not found in file.</tool_use_error>",
        ),
    )
    yield differ("windowed edits", tool("edit", start=1, end=1, text="a", path="a.py"),
                 tool("edit", start=1, end=1, text="b", path="a.py"))  # fmt: skip
    yield differ(
        "insert other text",
        editor("insert", "/testbed/a.py", insert_line=4, new_str=LINES),
        editor("insert", "/testbed/a.py", insert_line=4, new_str=LINES.replace("0", "1")),
    )
    yield differ(
        "insert elsewhere", editor("insert", "/testbed/a.py", insert_line=4, new_str=LINES),
        editor("insert", "/testbed/b.py", insert_line=4, new_str=LINES))  # fmt: skip
    yield differ(
        "edit of the open file",
        run(tool("open", path="a.py"), tool("edit", start=1, end=1, text="x = 1")),
        run(tool("open", path="b.py"), tool("edit", start=1, end=1, text="x = 1")),
    )
    yield differ("two edits, one changed", together(replace("a", "b"), replace("c", "d")),
                 together(replace("a", "b"), replace("c", "e")))  # fmt: skip
    yield differ(
        "one edit or two", replace("a", "b"), together(replace("a", "b"), replace("c", "d"))
    )
    yield differ("sed, other text", bash("sed -i 's/a/b/' x.py"), bash("sed -i 's/a/c/' x.py"))
    yield differ("sed, one blank", bash("sed -i 's/a/ b/' x.py"), bash("sed -i 's/a/  b/' x.py"))
    yield differ("sed, other line", bash("sed -i '28d' x.py"), bash("sed -i '29d' x.py"))
    yield differ("sed, other range", bash("sed -i '28,34d' x.py"), bash("sed -i '28,35d' x.py"))
    yield differ(
        "sed, global or first", bash("sed -i 's/a/b/' x.py"), bash("sed -i 's/a/b/g' x.py")
    )
    yield differ("sed, other file", bash("sed -i 's/a/b/' x.py"), bash("sed -i 's/a/b/' y.py"))
    yield differ("sed, text appended", bash(r"sed -i '72a\    if x is None:\n        x = 1' x.py"),
                 bash(r"sed -i '72a\    if x is None:\n        x = 2' x.py"))  # fmt: skip
    yield differ("sed prints or writes", bash("sed 's/a/b/' x.py"), bash("sed -i 's/a/b/' x.py"))
    yield differ("sed -n or sed -i", bash("sed -n '5,9p' x.py"), bash("sed -i '5,9d' x.py"))
    yield differ(
        "sed refused",
        bash("sed -i 's/a/b/' x.py"),
        bash("sed -i 's/a/b/' x.py", "sed: can't read x.py: No such file or directory", 2),
    )
    yield differ("two seds, one changed", bash("sed -i 1d x.py\nsed -i 's/a/b/' x.py"),
                 bash("sed -i 1d x.py\nsed -i 's/a/c/' x.py"))  # fmt: skip

    def heredoc(body: str, operator: str = ">", path: str = "check.py") -> Step:
        return bash(f"cat {operator} {path} <<'EOF'\n{body}EOF")

    first = heredoc(BODY)
    yield differ("write or append", first, heredoc(BODY, ">>"))
    yield differ("tee or tee -a", bash(f"tee f <<'EOF'\n{BODY}EOF"),
                 bash(f"tee -a f <<'EOF'\n{BODY}EOF"))  # fmt: skip
    yield differ("create or modify", editor("create", "/testbed/a.py", file_text="x = 1\n"),
                 replace("x = 0", "x = 1", "/testbed/a.py"))  # fmt: skip
    yield differ("create or insert", editor("create", "/testbed/a.py", file_text=LINES),
                 editor("insert", "/testbed/a.py", insert_line=0, new_str=LINES))  # fmt: skip
    yield differ("heredoc, other text", first, heredoc(BODY.replace("'x'", "'y'")))
    yield differ("heredoc, other comment", first, heredoc(BODY.replace("twice", "once")))
    yield differ("heredoc, one blank", first, heredoc(BODY.replace("print(", "print( ")))
    yield differ("heredoc, first line's indentation", heredoc("    a = 1\n    b = 2\n"),
                 heredoc("a = 1\n    b = 2\n"))  # fmt: skip
    yield differ("heredoc, indentation inside", heredoc("if a:\n    b\n    c\n"),
                 heredoc("if a:\n    b\nc\n"))  # fmt: skip
    yield differ("heredoc, one line more", first, heredoc(f"{BODY}check()\n"))
    yield differ("heredoc, other file", first, heredoc(BODY, path="check2.py"))
    yield differ(
        "heredoc, other folder", first, bash(f"cd tests && cat > check.py <<'EOF'\n{BODY}EOF")
    )
    yield differ("appended text", heredoc("a = 1\n", ">>"), heredoc("a = 2\n", ">>"))
    yield differ("Write, other text", tool("Write", file_path="/repo/a", content="x"),
                 tool("Write", file_path="/repo/a", content="y"))  # fmt: skip
    yield differ("empty or not", tool("create", path="a.py"),
                 editor("create", "/testbed/a.py", file_text="x = 1\n"))  # fmt: skip
    yield differ(
        "file exists",
        editor("create", "/testbed/a.py", file_text="x"),
        editor(
            "create",
            "/testbed/a.py",
            "ERROR:\nInvalid `path` parameter: File already exists at: "
            "/testbed/a.py. Cannot overwrite files using command `create`.",
            file_text="x",
        ),
    )
    yield differ(
        "two heredocs, second changed",
        bash("cat <<'A' > a\n1\nA\ncat <<'B' > b\n2\nB\n"),
        bash("cat <<'A' > a\n1\nA\ncat <<'B' > b\n3\nB\n"),
    )
    yield differ("written, or written and run", first, bash(f"cat > check.py <<'EOF'\n{BODY}EOF\n"
                                                            "python check.py"))  # fmt: skip
    yield differ("written and run, or only run", bash("python check.py"),
                 bash(f"cat > check.py <<'EOF'\n{BODY}EOF\npython check.py"))  # fmt: skip
    yield differ("shown or written", bash(f"cat <<'EOF'\n{BODY}EOF"), first)
    yield differ("echo, other text", bash("echo one > a.txt"), bash("echo two > a.txt"))
    yield differ("echo printed or written", bash("echo one"), bash("echo one > a.txt"))
    yield differ("echo, write or append", bash("echo one > a.txt"), bash("echo one >> a.txt"))
    yield differ("touch", bash("touch a.py"), bash("touch b.py"))
    yield differ("touch or remove", bash("touch a.py"), bash("rm a.py"))
    yield differ("mkdir", bash("mkdir -p out"), bash("mkdir -p out/x"))
    yield differ("mkdir or ls", bash("mkdir -p out"), bash("ls out"))
    yield differ("cp, other target", bash("cp a.py b.py"), bash("cp a.py c.py"))
    yield differ("cp and its reverse", bash("cp a.py a.py.bak"), bash("cp a.py.bak a.py"))
    yield differ("mv and its reverse", bash("mv a.py b.py"), bash("mv b.py a.py"))
    yield differ("rm, other file", bash("rm a.py"), bash("rm b.py"))
    yield differ("rm, one or two", bash("rm a.py"), bash("rm a.py b.py"))
    yield differ("rm of a file or its folder", bash("rm src/a.py"), bash("rm -rf src"))
    yield differ("rm or cat", bash("rm a.py"), bash("cat a.py"))
    yield differ(
        "rm refused",
        bash("rm a.py"),
        bash("rm a.py", "rm: cannot remove 'a.py': No such file or directory\n", 1),
    )
    yield differ("restore or delete", bash("git checkout -- a.py"), bash("rm a.py"))
    yield differ("git rm or git restore", bash("git rm a.py"), bash("git restore a.py"))
    yield differ("restore, other file", bash("git checkout -- a.py"), bash("git checkout -- b.py"))
    yield differ("checkout of a branch or a file", bash("git checkout feature/rounding"),
                 bash("git checkout src/core.py"))  # fmt: skip
    yield differ(
        "new branch or a file", bash("git checkout -b core.py"), bash("git checkout core.py")
    )
    yield differ(
        "restore refused",
        bash("git checkout -- a.py"),
        bash(
            "git checkout -- a.py",
            "error: pathspec 'a.py' did not match any file(s) known to git\n",
            1,
        ),
    )
    yield differ("undo or edit", editor("undo_edit", "/testbed/src/core.py"), base)
    yield differ("undo elsewhere", editor("undo_edit", "/testbed/a.py"),
                 editor("undo_edit", "/testbed/b.py"))  # fmt: skip
    yield differ("show or restore", bash("git show HEAD:a.py"), bash("git checkout HEAD -- a.py"))
    yield differ("patches", bash("patch -p1 < one.patch"), bash("patch -p1 < two.patch"))
    yield differ("read or applied", bash("cat one.patch"), bash("git apply one.patch"))
    yield differ(
        "perl in place", bash("perl -pi -e 's/a/b/' x.py"), bash("perl -pi -e 's/a/c/' x.py")
    )


def runner_pairs() -> Iterator[Pair]:
    fail, error = (
        bash("pytest tests/test_core.py", PYTEST_FAIL, 1),
        free("pytest tests/test_core.py", PYTEST_ERROR),
    )
    yield from apart("result of pytest", PYTEST, fail, error, free("pytest tests/test_core.py"),
                     bash("pytest tests/test_core.py", None, None, timed_out=True))  # fmt: skip
    yield differ("result behind a pipe", bash("pytest tests/test_core.py | tail -4", PYTEST_PASS),
                 bash("pytest tests/test_core.py | tail -4", PYTEST_FAIL))  # fmt: skip
    yield differ(
        "exit code of pytest", bash("pytest -q a.py", "", 0), bash("pytest -q a.py", "", 1)
    )
    yield differ("nothing collected", bash("pytest -q a.py", "", 1), bash("pytest -q a.py", "", 5))
    yield differ("exit code not pytest's", bash("pytest -q a.py", "", 0),
                 bash("pytest -q a.py || true", "", 0))  # fmt: skip
    yield differ("exit code of the pipe", bash("pytest -q a.py", "", 0),
                 bash("pytest -q a.py | tail -2", "", 0))  # fmt: skip
    yield differ("other node", bash("pytest t.py::test_a", PYTEST_PASS),
                 bash("pytest t.py::test_b", PYTEST_PASS))  # fmt: skip
    yield differ("other class", bash("pytest t.py::A::test", PYTEST_PASS),
                 bash("pytest t.py::B::test", PYTEST_PASS))  # fmt: skip
    yield differ("other parameter", bash("pytest 't.py::test_a[1]'", PYTEST_PASS),
                 bash("pytest 't.py::test_a[2]'", PYTEST_PASS))  # fmt: skip
    yield differ(
        "node or file", bash("pytest t.py", PYTEST_PASS), bash("pytest t.py::a", PYTEST_PASS)
    )
    yield differ(
        "other file", bash("pytest test_a.py", PYTEST_PASS), bash("pytest test_b.py", PYTEST_PASS)
    )
    yield differ("other folder", bash("pytest a/test_x.py", PYTEST_PASS),
                 bash("pytest b/test_x.py", PYTEST_PASS))  # fmt: skip
    yield differ("other folder by cd", bash("cd a && pytest test_x.py", PYTEST_PASS),
                 bash("cd b && pytest test_x.py", PYTEST_PASS))  # fmt: skip
    yield differ("file or everything", PYTEST, bash("pytest", PYTEST_PASS))
    yield differ(
        "one file or two", PYTEST, bash("pytest tests/test_core.py tests/test_x.py", PYTEST_PASS)
    )
    yield differ(
        "collected or run",
        bash("pytest --collect-only t.py", "t.py::a\n\n1 test collected"),
        bash("pytest t.py", "1 passed in 0.1s"),
    )
    yield differ(
        "collected or run, no output", bash("pytest --collect-only t.py"), bash("pytest t.py")
    )
    yield differ("version or run", bash("pytest --version"), bash("pytest"))
    yield differ("help or run", bash("python -m pytest --help"), bash("python -m pytest"))
    yield differ("echo or run", bash("echo pytest"), bash("pytest"))
    yield differ("echo or run, with target", bash("echo pytest t.py"), bash("pytest t.py"))
    yield differ("read or run", bash("cat test.py"), bash("python test.py"))
    yield differ(
        "read or run with pytest", bash("cat tests/test_core.py"), bash("pytest tests/test_core.py")
    )
    yield differ("installed or run", bash("pip install pytest"), bash("pytest"))
    yield differ("which or run", bash("which pytest"), bash("pytest"))
    yield differ("edited or run", bash("sed -i 's/a/b/' test_x.py"), bash("python test_x.py"))
    yield differ("removed or run", bash("rm test_x.py"), bash("python test_x.py"))
    yield differ("copied or run", bash("cp test_x.py test_y.py"), bash("python test_y.py"))
    yield differ("test or script", bash("python test_core.py"), bash("python core.py"))
    yield differ(
        "test or its module", bash("pytest tests/test_core.py"), bash("python src/core.py")
    )
    yield differ("sympy's bin/test or the builtin", bash("bin/test core.py", SYMPY_OK),
                 bash("test core.py"))  # fmt: skip
    yield differ(
        "./bin/test or [", bash("./bin/test -f core.py", SYMPY_OK), bash("test -f core.py")
    )
    yield differ(
        "builtin or a runner", bash("test -f tests/test_x.py"), bash("pytest tests/test_x.py")
    )
    yield differ(
        "sympy's result", bash("bin/test a.py", SYMPY_OK), bash("bin/test a.py", SYMPY_FAIL, 1)
    )
    yield differ("sympy's target", bash("bin/test a.py", SYMPY_OK), bash("bin/test b.py", SYMPY_OK))
    yield differ("unittest's result", bash("python -m unittest t", UNITTEST_OK),
                 bash("python -m unittest t", UNITTEST_FAIL, 1))  # fmt: skip
    yield differ("unittest's result, no code", free("python -m unittest t", UNITTEST_OK),
                 free("python -m unittest t", UNITTEST_FAIL))  # fmt: skip
    yield differ("unittest's target", bash("python -m unittest a", UNITTEST_OK),
                 bash("python -m unittest b", UNITTEST_OK))  # fmt: skip
    yield differ("django's target", bash("./tests/runtests.py utils_tests", DJANGO_OK),
                 bash("./tests/runtests.py forms_tests", DJANGO_OK))  # fmt: skip
    yield differ("django's result", free("./tests/runtests.py utils_tests", DJANGO_OK),
                 free("./tests/runtests.py utils_tests", UNITTEST_FAIL))  # fmt: skip
    yield differ("cargo's result", free("cargo test", CARGO_OK), free("cargo test", CARGO_FAIL))
    yield differ("cargo test or build", bash("cargo test", CARGO_OK), bash("cargo build"))
    yield differ("go's result", free("go test ./...", GO_OK), free("go test ./...", GO_FAIL))
    yield differ("go test or vet", bash("go test ./...", GO_OK), bash("go vet ./..."))
    yield differ("jest's result", free("npm test", JEST_OK), free("npm test", JEST_FAIL))
    yield differ("npm test or install", bash("npm test", JEST_OK), bash("npm install"))
    yield differ("make or make test", bash("make"), bash("make test"))
    yield differ(
        "script called test", bash("python test_x.py", "", 0), bash("python test_x.py", "", 1)
    )
    yield differ(
        "test, then remove",
        PYTEST,
        bash("pytest tests/test_core.py; rm tests/test_core.py", PYTEST_PASS),
    )
    yield differ(
        "test, or edit and test",
        PYTEST,
        bash("sed -i s/a/b/ a.py && pytest tests/test_core.py", PYTEST_PASS),
    )
    yield differ("unknown first, known second", bash("pytest a.py; pytest b.py", "", 0),
                 bash("pytest a.py && pytest b.py", "", 0))  # fmt: skip


def execute_pairs() -> Iterator[Pair]:
    yield differ("other script", bash("python a.py"), bash("python b.py"))
    yield differ("same name, other folder", bash("python a/run.py"), bash("python b/run.py"))
    yield differ("by cd", bash("cd a && python run.py"), bash("cd b && python run.py"))
    yield differ("exit code", bash("python a.py", "", 0), bash("python a.py", "", 1))
    yield differ("known or unknown", bash("python a.py"), free("python a.py"))
    yield differ(
        "stopped or done", bash("python a.py"), bash("python a.py", None, None, timed_out=True)
    )
    yield differ("stopped or unknown", free("python a.py"), free("python a.py", timed_out=True))
    yield differ("code", bash('python -c "print(1)"'), bash('python -c "print(2)"'))
    yield differ("code, one blank", bash("python -c 'a = \" x\"'"), bash("python -c 'a = \"  x\"'"))
    yield differ("code over lines", bash('python -c "\nimport a\na.b()\n"'),
                 bash('python -c "\nimport a\na.c()\n"'))  # fmt: skip
    yield differ("code on standard input", bash("python - <<'EOF'\nprint(1)\nEOF"),
                 bash("python - <<'EOF'\nprint(2)\nEOF"))  # fmt: skip
    yield differ("code or script", bash('python -c "import a"'), bash("python a.py"))
    yield differ(
        "code's exit code", bash('python -c "import a"'), bash('python -c "import a"', "", 1)
    )
    yield differ("installed package", bash("pip install numpy"), bash("pip install scipy"))
    yield differ(
        "installed version", bash("pip install numpy==1.26"), bash("pip install numpy==2.0")
    )
    yield differ("install or uninstall", bash("pip install numpy"), bash("pip uninstall -y numpy"))
    yield differ("install or list", bash("pip install numpy"), bash("pip list"))
    yield differ("one package or two", bash("pip install a"), bash("pip install a b"))
    yield differ(
        "install fails", bash("pip install a"), bash("pip install a", "ERROR: No match", 1)
    )
    yield differ("apt", bash("apt-get install -y gcc"), bash("apt-get install -y make"))
    yield differ("make targets", bash("make html"), bash("make clean"))
    yield differ("make, exit code", bash("make", "", 0), bash("make", "make: *** [all] Error 1", 2))
    yield differ("compiled", bash("gcc -o a a.c"), bash("gcc -o b b.c"))
    yield differ("compiler fails", bash("gcc -o a a.c"), bash("gcc -o a a.c", "error: x", 1))
    yield differ("compiled, or compiled and run", bash("gcc -o a a.c"), bash("gcc -o a a.c && ./a"))
    yield differ("mode", bash("chmod +x run.sh"), bash("chmod -x run.sh"))
    yield differ("mode, other file", bash("chmod +x a.sh"), bash("chmod +x b.sh"))
    yield differ("binary", bash("./maze_a"), bash("./maze_b"))
    yield differ(
        "address asked", bash("curl -s http://localhost/a"), bash("curl -s http://localhost/b")
    )
    yield differ("host asked", bash("curl -s http://a.org/x"), bash("curl -s http://b.org/x"))
    yield differ(
        "method", bash("curl -X POST http://a.org/x"), bash("curl -X DELETE http://a.org/x")
    )
    yield differ("commit message", bash('git commit -m "Fix a"'), bash('git commit -m "Fix b"'))
    yield differ("commit or diff", bash("git commit -am x"), bash("git diff"))
    yield differ("branches", bash("git checkout main"), bash("git checkout dev"))
    yield differ("stash or pop", bash("git stash"), bash("git stash pop"))
    yield differ("merge or rebase", bash("git merge dev"), bash("git rebase dev"))
    yield differ("unknown tools", tool("browse", url="x"), tool("navigate", url="x"))
    yield differ("unknown tool or bash", tool("pytest_runner", path="t.py"), bash("pytest t.py"))
    yield differ("version or run", bash("python --version"), bash("python a.py"))
    yield differ("help or run", bash("python a.py --help"), bash("python a.py"))
    yield differ("in a loop, other script", free("for i in 1 2; do python a.py; done"),
                 free("for i in 1 2; do python b.py; done"))  # fmt: skip
    yield differ("loop of two", free("for i in 1 2; do python a.py; done"),
                 free("for i in 1 2; do python a.py; python b.py; done"))  # fmt: skip
    yield differ(
        "order in a chain", bash("python a.py && python b.py"), bash("python b.py && python a.py")
    )
    yield differ("chain or part of it", bash("python a.py && python b.py"), bash("python a.py"))
    yield differ("chain's second fails", bash("python a.py; python b.py", "", 0),
                 bash("python a.py; python b.py", "", 1))  # fmt: skip
    yield differ(
        "zero behind ;", bash("python a.py; python b.py"), bash("python a.py && python b.py")
    )
    yield differ("inside bash -lc", bash("bash -lc 'python a.py'"), bash("bash -lc 'python b.py'"))
    yield differ("inside timeout", bash("timeout 9 python a.py"), bash("timeout 9 python b.py"))
    yield differ("not parsed, other text", free("if [ -f a; then (("), free("if [ -f b; then (("))
    yield differ(
        "text after another run", bash("python a.py > out.txt"), bash("python a.py > log.txt")
    )


def other_pairs() -> Iterator[Pair]:
    end = bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A && git diff --cached")
    yield from apart("categories", tool("think", thought="x"), tool("submit"), bash("cd src"),
                     raw("bash", '{"command": "ls'), bash("ls"))  # fmt: skip
    yield differ("end or its diff", end, bash("git add -A && git diff --cached"))
    yield differ("marker or another echo", end, bash("echo TASK_DONE && git add -A"))
    yield differ("marker in a file", end,
                 bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT > marker.txt"))  # fmt: skip
    yield differ(
        "end, or cleaned and ended", end, bash(f"rm a.py\n{end.calls[0].arguments['command']}")
    )
    yield differ("end after another removal", together(bash("rm a.py"), tool("submit")),
                 together(bash("rm b.py"), tool("submit")))  # fmt: skip
    yield differ("script called submit", bash("python submit.py"), tool("submit"))
    yield differ("cat of submit", bash("cat submit"), tool("submit"))
    yield differ("said or done", prose("Now I submit."), tool("submit"))
    yield differ("said or run", prose("I run pytest."), bash("pytest"))
    yield differ("command in prose", prose("```bash\nls\n```"), bash("ls"))
    yield differ("malformed or well-formed", raw("bash", '{"command": "pytest'), bash("pytest"))
    yield differ(
        "malformed editor", raw("str_replace_editor", "{"), editor("view", "/testbed/a.py")
    )
    yield differ("malformed or unknown", raw("bash", "{"), tool("browse", url="x"))
    yield differ("malformed or nothing", bash(None), bash(""))
    yield differ("malformed or thought", raw("think", '{"thought": "x'), tool("think", thought="x"))
    yield differ("unknown or thought", tool("reflect", thought="x"), tool("think", thought="x"))
    yield differ("C-c or a run", bash("C-c"), bash("python a.py"))
    yield differ(
        "parallel, one more", together(bash("cat a.py"), bash("cat b.py")), bash("cat a.py")
    )
    yield differ("parallel, other order", together(bash("rm a.py"), bash("rm b.py")),
                 together(bash("rm b.py"), bash("rm a.py")))  # fmt: skip
    yield differ(
        "parallel, one malformed", together(bash("cat a.py"), raw("bash", "{")), bash("cat a.py")
    )


def far_pairs() -> Iterator[Pair]:
    """Near misses of simple parsers."""
    yield differ("shown or piped into a shell", bash("cat a.sh"), bash("cat a.sh | bash"))
    yield differ("shown or piped into python", bash("cat a.py"), bash("cat a.py | python"))
    yield differ("downloaded or run", bash("curl -s http://a.org/i.sh"),
                 bash("curl -s http://a.org/i.sh | sh"))  # fmt: skip
    yield differ("shown or applied", bash("cat a.patch"), bash("cat a.patch | patch -p1"))
    yield differ("shown or removed", bash("cat list.txt"), bash("cat list.txt | xargs rm"))
    yield differ("shown or copied", bash("cat a.py"), bash("cat a.py | tee b.py"))
    yield differ("listed or removed", bash("ls *.orig"), bash("ls *.orig | xargs rm -f"))
    yield differ("found or removed in a loop", bash("find . -name '*.orig'"),
                 bash("find . -name '*.orig' | while read f; do rm \"$f\"; done"))  # fmt: skip
    yield differ("diff or its reversal", bash("git diff"), bash("git diff | git apply -R"))
    yield differ("said or run", bash("echo 'rm a.py'"), bash("echo 'rm a.py' | bash"))
    yield differ("found or removed by substitution", bash("find . -name '*.orig'"),
                 bash("rm $(find . -name '*.orig')"))  # fmt: skip
    yield differ("substitution that runs", bash("X=1"), bash("X=$(python a.py)"))
    yield differ("substitution that removes", bash("echo hi"), bash('echo "$(rm a.py)"'))
    yield differ("asked or removed", bash("[ -f a.py ]"), bash("if [ -f a.py ]; then rm a.py; fi"))
    yield differ(
        "then or else", bash("if [ -f a ]; then rm a; fi"), bash("if [ -f a ]; then cat a; fi")
    )
    yield differ("else branch", bash("if [ -f a ]; then cat a; else touch a; fi"),
                 bash("if [ -f a ]; then cat a; fi"))  # fmt: skip
    yield differ("emptied or nothing", bash("> a.py"), bash("cd ."))
    yield differ("emptied or read", bash(": > a.py"), bash("cat a.py"))
    yield differ(
        "lines shown or kept", bash("sed -n '5,9p' x.py"), bash("sed -n '5,9p' x.py > y.py")
    )
    yield differ("compared files", bash("diff a.py b.py"), bash("diff a.py c.py"))
    yield differ(
        "compared substitutions", bash("diff <(ls a) <(ls b)"), bash("diff <(ls a) <(ls c)")
    )
    yield differ("text on standard input", bash('echo -e "go\\nquit" | pdp11'),
                 bash('echo -e "examine 0-100\\nquit" | pdp11'))  # fmt: skip
    yield differ("file on standard input", bash("pdp11 < a.txt"), bash("pdp11 < b.txt"))
    yield differ("heredoc on standard input", bash("pdp11 <<'EOF'\ngo\nEOF"),
                 bash("pdp11 <<'EOF'\nrun\nEOF"))  # fmt: skip
    yield differ("written by ed", bash("ed a.py <<'EOF'\n5a\nx\n.\nw\nq\nEOF"),
                 bash("ed a.py <<'EOF'\n5a\ny\n.\nw\nq\nEOF"))  # fmt: skip
    yield differ("patch from a heredoc", bash("patch -p1 <<'EOF'\n-a\n+b\nEOF"),
                 bash("patch -p1 <<'EOF'\n-a\n+c\nEOF"))  # fmt: skip
    yield differ(
        "patch from a pipe", bash("cat a.patch | patch -p1"), bash("cat b.patch | patch -p1")
    )
    yield differ("exit code turned round", bash("python a.py"), bash("! python a.py"))
    yield differ("moved or copied", bash("mv a.py b.py"), bash("cp a.py b.py"))
    yield differ("name ends in test", bash("python latest.py"), bash("pytest latest.py"))
    yield differ(
        "one of them with a name of test", bash("python contest.py"), bash("python test.py")
    )
    yield differ("make latest or test", bash("make latest"), bash("make test"))
    yield differ("pytest.ini or pytest", bash("cat pytest.ini"), bash("pytest"))
    yield differ("tox.ini or tox", bash("cat tox.ini"), bash("tox"))
    yield differ("help of a test script", bash("python test_x.py --help"), bash("python test_x.py"))
    yield differ(
        "help of a runner", bash("./tests/runtests.py --help"), bash("./tests/runtests.py")
    )
    yield differ("collected, short flag", bash("pytest --co -q t.py"), bash("pytest -q t.py"))
    yield differ("two labels or one", bash("./tests/runtests.py a b", DJANGO_OK),
                 bash("./tests/runtests.py a", DJANGO_OK))  # fmt: skip
    yield differ("go packages", bash("go test ./core", GO_OK), bash("go test ./...", GO_OK))
    yield differ(
        "suite that did not run",
        free("npm test", JEST_OK),
        free(
            "npm test",
            JEST_OK.replace("Suites: 1 passed, 1 total", "Suites: 1 failed, 1 passed, 2 total"),
        ),
    )
    yield differ(
        "unittest errors",
        free("python -m unittest t", UNITTEST_OK),
        free("python -m unittest t", "Ran 3 tests in 0.1s\n\nFAILED (errors=1)\n"),
    )
    yield differ("sympy exceptions", free("bin/test a.py", SYMPY_OK), free(
        "bin/test a.py", SYMPY_OK.replace("20 passed,", "19 passed, 1 exceptions,")))  # fmt: skip
    yield differ("passes and errors", free("pytest t.py", "5 passed in 1s"),
                 free("pytest t.py", "5 passed, 1 error in 1s"))  # fmt: skip
    yield differ("last summary counts", free("pytest t.py", "1 failed in 0.1s\n5 passed in 0.9s\n"),
                 free("pytest t.py", "5 passed in 0.9s\n1 failed in 0.1s\n"))  # fmt: skip
    yield differ(
        "printed by a test",
        free("pytest t.py", "5 passed in 0.9s\n"),
        free("pytest t.py", "print('5 passed')\n1 failed, 4 passed in 0.9s\n"),
    )
    yield differ("tee keeps a log", bash("pytest t.py", PYTEST_PASS),
                 bash("pytest t.py | tee log.txt", PYTEST_PASS))  # fmt: skip
    yield differ(
        "number in an edit", replace("p = 1", "port = 8080"), replace("p = 1", "port = 9090")
    )
    yield differ(
        "address in an edit", replace("p", "p = 0x7fff1234"), replace("p", "p = 0x7fff1235")
    )
    yield differ(
        "date in an edit", replace("d", "d = '2024-01-01'"), replace("d", "d = '2024-01-02'")
    )
    yield differ("duration in an edit", replace("t", "wait 0.83s"), replace("t", "wait 0.84s"))
    yield differ(
        "temporary path in an edit", replace("t", "/tmp/tmpab12cd"), replace("t", "/tmp/tmpzz98qq")
    )
    yield differ("number in a sed", bash("sed -i 's/port=80/port=8080/' x"),
                 bash("sed -i 's/port=80/port=9090/' x"))  # fmt: skip
    yield differ(
        "date in a sed", bash("sed -i 's/D/2024-01-01/' x"), bash("sed -i 's/D/2024-01-02/' x")
    )
    yield differ("number in a new file", bash("cat > x <<'E'\nlisten 8080;\nE"),
                 bash("cat > x <<'E'\nlisten 9090;\nE"))  # fmt: skip
    yield differ("date in a new file", bash("echo 2024-01-01 > x"), bash("echo 2024-01-02 > x"))
    yield differ("colour code in an edit", replace("c", "'\x1b[31m'"), replace("c", "'\x1b[32m'"))
    yield differ(
        "numbers in code", bash("python -c 'print(10000)'"), bash("python -c 'print(20000)'")
    )
    yield differ("short hex in code", bash("python -c 'f(0x10)'"), bash("python -c 'f(0x20)'"))
    yield differ("file mode", bash("chmod 644 a"), bash("chmod 755 a"))
    yield differ("killed by name", bash("pkill nginx"), bash("pkill redis"))
    yield differ("named file in /tmp", bash("cat /tmp/a.py"), bash("cat /tmp/b.py"))
    yield differ("named script in /tmp", bash("python /tmp/a.py"), bash("python /tmp/b.py"))
    yield differ("requirements", bash("pip install -r a.txt"), bash("pip install -r b.txt"))
    yield differ("archive", bash("tar xf a.tar"), bash("tar xf b.tar"))
    yield differ("archive listed or unpacked", bash("tar tf a.tar"), bash("tar xf a.tar"))
    yield differ("module", bash("python -m widget.a"), bash("python -m widget.b"))
    yield differ(
        "compiled file", bash("python -m py_compile a.py"), bash("python -m py_compile b.py")
    )
    yield differ("module or file", bash("python -m json.tool a.json"), bash("python a.json"))
    yield differ("log or status", bash("git log"), bash("git status"))
    yield differ("diff of one file", bash("git diff a.py"), bash("git diff b.py"))
    yield differ("shown file", bash("git show HEAD:a.py"), bash("git show HEAD:b.py"))
    yield differ("processes or variables", bash("ps aux"), bash("env"))
    yield differ(
        "branch, or a file of it", bash("git checkout main"), bash("git checkout main -- a.py")
    )
    yield differ("restored: one or all", bash("git checkout a.py"), bash("git checkout ."))
    yield differ(
        "restored: one or two", bash("git checkout -- a.py"), bash("git checkout -- a.py b.py")
    )
    yield differ(
        "patched file",
        tool(
            "apply_patch", input="*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch"
        ),
        tool(
            "apply_patch", input="*** Begin Patch\n*** Update File: b.py\n@@\n-a\n+b\n*** End Patch"
        ),
    )
    yield differ(
        "patched text",
        tool(
            "apply_patch", input="*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch"
        ),
        tool(
            "apply_patch", input="*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+c\n*** End Patch"
        ),
    )
    yield differ(
        "MultiEdit, one changed",
        tool(
            "MultiEdit",
            file_path="/repo/a",
            edits=[{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}],
        ),
        tool(
            "MultiEdit",
            file_path="/repo/a",
            edits=[{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "e"}],
        ),
    )
    yield differ(
        "written by python",
        bash("python - <<'E'\nopen('a', 'w').write('1')\nE"),
        bash("python - <<'E'\nopen('a', 'w').write('2')\nE"),
    )
    yield differ("background", bash("python a.py &"), bash("python b.py &"))
    yield differ("second command on a new line", bash("ls\nrm a.py"), bash("ls\nrm b.py"))
    yield differ(
        "after a heredoc",
        bash("cat > a <<'E'\n1\nE\npython a"),
        bash("cat > a <<'E'\n1\nE\npython b"),
    )
    yield differ(
        "command inside heredoc or after",
        bash("cat > a <<'E'\n1\nrm b\nE"),
        bash("cat > a <<'E'\n1\nE\nrm b"),
    )
    yield differ("after a comment", bash("# rm a.py\nls"), bash("rm a.py\nls"))
    yield differ("behind a hash", bash("cat a.py # b.py"), bash("cat a.py b.py"))
    yield differ("hash inside a word", bash("cat a#b.py"), bash("cat a"))
    yield differ("blank in a name", bash("cat 'a b'"), bash("cat a b"))
    yield differ("undecided by exit", bash("cat a && rm b", "", 0), bash("cat a && rm c", "", 0))
    yield differ("looked-through sudo", bash("sudo rm a.py"), bash("sudo cat a.py"))
    yield differ("bash -c with positional", bash("bash a.sh"), bash("bash -c 'cat a.sh'"))
    yield differ("xargs -I", bash("ls | xargs -I{} cp {} out"), bash("ls | xargs -I{} rm {}"))


def state_pairs() -> Iterator[StatePair]:
    view = bash("cat src/core.py")
    one, two = replace("a = 1", "a = 2"), replace("b = 1", "b = 2")
    passed, failed = PYTEST, bash("pytest tests/test_core.py", PYTEST_FAIL, 1)
    create, delete = editor("create", "/testbed/check.py", file_text=BODY), bash("rm check.py")
    restore = bash("git restore src/core.py")
    rows = [
        ("paper", "something read", [], [view]),
        ("paper", "one edit or two", [one], [one, two]),
        ("paper", "other edit", [one], [two]),
        ("paper", "other bucket", [bash("sed -n 1,9p a.py")], [bash("sed -n 301,309p a.py")]),
        ("paper", "whole or part", [view], [bash("head -20 src/core.py")]),
        ("paper", "result of the test", [passed], [failed]),
        ("paper", "thought or not", [], [prose("x")]),
        ("paper", "edit or search", [view], [bash("grep x src/core.py")]),
        ("paper", "created or removed too", [create], [create, delete]),
        ("paper", "finished or goes on", [view], [view, tool("submit")]),
        ("paper", "one finish or two", [tool("submit")], [tool("submit"), tool("submit")]),
        ("content", "edited or not", [], [one]),
        ("content", "order within a file", [one, two], [two, one]),
        ("content", "undone one of two", [one, two],
         [one, two, editor("undo_edit", "src/core.py")]),
        ("content", "restored", [one], [one, restore]),
        ("content", "tested since", [one], [one, passed]),
        ("content", "result since", [one, passed], [one, failed]),
        ("content", "tested before or after", [passed, one], [one, passed]),
        ("content", "created and kept", [create], [create, delete]),
        ("content", "a file of the repository removed", [], [bash("rm src/core.py")]),
        ("content", "found files removed, edits stay",
         [one, bash("find . -name '*.pyc' | xargs rm -f")],
         [two, bash("find . -name '*.pyc' | xargs rm -f")]),
        ("content", "found files deleted, edits stay",
         [one, bash("find . -name '*.pyc' -delete")], [two, bash("find . -name '*.pyc' -delete")]),
        ("content", "globbed files removed, edits stay",
         [one, bash("rm -rf build/*")], [two, bash("rm -rf build/*")]),
        ("content", "another folder removed", [create, bash("rm -rf out")], [bash("rm -rf out")]),
        ("content", "another folder restored", [one, bash("git restore tests")],
         [two, bash("git restore tests")]),
        ("content", "similar name restored", [one, bash("git restore src/core")],
         [two, bash("git restore src/core")]),
        ("content", "unknown result is none", [one, passed], [one, free("pytest || true")]),
        ("content", "stopped after create", [create], [create, bash("echo x >> check.py")]),
        ("content", "restored one of two", [one, replace("a", "b", "/testbed/b.py")],
         [one, replace("a", "b", "/testbed/b.py"), restore]),
        ("coarse", "edit of another file", [one], [replace("a = 1", "a = 2", "/testbed/b.py")]),
        ("coarse", "read or edited", [view], [one]),
        ("coarse", "created or edited", [create], [replace("a", "b", "/testbed/check.py")]),
        ("work", "edited or not", [view], [view, one]),
        ("work", "results seen", [passed], [failed]),
        ("work", "other file", [create], [bash("touch other.py")]),
        ("full", "order", [view, one], [one, view]),
        ("full", "twice", [view], [view, view]),
        ("full", "pattern", [bash("grep a x.py")], [bash("grep b x.py")]),
    ]  # fmt: skip
    for level, note, a, b in rows:
        yield StatePair(note, level, run_of(*a), run_of(*b))


D = "[0-9a-f]{16}"
"""A digest."""


def exact() -> Iterator[Exact]:
    rows: list[tuple[Step | Run, str]] = [
        (bash("nl -ba a.py | sed -n '951,980p'"), r"view:partial\[9\]@a\.py"),
        (bash("sed -n '1,100p' a.py"), r"view:partial\[0\]@a\.py"),
        (bash("sed -n '1,101p' a.py"), r"view:partial\[0-1\]@a\.py"),
        (bash("sed -n '101,200p' a.py"), r"view:partial\[1\]@a\.py"),
        (bash("sed -n '150,250p' a.py"), r"view:partial\[1-2\]@a\.py"),
        (editor("view", "/testbed/a.py", view_range=[345, 389]), r"view:partial\[3\]@a\.py"),
        (editor("view", "/testbed/a.py", view_range="[345, -1]"), r"view:partial\[3-\]@a\.py"),
        (editor("view", "/testbed/a.py", view_range=[1, -1]), r"view:full@a\.py"),
        (editor("view", "/testbed/a.py", view_range=None), r"view:full@a\.py"),
        (tool("Read", file_path="/repo/a.py", offset=201, limit=100), r"view:partial\[2\]@a\.py"),
        (bash("head -150 a.py"), r"view:partial\[0-1\]@a\.py"),
        (bash("cat f | head -50"), r"view:partial\[0\]@f"),
        (bash("tail -30 a.py"), r"view:partial\[tail\]@a\.py"),
        (bash("tail -n +250 a.py"), r"view:partial\[2-\]@a\.py"),
        (tool("open", path="src/a.py", line=1474), r"view:partial\[14\]@src/a\.py"),
        (tool("open", path="setup.py"), r"view:full@setup\.py"),
        (bash("cd src && cat a.py"), r"view:full@src/a\.py"),
        (bash("cat a.py b.py"), r"view:full@a\.py \+ view:full@b\.py"),
        (bash("cat a.py", "cat: a.py: No such file or directory", 1), r"view:full@a\.py:err"),
        (bash("ls -la src/"), r"view:dir@src"),
        (bash("tree docs"), r"view:dir@docs"),
        (bash("cat '$HOME/x' \"$f\""), r"view:full@\$HOME/x \+ view:full@\$f"),
        (bash("cat src/*.py"), r"view:full@src/\*\.py"),
        (bash("for f in *.py; do cat $f; done"), r"view:full@\$f"),
        (bash("grep x f | head"), "search@f"),
        (bash("grep -n 'a b' src/core.py", "", 1), r"search@src/core\.py"),
        (bash("grep x f", "grep: f: No such file or directory", 2), "search@f:err"),
        (bash("grep -rn submit_form ."), r"search@\."),
        (bash("find src -name '*.py' | xargs grep -l x"), "search@src"),
        (bash("find src -name '*.py' -exec grep -l x {} \\;"), "search@src"),
        (replace("a", "b"), rf"modify:{D}@src/core\.py"),
        (replace("a", "b", said=NO_MATCH), rf"modify:{D}@src/core\.py:err"),
        (tool("Edit", file_path="/repo/a.py", old_string="a", new_string="b"),
         rf"modify:{D}@a\.py"),
        (bash("sed -i 's/a/b/' src/a.py"), rf"modify:{D}@src/a\.py"),
        (bash("perl -pi -e 's/a/b/' a.py"), rf"modify:{D}@a\.py"),
        (bash("cat >> a.py <<'EOF'\nx\nEOF"), rf"modify:{D}@a\.py"),
        (bash("tee -a a.py <<'EOF'\nx\nEOF"), rf"modify:{D}@a\.py"),
        (bash("sed -i s/a/b/ x", "sed: can't read x: No such file", 2), rf"modify:{D}@x:err"),
        (editor("create", "/testbed/a.py", file_text="x = 1\n"), rf"create:{D}@a\.py"),
        (bash("cat <<'EOF' > f.py\nx = 1\nEOF"), rf"create:{D}@f\.py"),
        (bash("cat <<'EOF' > f.py\nx = 1\nEOF\npython f.py"),
         rf"create:{D}@f\.py \+ execute@f\.py:ok"),
        (bash("cat <<'EOF' > f.py\nx = 1\nEOF\npython f.py", "", 1),
         rf"create:{D}@f\.py \+ execute@f\.py:err"),
        (bash("cat <<'A' > a\n1\nA\ncat <<'B' > b\n2\nB"), rf"create:{D}@a \+ create:{D}@b"),
        (bash("touch a.py"), r"create@a\.py"),
        (bash("mkdir -p out/"), "create@out"),
        (tool("create", path="a.py"), r"create@a\.py"),
        (bash("rm -rf a.py b.py"), r"delete@a\.py \+ delete@b\.py"),
        (bash("git rm a.py"), r"delete@a\.py"),
        (bash("git checkout -- a.py"), r"restore@a\.py"),
        (editor("undo_edit", "/testbed/a.py"), r"restore@a\.py"),
        (bash("git checkout django/base.py && \\\n/testbed/tests/runtests.py tz", DJANGO_OK),
         r"restore@django/base\.py \+ test@.*tz:pass"),
        (bash("python -m pytest t.py::a -x -q", "1 failed, 2 passed in 1s", 1),
         r"test@t\.py::a:fail"),
        (bash("cd x && PYTHONPATH=. /usr/bin/python3 -m pytest t.py 2>&1 | tail -20", PYTEST_PASS),
         r"test@x/t\.py:pass"),
        (bash("pytest t.py | tail -20", PYTEST_FAIL), r"test@t\.py:fail"),
        (bash("pytest -q t.py || true"), r"test@t\.py"),
        (bash("pytest t.py", PYTEST_ERROR, 2), r"test@t\.py:error"),
        (bash("pytest t.py", "", 5), r"test@t\.py:error"),
        (bash("pytest t.py", None, None, timed_out=True), r"test@t\.py:timeout"),
        (bash("pytest a.py; rm a.py", "", 0), r"test@a\.py \+ delete@a\.py"),
        (bash("pytest a.py && python b.py", "", 0), r"test@a\.py:pass \+ execute@b\.py:ok"),
        (bash("bin/test a/b.py", SYMPY_OK), r"test@a/b\.py:pass"),
        (bash("python test_fix.py", "", 1), r"test@test_fix\.py:fail"),
        (bash("python3 src/run.py"), r"execute@src/run\.py:ok"),
        (bash("python run.py", "", 1), r"execute@run\.py:err"),
        (free("python run.py"), r"execute@run\.py"),
        (bash("python run.py | head", "", 0), r"execute@run\.py"),
        (bash("python run.py", None, None, timed_out=True), r"execute@run\.py:timeout"),
        (bash("pip install numpy"), rf"execute:{D}(:ok)?"),
        (bash("python -c 'print(1)'"), rf"execute:{D}(:ok)?"),
        (tool("browse", url="x"), r"execute@browse(:ok)?"),
        (free("if [ -f a; then (("), rf"execute:{D}"),
        (bash("python latest.py"), r"execute@latest\.py:ok"),
        (bash("python fastest_path.py"), r"execute@fastest_path\.py:ok"),
        (bash("python run_tests.py"), r"test@run_tests\.py:pass"),
        (bash("bash run.sh"), r"execute@run\.sh:ok"),
        (bash("node app/main.js"), r"execute@app/main\.js:ok"),
        (bash("python -u -W ignore a.py"), r"execute@a\.py:ok"),
        (bash("less +345 a.py"), r"view:partial\[3\]@a\.py"),
        (bash("python a.py || echo failed"), r"execute@a\.py"),
        (bash("if python a.py; then ls; fi"), r"execute@a\.py \+ view:dir@\."),
        (bash("python server.py &"), r"execute@server\.py"),
        (bash("bash -c 'pytest t.py | tail -3'"), r"test@t\.py"),
        (bash("bash -c 'pytest t.py || true'"), r"test@t\.py"),
        (bash("(pytest t.py; true)"), r"test@t\.py"),
        (bash("{ pytest t.py; } | tail"), r"test@t\.py"),
        (bash("pytest t.py && true"), r"test@t\.py:pass"),
        (bash("pytest t.py; ls"), r"test@t\.py \+ view:dir@\."),
        (bash("pytest --version"), "view:.*"),
        (bash("pytest --collect-only t.py"), "view:.*"),
        (bash("python a.py --help"), "view:.*"),
        (bash("git status"), "view:.*"),
        (bash("env"), "view:.*"),
        (bash("pytest t.py", "ERROR: file or directory not found: t.py\n", 4), r"test@t\.py:error"),
        (bash("git checkout -- a.py b.py"), r"restore@a\.py \+ restore@b\.py"),
        (bash("sed -i s/a/b/ x; pytest t.py | tail", PYTEST_FAIL),
         rf"modify:{D}@x \+ test@t\.py:fail"),
        (bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; rm a.py"), "finish"),
        (bash("cat > a <<'E'\n1\nrm b\nE"), rf"create:{D}@a"),
        (bash("# rm a.py\nls"), r"view:dir@\."),
        (bash("grep -n 'a | rm -rf src' f"), "search@f"),
        (tool("think", thought="x"), "think"),
        (prose("I look."), "think"),
        (tool("submit"), "finish"),
        (bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A"), "finish"),
        (bash("rm a.py\necho MINI_SWE_AGENT_FINAL_OUTPUT && git add -A"),
         r"delete@a\.py \+ finish"),
        (bash("cd src"), "noop"),
        (bash("C-c"), "noop"),
        (tool("set_cursors", start=1, end=2), "noop"),
        (raw("bash", '{"command": "l'), "malformed"),
        (bash(None), "malformed"),
        (together(bash("cd src"), bash("cat a.py"), tool("think", thought="x")),
         r"view:full@src/a\.py \+ think"),
    ]  # fmt: skip
    for what, pattern in rows:
        yield Exact(pattern.replace("\\", "").replace(D, "…"), as_run(what), pattern)


DIFFER = [
    pair
    for pairs in (
        view_pairs,
        search_pairs,
        edit_pairs,
        runner_pairs,
        execute_pairs,
        other_pairs,
        far_pairs,
    )
    for pair in pairs()
]
STATES_DIFFER = list(state_pairs())
EXACT = list(exact())
