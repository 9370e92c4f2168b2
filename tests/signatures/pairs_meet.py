r"""Steps that do the same work in different words: their action keys must be equal.

``MEET`` holds the pairs and ``STATES_MEET`` pairs of whole rollouts whose state must be equal; the
helpers at the top build the steps of every table of this folder.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from rtmc.rollouts import Step, ToolCall


class Run(NamedTuple):
    """Steps of one rollout; the last one is compared, those before set it up."""

    steps: tuple[Step, ...]
    root: str | None = None
    persistent: bool = True


class Pair(NamedTuple):
    note: str
    a: Run
    b: Run


class StatePair(NamedTuple):
    note: str
    level: str
    a: Run
    b: Run


def run(*steps: Step, root: str | None = None, persistent: bool = True) -> Run:
    return Run(steps, root, persistent)


def bash(command: Any, output: str | None = "", exit_code: int | None = 0, **more: Any) -> Step:
    return Step((ToolCall("bash", {"command": command}, output, exit_code, **more),))


def free(command: str, output: str | None = "", **more: Any) -> Step:
    """A command whose exit code nobody recorded."""
    return bash(command, output, None, **more)


def tool(tool_name: str, /, *, said: str = "", error: bool | None = None, **arguments: Any) -> Step:
    return Step((ToolCall(tool_name, arguments, said, is_error=error),))


def raw(tool_name: str, arguments: Any, said: str | None = None) -> Step:
    return Step((ToolCall(tool_name, arguments, said),))


def editor(command: str, path: str, said: str | None = None, **arguments: Any) -> Step:
    """OpenHands' and SWE-agent's editor, with what it answers when all is well."""
    if said is None:
        said = {
            "view": f"Here's the result of running `cat -n` on {path}:\n     1\timport os\n",
            "create": f"File created successfully at: {path}",
            "undo_edit": f"Last edit to {path} undone successfully.",
        }.get(command, f"The file {path} has been edited. Here's a snippet:\n     1\timport os\n")
    return tool("str_replace_editor", said=said, command=command, path=path, **arguments)


def prose(text: str) -> Step:
    return Step((), text)


def together(*steps: Step) -> Step:
    """Parallel calls of one turn."""
    return Step(tuple(call for step in steps for call in step.calls))


def as_run(what: Step | Run) -> Run:
    return what if isinstance(what, Run) else Run((what,))


def meet(note: str, first: Step | Run, *others: Step | Run) -> Iterator[Pair]:
    for other in others:
        yield Pair(note, as_run(first), as_run(other))


CORE = "src/core.py"
PYTEST_PASS = (
    "============================= test session starts ==============================\n"
    "platform linux -- Python 3.9.19, pytest-7.4.0, pluggy-1.0.0\n"
    "collected 5 items\n\n"
    "tests/test_core.py .....                                                 [100%]\n\n"
    "============================== 5 passed in 0.12s ===============================\n"
)
PYTEST_FAIL = (
    "============================= test session starts ==============================\n"
    "collected 3 items\n\ntests/test_core.py F..\n\n"
    "=================================== FAILURES ===================================\n"
    "E       assert 1 == 2\n"
    "=========================== short test summary info ============================\n"
    "FAILED tests/test_core.py::test_run - assert 1 == 2\n"
    "========================= 1 failed, 2 passed in 0.34s ==========================\n"
)
PYTEST_ERROR = (
    "==================================== ERRORS ====================================\n"
    "_____________________ ERROR collecting tests/test_core.py ______________________\n"
    "E   ModuleNotFoundError: No module named 'widget'\n"
    "=========================== short test summary info ============================\n"
    "ERROR tests/test_core.py\n"
    "!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!\n"
    "=============================== 1 error in 0.21s ===============================\n"
)
UNITTEST_OK = f"...\n{'-' * 70}\nRan 3 tests in 0.001s\n\nOK\n"
UNITTEST_FAIL = (
    f"F..\n{'=' * 70}\nFAIL: test_run (tests.test_core.CoreTest)\n{'-' * 70}\n"
    "AssertionError: 1 != 2\n\n"
    f"{'-' * 70}\nRan 3 tests in 0.002s\n\nFAILED (failures=1)\n"
)
DJANGO_OK = (
    "Testing against Django installed in '/testbed/django' with up to 8 processes\n"
    "Creating test database for alias 'default'...\n"
    "System check identified no issues (0 silenced).\n"
    f"............\n{'-' * 70}\nRan 12 tests in 0.034s\n\nOK (skipped=1)\n"
    "Destroying test database for alias 'default'...\n"
)
SYMPY_OK = (
    "============================= test process starts ==============================\n"
    "executable:         /opt/env/bin/python  (3.9.19-final-0) [CPython]\n"
    "sympy/core/tests/test_expr.py[20] ....................                      [OK]\n\n"
    "================== tests finished: 20 passed, in 0.45 seconds ==================\n"
)
SYMPY_FAIL = (
    "sympy/core/tests/test_expr.py[20] ...................F                    [FAIL]\n\n"
    "============= tests finished: 19 passed, 1 failed, in 0.51 seconds =============\n"
    "DO *NOT* COMMIT!\n"
)
CARGO_OK = (
    "running 2 tests\ntest a ... ok\ntest b ... ok\n\n"
    "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; finished in 0.00s\n"
)
CARGO_FAIL = (
    "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\n"
    "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; finished in 0.00s\n"
)
GO_OK = "ok  \texample.com/widget/core\t0.013s\n"
GO_FAIL = (
    "--- FAIL: TestRun (0.00s)\n    core_test.go:9: got 1\nFAIL\nFAIL\texample.com/widget\t0.012s\n"
)
JEST_OK = (
    "PASS src/core.test.js\n\nTest Suites: 1 passed, 1 total\n"
    "Tests:       6 passed, 6 total\nSnapshots:   0 total\nTime:        1.2 s\n"
)
JEST_FAIL = (
    "FAIL src/core.test.js\n\nTest Suites: 1 failed, 1 total\n"
    "Tests:       1 failed, 5 passed, 6 total\nSnapshots:   0 total\nTime:        1.3 s\n"
)

BODY = "from widget import core\n\n\ndef check():\n    print(run('x'))\n    # twice\n\n\ncheck()\n"
OLD = "        return int(total / unit)"
NEW = "        return int(round(total / unit))"
LINES = "    if total is None:\n        return 0"

CAT = bash(f"cat {CORE}")
SED = bash("sed -n '345,389p' src/core.py")


def view_pairs() -> Iterator[Pair]:
    yield from meet(
        "a whole file through another tool",
        CAT,
        editor("view", "/testbed/src/core.py"),
        editor("view", "/testbed/src/core.py", view_range=None),
        editor("view", "/testbed/src/core.py", view_range=[1, -1]),
        editor("view", "/testbed/src/core.py", view_range="[1, -1]"),
        tool("file_editor", command="view", path="/testbed/src/core.py"),
        tool("str_replace_based_edit_tool", command="view", path="/repo/src/core.py"),
        tool("Read", file_path="/testbed/src/core.py"),
        tool("open", path="src/core.py"),
        bash("cat -n src/core.py"),
        bash("nl -ba src/core.py"),
        bash("nl src/core.py"),
        bash("less src/core.py"),
        bash("sed -n '1,$p' src/core.py"),
        tool("execute_bash", command="cat src/core.py"),
        tool("Bash", command="cat src/core.py", description="Read the core"),
        tool("terminal", command="cat src/core.py"),
        tool("shell", command=["bash", "-lc", "cat src/core.py"]),
    )
    yield from meet(
        "a whole file, path spelt differently",
        CAT,
        bash("cat ./src//core.py"),
        bash('cat "src/core.py"'),
        bash("cat 'src/core.py'"),
        bash('cat src/"core.py"'),
        bash("cat /testbed/src/core.py"),
        bash("cat /repo/src/core.py"),
        bash("cat /app/src/core.py"),
        bash("cat /workspace/acme__widget__1.2/src/core.py"),
        bash("cat /acme__widget/src/core.py"),
        bash("cat /testbed/./src/core.py"),
        run(bash("cat /home/dev/widget/src/core.py"), root="/home/dev/widget"),
        bash("cd src && cat core.py"),
        bash("cd /testbed/src && cat core.py"),
        bash("cd /workspace/acme__widget__1.2 && cat src/core.py"),
        bash("cd src; cat core.py"),
        bash("cd src\ncat core.py"),
        bash("(cd src && cat core.py)"),
        bash("cd src/plugins && cat ../core.py"),
        bash('cd "src" && cat ./core.py'),
        bash("cat core.py", cwd="/testbed/src"),
        run(bash("cd src"), bash("cat core.py")),
        run(bash("cd /testbed/src"), bash("cat core.py")),
        run(bash("cd src && ls"), bash("cd plugins"), bash("cat ../core.py")),
        run(bash("cd src"), bash("cd .."), bash("cat src/core.py")),
        run(bash("cd src"), bash("cat src/core.py"), persistent=False),
    )
    yield from meet(
        "a whole file, harmless wrapping",
        CAT,
        bash("cat src/core.py | less"),
        bash("cat src/core.py | cat"),
        bash("cat src/core.py 2>/dev/null"),
        bash("cat src/core.py 2>&1"),
        bash("cat src/core.py || true"),
        bash("sudo cat src/core.py"),
        bash("timeout 10 cat src/core.py"),
        bash("bash -lc 'cat src/core.py'"),
        bash('bash -c "cat src/core.py"'),
        bash("bash -lc 'cd src && cat core.py'"),
        bash("# Look at the file first\ncat src/core.py"),
        bash("cat src/core.py  # once more"),
        bash("cat \\\n  src/core.py"),
        bash("\n  cat   src/core.py ;\n"),
        bash("cat src/core.py\r\n"),
        free("cat src/core.py", "import os\r\n"),
        bash("cd src && \\\n  cat core.py"),
        bash("cd src\n&& cat core.py"),
    )
    yield from meet(
        "the same hundred lines",
        SED,
        editor("view", "/testbed/src/core.py", view_range=[345, 389]),
        editor("view", "/testbed/src/core.py", view_range="[345, 389]"),
        editor("view", "/testbed/src/core.py", view_range="[345,389]"),
        editor("view", "/testbed/src/core.py", view_range="345 389"),
        editor("view", "/testbed/src/core.py", view_range=["345", "389"]),
        bash("sed -n 345,389p src/core.py"),
        bash('sed -n "345,389p" src/core.py'),
        bash("sed -n -e '345,389p' src/core.py"),
        bash("nl -ba src/core.py | sed -n '345,389p'"),
        bash("cat src/core.py | sed -n '345,389p'"),
        bash("cat -n src/core.py | sed -n '345,389p' | cat"),
        bash("awk 'NR>=345 && NR<=389' src/core.py"),
        bash("awk 'NR>=345&&NR<=389{print NR\": \"$0}' src/core.py"),
        tool("Read", file_path="/testbed/src/core.py", offset=345, limit=45),
        tool("open", path="src/core.py", line=345),
        run(tool("open", path="src/core.py"), tool("goto", line=345)),
        tool("goto", line=345, path="src/core.py"),
        bash("sed -n '301,400p' src/core.py"),
        bash("cd src && nl -ba core.py | sed -n '350,360p'"),
        bash("sed -n '345p' src/core.py"),
    )
    yield from meet(
        "from a line to the end",
        editor("view", "/testbed/src/core.py", view_range=[345, -1]),
        editor("view", "/testbed/src/core.py", view_range="[345, -1]"),
        bash("sed -n '345,$p' src/core.py"),
        bash("tail -n +345 src/core.py"),
        bash("awk 'NR>=345' src/core.py"),
        bash("nl -ba src/core.py | sed -n '345,$p'"),
    )
    yield from meet(
        "the first lines",
        bash("head -n 50 src/core.py"),
        bash("head -50 src/core.py"),
        bash("head src/core.py"),
        bash("cat src/core.py | head -50"),
        bash("cat src/core.py | head -n 50"),
        bash("nl -ba src/core.py | head -50"),
        bash("sed -n '1,50p' src/core.py"),
        bash("sed -n '1,100p' src/core.py"),
        editor("view", "/testbed/src/core.py", view_range=[1, 50]),
        tool("Read", file_path="/testbed/src/core.py", limit=50),
        bash("head -n 20 src/core.py | tail -n 10"),
    )
    yield from meet(
        "the last lines",
        bash("tail -20 src/core.py"),
        bash("tail -n 20 src/core.py"),
        bash("tail src/core.py"),
    )
    yield from meet(
        "two ranges of one file",
        bash("sed -n '10,20p;150,160p' src/core.py"),
        bash("nl -ba src/core.py | sed -n '10,20p;150,160p'"),
        bash("cat -n src/core.py | sed -n '10,20p; 150,160p'"),
    )
    yield from meet(
        "two files",
        bash("cat src/core.py src/util.py"),
        bash("cat src/core.py; cat src/util.py"),
        bash("cat src/core.py && cat src/util.py"),
        bash("cat src/core.py\ncat src/util.py"),
        together(bash("cat src/core.py"), bash("cat src/util.py")),
        together(
            editor("view", "/testbed/src/core.py"), tool("Read", file_path="/testbed/src/util.py")
        ),
        bash("cd src && cat core.py && cat util.py"),
    )
    listing = (
        "Here's the files and directories up to 2 levels deep in /testbed/src, excluding hidden "
        "items:\n/testbed/src\n/testbed/src/core.py\n"
    )
    yield from meet(
        "a directory",
        bash("ls src"),
        bash("ls -la src"),
        bash("ls -la src/"),
        bash("ls -F ./src"),
        bash("ls -R src | head -20"),
        bash("tree src"),
        bash("cd src && ls -la"),
        editor("view", "/testbed/src", listing),
        editor("view", "/testbed/src/", listing.replace("Here's the", "Here are the")),
        run(bash("cd src"), bash("ls")),
    )
    yield from meet(
        "the repository root",
        bash("ls"),
        bash("ls -la ."),
        bash("ls /testbed"),
        bash("cd /testbed && ls -F"),
        bash("ls -la | head"),
    )
    yield from meet("git diff", bash("git diff"), bash("git diff | cat"), bash("cd . && git diff"))


def search_pairs() -> Iterator[Pair]:
    yield from meet(
        "search in a file, whatever for",
        bash("grep -n 'def run' src/core.py", "12:def run(x):"),
        bash('grep "class Widget" src/core.py'),
        bash("grep -n nothing src/core.py", "", 1),
        bash("grep -A 5 -B 5 run src/core.py | head -40"),
        bash("cat src/core.py | grep run"),
        bash("nl -ba src/core.py | grep -n run"),
        bash("rg -n run src/core.py"),
        bash("cd src && grep -n run core.py"),
        bash("grep -nE 'a|b && c; d > e' src/core.py"),
        tool("search_file", query="run", path="src/core.py"),
        tool("Grep", pattern="run", path="/testbed/src/core.py"),
        bash("grep -c run src/core.py"),
        bash("grep -e run src/core.py"),
        bash("grep -n run src/core.py 2>/dev/null || true"),
        bash("egrep -n 'run|stop' src/core.py"),
    )
    yield from meet(
        "search in a directory",
        bash("grep -rn 'def run' src"),
        bash("grep -rn stop src/"),
        bash("grep -rn --include='*.py' run ./src | head -20"),
        bash("rg run src"),
        bash("find src -name '*.py'"),
        bash("find ./src -type f | grep core"),
        bash("find src -name '*.py' -exec grep -l run {} \\;"),
        bash("find src -type f -name '*.py' | xargs grep -l run"),
        bash("find src -name '*.py' -print0 | xargs -0 grep -n run | head"),
        bash("grep -r run src | sort | uniq -c | wc -l"),
        tool("search_dir", query="run", path="src"),
        tool("find_file", query="core.py", path="src"),
        tool("Grep", pattern="run", path="/testbed/src"),
        tool("Glob", pattern="**/*.py", path="/testbed/src"),
        bash("cd /testbed && grep -rn run src"),
        bash("cd src && grep -rn run ."),
        bash("git grep -n run -- src"),
    )
    yield from meet(
        "search everywhere",
        bash("grep -rn submit_form ."),
        bash("grep -rn submit_form"),
        bash("find . -name '*.cfg'"),
        bash("grep -rn pytest . | head"),
        bash("cd /testbed && grep -rn 'rm -rf' ."),
    )


def edit_pairs() -> Iterator[Pair]:
    replace = editor("str_replace", "/testbed/src/core.py", old_str=OLD, new_str=NEW)
    yield from meet(
        "one replacement through another tool",
        replace,
        editor("str_replace", "/workspace/acme__widget__1.2/src/core.py", old_str=OLD, new_str=NEW),
        editor("str_replace", "src/core.py", old_str=f"\n{OLD}\n", new_str=f"\n{NEW}\n"),
        editor("str_replace", "/repo/src/core.py", old_str=OLD, new_str=f"{NEW}\n\n"),
        tool(
            "file_editor", command="str_replace", path="/app/src/core.py", old_str=OLD, new_str=NEW
        ),
        tool(
            "str_replace_based_edit_tool",
            command="str_replace",
            path="/testbed/src/core.py",
            old_str=OLD,
            new_str=NEW,
        ),
        tool("Edit", file_path="/testbed/src/core.py", old_string=OLD, new_string=NEW),
        tool(
            "Edit",
            file_path="/testbed/src/core.py",
            old_string=OLD,
            new_string=NEW,
            replace_all=False,
        ),
        tool("edit", search=OLD, replace=NEW, path="src/core.py"),
        tool("edit", search=OLD, replace=NEW, path="src/core.py", replace_all=False),
        run(
            tool("open", path="src/core.py", said="[File: src/core.py (9 lines total)]"),
            tool("edit", search=OLD, replace=NEW),
        ),
    )
    two = f"{OLD}\n        # end", f"{NEW}\n        # end"
    yield from meet(
        "line endings and blank lines around an edit",
        editor("str_replace", "/testbed/src/core.py", old_str=two[0], new_str=two[1]),
        editor(
            "str_replace",
            "/testbed/src/core.py",
            old_str=two[0].replace("\n", "\r\n"),
            new_str=two[1].replace("\n", "\r\n"),
        ),
        tool(
            "Edit",
            file_path="src/core.py",
            old_string=f"\n\n{two[0]}",
            new_string=f"\n\n{two[1]}\n",
        ),
    )
    yield from meet(
        "text put into a file",
        editor("insert", "/testbed/src/core.py", insert_line=40, new_str=LINES),
        editor("insert", "/testbed/src/core.py", insert_line="40", new_str=f"{LINES}\n"),
        tool("insert", text=LINES, line=40, path="src/core.py"),
        tool("edit", start=40, end=40, text=LINES, path="src/core.py"),
        tool("edit", start=40, end=42, text=f"{LINES}\n", path="/testbed/src/core.py"),
        run(
            tool("open", path="src/core.py", said="[File: /testbed/src/core.py (99 lines total)]"),
            tool("edit", start=40, end=40, text=LINES),
        ),
        run(
            tool("open", path="src/core.py", line=40, said="[File: src/core.py (99 lines total)]"),
            tool("set_cursors", start=40, end=40),
            tool("edit", text=LINES),
        ),
        bash(f"cat >> src/core.py <<'EOF'\n{LINES}\nEOF"),
        bash(f"cat <<'EOF' >> src/core.py\n{LINES}\nEOF\n"),
        bash(f"tee -a src/core.py <<'EOF'\n{LINES}\nEOF"),
        bash(f"cat << 'EOF' | tee -a src/core.py > /dev/null\n{LINES}\nEOF"),
    )
    yield from meet(
        "one sed in place",
        bash("sed -i 's/import json/import html/' src/core.py"),
        bash('sed -i "s/import json/import html/" src/core.py'),
        bash("sed -i 's/import json/import html/' ./src/core.py"),
        bash("sed -i 's/import json/import html/' /testbed/src/core.py"),
        bash("cd src && sed -i 's/import json/import html/' core.py"),
        bash("# Fix the import\nsed -i 's/import json/import html/' src/core.py"),
        bash("sudo sed -i 's/import json/import html/' src/core.py"),
        bash("sed  -i  's/import json/import html/'  src/core.py"),
        bash("sed -i \\\n  's/import json/import html/' \\\n  src/core.py"),
        free("sed -i 's/import json/import html/' src/core.py || true"),
    )
    heredoc = bash(f"cat > check.py <<'EOF'\n{BODY}EOF")
    yield from meet(
        "one new file",
        heredoc,
        bash(f"cat > check.py << EOF\n{BODY}EOF"),
        bash(f"cat <<EOF > check.py\n{BODY}EOF\n"),
        bash(f"cat <<'EOF' > check.py\n{BODY}EOF"),
        bash(f'cat <<"PYEND" >check.py\n{BODY}PYEND'),
        bash(f"cat << \\EOF > check.py\n{BODY}EOF"),
        bash(f"cat <<-EOF > check.py\n{BODY}EOF"),
        bash("cat > check.py <<-EOF\n" + "".join(f"\t{x}\n" for x in BODY.splitlines()) + "\tEOF"),
        bash(f"tee check.py <<'EOF'\n{BODY}EOF"),
        bash(f"tee check.py > /dev/null <<'EOF'\n{BODY}EOF"),
        bash(f"sudo tee check.py <<'EOF'\n{BODY}EOF"),
        bash(f"cat <<'EOF' | tee check.py\n{BODY}EOF"),
        bash(f"cat <<'EOF' > /testbed/check.py\n{BODY}EOF"),
        bash(f"cd /testbed && cat <<'EOF' > check.py\n{BODY}EOF"),
        bash(f"cd /repo\ncat > ./check.py <<'EOF'\n{BODY}EOF"),
        bash(f"# Reproduce it\ncat <<'EOF' > check.py\n{BODY}EOF"),
        bash(f"cat <<'EOF' > \"check.py\"\n{BODY}\n\nEOF"),
        bash(f"cat <<'EOF' > check.py\n{BODY}"),
        bash(
            f"cat <<'EOF' > check.py\r\n{BODY}EOF\r\n".replace("\r\n", "\n").replace("\n", "\r\n")
        ),
        editor("create", "/testbed/check.py", file_text=BODY),
        editor("create", "/workspace/acme__widget__1.2/check.py", file_text=f"\n{BODY}\n"),
        editor("create", "/testbed/check.py", file_text=BODY.rstrip("\n")),
        editor("create", "/testbed/check.py", file_text=BODY.replace("\n", "\r\n")),
        tool("Write", file_path="/testbed/check.py", content=BODY),
        tool("file_editor", command="create", path="/testbed/check.py", file_text=BODY),
        tool("create", path="check.py", file_text=BODY),
    )
    yield from meet(
        "a short text",
        bash("cat > note.txt <<EOF\nhello world\nEOF"),
        bash("echo 'hello world' > note.txt"),
        bash('echo "hello world" > ./note.txt'),
        bash("echo hello world | tee note.txt"),
    )
    yield from meet(
        "an empty file",
        bash("touch check.py"),
        tool("create", path="check.py", said="[File: check.py (1 lines total)]\r\n1:"),
        bash("touch /testbed/check.py"),
        editor("create", "/testbed/check.py", file_text=""),
    )
    yield from meet(
        "a new directory",
        bash("mkdir out"),
        bash("mkdir -p out"),
        bash("mkdir -p ./out/"),
        bash("cd /testbed && mkdir -p /testbed/out"),
    )
    yield from meet(
        "deletion",
        bash("rm check.py"),
        bash("rm -f check.py"),
        bash("rm -rf ./check.py"),
        bash("git rm check.py"),
        bash("git rm -f check.py"),
        bash("rm /testbed/check.py"),
        bash('cd /testbed && rm "check.py"'),
    )
    yield from meet(
        "deletion of two files",
        bash("rm a.py b.py"),
        bash("rm a.py && rm b.py"),
        bash("rm a.py; rm -f b.py"),
        together(bash("rm a.py"), bash("rm b.py")),
    )
    yield from meet(
        "back to the committed text",
        bash("git checkout -- src/core.py"),
        bash("git checkout src/core.py"),
        bash("git restore src/core.py"),
        bash("git checkout HEAD -- src/core.py"),
        bash("# Revert\ngit checkout /testbed/src/core.py"),
        bash("cd src && git restore core.py"),
        editor("undo_edit", "/testbed/src/core.py"),
    )
    refused = f"No replacement was performed, old_str `{OLD}` did not appear verbatim in /testbed."
    yield from meet(
        "one refused replacement",
        editor("str_replace", "/testbed/src/core.py", refused, old_str=OLD, new_str=NEW),
        editor("str_replace", "src/core.py", f"ERROR:\n{refused}", old_str=OLD, new_str=NEW),
        editor(
            "str_replace",
            "src/core.py",
            "No replacement was performed. Multiple occurrences of old_str in lines [4, 9]. "
            "Please ensure it is unique",
            old_str=OLD,
            new_str=NEW,
        ),
        tool(
            "Edit",
            file_path="/testbed/src/core.py",
            old_string=OLD,
            new_string=NEW,
            said="<tool_use_error>String to replace not found in file.</tool_use_error>",
            error=True,
        ),
    )


def runner_pairs() -> Iterator[Pair]:
    yield from meet(
        "one test run that passes",
        bash("pytest tests/test_core.py", PYTEST_PASS),
        bash("python -m pytest tests/test_core.py", PYTEST_PASS),
        bash("python3 -m pytest -x -q tests/test_core.py", "5 passed in 0.10s\n"),
        bash("/usr/bin/python3 -m pytest tests/test_core.py -v", PYTEST_PASS),
        bash("PYTHONPATH=. /usr/bin/python3 -m pytest tests/test_core.py", PYTEST_PASS),
        bash("cd tests && python -m pytest test_core.py", PYTEST_PASS),
        bash("cd /workspace/acme__widget__1.2 && pytest tests/test_core.py -v", PYTEST_PASS),
        bash("pytest tests/test_core.py 2>&1 | tail -5", PYTEST_PASS),
        bash("pytest tests/test_core.py | head -100", PYTEST_PASS),
        bash("pytest tests/test_core.py || true", PYTEST_PASS),
        bash("timeout 300 pytest tests/test_core.py", PYTEST_PASS),
        bash("timeout -k 5 300 python -m pytest tests/test_core.py", PYTEST_PASS),
        bash("sudo -E pytest tests/test_core.py", PYTEST_PASS),
        bash("env PYTHONPATH=src A=b pytest tests/test_core.py", PYTEST_PASS),
        bash("nohup pytest tests/test_core.py", PYTEST_PASS),
        bash("bash -lc 'cd tests && pytest test_core.py'", PYTEST_PASS),
        bash('pytest "tests/test_core.py" --tb=short', PYTEST_PASS),
        bash("pytest -k 'run or stop' tests/test_core.py", PYTEST_PASS),
        bash("pytest -p no:cacheprovider tests/test_core.py", PYTEST_PASS),
        bash("pytest tests/test_core.py"),
        free("pytest tests/test_core.py", PYTEST_PASS),
        free("pytest tests/test_core.py", PYTEST_PASS.replace("\n", "\r\n")),
        free(
            "pytest tests/test_core.py", "\x1b[32m\x1b[1m5 passed\x1b[0m\x1b[32m in 0.1s\x1b[0m\n"
        ),
        free(
            "pytest --color=yes tests/test_core.py",
            "\x1b[32m======= \x1b[32m\x1b[1m5 passed\x1b[0m, \x1b[33m1 warning\x1b[0m"
            "\x1b[32m in 61.20s (0:01:01)\x1b[0m\x1b[32m =======\x1b[0m\r\n",
        ),
        free(
            "pytest tests/test_core.py",
            "collecting ... -\x08 \x08\\\x08 \x08done\r\n5 passed in 1s",
        ),
        run(bash("cd tests"), bash("pytest test_core.py", PYTEST_PASS)),
        bash("# Run them\npytest tests/test_core.py", PYTEST_PASS),
        tool("execute_bash", command="pytest tests/test_core.py", said=PYTEST_PASS),
    )
    yield from meet(
        "one test run that fails",
        bash("pytest tests/test_core.py", PYTEST_FAIL, 1),
        bash("python -m pytest tests/test_core.py -q", "FAILED x\n1 failed, 2 passed in 0.3s\n", 1),
        bash("pytest tests/test_core.py | tail -20", PYTEST_FAIL, 0),
        bash("pytest tests/test_core.py || true", PYTEST_FAIL, 0),
        bash("pytest tests/test_core.py; echo $?", f"{PYTEST_FAIL}1\n", 0),
        bash("pytest tests/test_core.py", "", 1),
        free("pytest tests/test_core.py 2>&1", PYTEST_FAIL.replace("\n", "\r\n")),
    )
    yield from meet(
        "one test run that breaks",
        bash("pytest tests/test_core.py", PYTEST_ERROR, 2),
        bash("python -m pytest tests/test_core.py | tail -3", PYTEST_ERROR, 0),
        bash("pytest tests/test_core.py", "no tests ran in 0.01s\n", 5),
        bash("pytest tests/test_core.py -q", "", 5),
    )
    yield from meet(
        "one test of a file",
        bash("pytest tests/test_core.py::TestRun::test_a", PYTEST_PASS),
        bash("python -m pytest -x 'tests/test_core.py::TestRun::test_a' -q", PYTEST_PASS),
        bash("cd tests && pytest -vv test_core.py::TestRun::test_a", PYTEST_PASS),
        bash("pytest /testbed/tests/test_core.py::TestRun::test_a", PYTEST_PASS),
    )
    yield from meet(
        "unittest",
        bash("python -m unittest tests.test_core", UNITTEST_OK),
        bash("python3 -m unittest -v tests.test_core", UNITTEST_OK),
        bash("python -m unittest tests.test_core 2>&1 | tail -4", UNITTEST_OK),
        free(
            "PYTHONPATH=src python -m unittest tests.test_core", UNITTEST_OK.replace("\n", "\r\n")
        ),
    )
    yield from meet(
        "unittest that fails",
        bash("python -m unittest tests.test_core", UNITTEST_FAIL, 1),
        bash("python3 -m unittest tests.test_core | cat", UNITTEST_FAIL, 0),
    )
    yield from meet(
        "django's runner",
        bash("./tests/runtests.py utils_tests.test_html", DJANGO_OK),
        bash("python tests/runtests.py utils_tests.test_html", DJANGO_OK),
        bash("python3 ./tests/runtests.py utils_tests.test_html -v 2", DJANGO_OK),
        bash("/testbed/tests/runtests.py utils_tests.test_html 2>&1 | tail -9", DJANGO_OK),
        free("python tests/runtests.py utils_tests.test_html", DJANGO_OK.replace("\n", "\r\n")),
        bash("cd /testbed && ./tests/runtests.py utils_tests.test_html --parallel=1", DJANGO_OK),
    )
    yield from meet(
        "sympy's runner",
        bash("bin/test sympy/core/tests/test_expr.py", SYMPY_OK),
        bash("./bin/test sympy/core/tests/test_expr.py", SYMPY_OK),
        bash("python bin/test sympy/core/tests/test_expr.py", SYMPY_OK),
        bash("bin/test sympy/core/tests/test_expr.py | tail -2", SYMPY_OK),
        bash("/testbed/bin/test /testbed/sympy/core/tests/test_expr.py", SYMPY_OK),
    )
    yield from meet(
        "sympy's runner with a failure",
        bash("bin/test sympy/core/tests/test_expr.py", SYMPY_FAIL, 1),
        bash("bin/test sympy/core/tests/test_expr.py | tail -3", SYMPY_FAIL, 0),
    )
    yield from meet(
        "cargo",
        bash("cargo test", CARGO_OK),
        bash("cargo test 2>&1 | tail -3", CARGO_OK),
        free("cargo test", CARGO_OK.replace("ok.", "\x1b[32mok\x1b[m.")),
    )
    yield from meet(
        "cargo fails", bash("cargo test", CARGO_FAIL, 101), bash("cargo test | tail", CARGO_FAIL)
    )
    yield from meet(
        "go",
        bash("go test ./...", GO_OK),
        bash("go test ./... 2>&1 | tail -2", GO_OK),
        free("go test -v ./...", GO_OK.replace("\n", "\r\n")),
    )
    yield from meet(
        "go fails", bash("go test ./...", GO_FAIL, 1), bash("go test ./... | cat", GO_FAIL)
    )
    yield from meet("jest", bash("npm test", JEST_OK), bash("npm test 2>&1 | tail -20", JEST_OK))
    yield from meet("jest fails", bash("npm test", JEST_FAIL, 1), bash("npm test | cat", JEST_FAIL))
    yield from meet(
        "a script whose name says test",
        bash("python test_fix.py"),
        bash("python3 ./test_fix.py"),
        bash("/usr/bin/python3 /testbed/test_fix.py"),
        bash("cd /testbed && PYTHONPATH=/testbed python3 test_fix.py"),
    )
    yield from meet(
        "two runs, one zero for both",
        bash("pytest tests/test_a.py && pytest tests/test_b.py"),
        bash("python -m pytest tests/test_a.py && python -m pytest -q tests/test_b.py"),
        together(bash("pytest tests/test_a.py"), bash("pytest tests/test_b.py")),
    )


def execute_pairs() -> Iterator[Pair]:
    yield from meet(
        "one script",
        bash("python check.py", "345\n"),
        bash("python3 check.py", "done in 0.83s at 0x7f3a5c0012d0\n"),
        bash("/usr/bin/python3 check.py"),
        bash("python3 ./check.py"),
        bash("python /testbed/check.py"),
        bash("cd /testbed && python check.py"),
        bash("PYTHONPATH=/testbed/src python3 check.py"),
        bash("cd /workspace/acme__widget__1.2 && PYTHONPATH=. python3 check.py"),
        bash("env A=1 B=2 python check.py"),
        bash("timeout 60 python check.py"),
        bash("timeout 5s python3 check.py"),
        bash("sudo python check.py"),
        bash("nohup python check.py"),
        bash("bash -lc 'python check.py'"),
        bash("python check.py 2>&1"),
        bash("# Run it\npython check.py  # now"),
        bash("python \\\n    check.py"),
        bash("A=1 sudo timeout 9 python check.py"),
    )
    yield from meet(
        "one script, its result unknown",
        free("python check.py"),
        bash("python check.py | tail -5"),
        bash("python check.py 2>&1 | head -20", "", 1),
        bash("python check.py || true"),
        bash("python check.py | cat", "", 0),
    )
    yield from meet(
        "one script that breaks",
        bash("python check.py", "Traceback (most recent call last):\nValueError: x\n", 1),
        bash("cd /testbed && python3 check.py 2>&1", "ValueError: y\n", 1),
    )
    yield from meet(
        "a script the harness stopped",
        bash("python check.py", None, None, timed_out=True),
        bash("timeout 600 python3 /testbed/check.py", "…", None, timed_out=True),
    )
    yield from meet(
        "a file written and run",
        bash(f"cat <<'EOF' > check.py\n{BODY}EOF\npython check.py"),
        bash(f"cat > check.py << EOF\n{BODY}EOF\n\n\npython3 check.py\n"),
        bash(f"cat <<'EOF' > check.py && python check.py\n{BODY}EOF"),
        bash(f"cat <<'EOF' > check.py; python3 /testbed/check.py\n{BODY}EOF\n"),
        together(editor("create", "/testbed/check.py", file_text=BODY), bash("python check.py")),
        bash(f"cd /testbed\ncat <<'EOF' > check.py\n{BODY}EOF\n# and run\npython check.py"),
    )
    yield from meet(
        "installation",
        bash("pip install numpy==1.26.4"),
        bash("sudo pip install numpy==1.26.4"),
        bash("timeout 60 pip install numpy==1.26.4"),
        bash("PIP_NO_INPUT=1 pip install numpy==1.26.4"),
        bash("pip  install   'numpy==1.26.4'"),
        bash("pip install numpy==1.26.4 2>&1"),
        bash("pip install \\\n  numpy==1.26.4"),
    )
    yield from meet(
        "code on the command line",
        bash('python -c "import widget; print(widget.version)"'),
        bash("python3 -c 'import widget; print(widget.version)'"),
        bash('cd /testbed && python -c "import widget; print(widget.version)"'),
        bash('timeout 5 python -c "import widget; print(widget.version)"'),
    )
    yield from meet(
        "addresses",
        bash("gdb -batch -ex 'x/4x 0x7ffe3a10' ./prog"),
        bash("gdb -batch -ex 'x/4x 0x7ffe9b44' ./prog"),
    )
    yield from meet(
        "temporary paths",
        bash("tar xzf src.tgz -C /tmp/tmpab12cd9x"),
        bash("tar xzf src.tgz -C /tmp/tmpq8_z77aa"),
    )
    yield from meet("process ids", bash("kill 4711"), bash("kill 4899"))
    yield from meet("process ids, forced", bash("kill -9 4711"), bash("kill -9 31337"))
    yield from meet(
        "ports",
        bash("curl -s http://localhost:8080/health"),
        bash("curl -s http://localhost:49213/health"),
    )
    yield from meet(
        "ports of a numbered host",
        bash("nc -z 127.0.0.1:5000 && make deploy"),
        bash("nc -z 127.0.0.1:5001 && make deploy"),
    )
    yield from meet(
        "dates",
        bash('git commit -m "Snapshot of 2025-08-15 04:45:41"'),
        bash('git commit -m "Snapshot of 2025-09-02 17:00:03"'),
    )
    yield from meet(
        "a loop counts once",
        free("for i in 1 2 3; do python check.py; done"),
        free("for i in 1 2 3 4 5\ndo\n    python3 check.py\ndone"),
        free("for run in $(seq 10); do python check.py; done"),
        free("while true; do python check.py; done"),
        free("python check.py"),
    )
    yield from meet(
        "a loop over files",
        bash('for f in *.py; do cat "$f"; done'),
        bash("for f in *.py\ndo cat $f\ndone"),
    )
    yield from meet("an unknown tool", tool("browse", url="a"), tool("browse", url="b", depth=2))
    yield from meet(
        "steps as before, outcome text aside",
        bash("make -j4", "cc -o x\n[1] 4711\n"),
        bash("make -j4", "cc -o x took 0.3s\n[1] 999\n"),
    )


def other_pairs() -> Iterator[Pair]:
    yield from meet(
        "the end",
        tool("submit"),
        tool("finish", message="All done"),
        tool("finish"),
        bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
        bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A && git diff --cached"),
        bash("echo MINI_SWE_AGENT_FINAL_OUTPUT && git add -A && git diff --cached"),
        bash("echo 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT' && cat patch.txt", None, None),
        bash('echo "MINI_SWE_AGENT_FINAL_OUTPUT"'),
    )
    yield from meet(
        "cleaning up and the end",
        bash("rm -rf out\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A", None, None),
        bash("rm -r out && echo MINI_SWE_AGENT_FINAL_OUTPUT"),
        together(bash("rm -rf out"), tool("submit")),
        together(bash("rm -rf out"), tool("submit"), bash("ls")),
    )
    yield from meet(
        "nothing",
        bash(""),
        bash("cd src"),
        bash("cd /testbed"),
        bash("   \n"),
        bash("C-c"),
        bash("# only a remark"),
        tool("set_cursors", start=4, end=9),
        tool("execute_bash", command="C-c", is_input="true"),
        tool("scroll_down"),
    )
    yield from meet(
        "a thought",
        tool("think", thought="The cause is the rounding."),
        tool("think", thought="Something else."),
        prose("I should look at the rounding first."),
        prose("Done thinking."),
    )
    yield from meet(
        "malformed",
        raw("bash", '{"command": "ls'),
        raw("str_replace_editor", "{"),
        raw("bash", ""),
        bash(None),
        bash(17),
    )


def far_pairs() -> Iterator[Pair]:
    """Shapes that break simple parsers."""
    yield from meet(
        "awkward shells",
        CAT,
        bash("# don't read the rest\ncat src/core.py"),
        bash("cat src/core.py # it's here; rm -rf src"),
        bash('# "unbalanced\ncd src && cat core.py'),
        bash('bash -lc "cat \\"src/core.py\\""'),
        bash("/bin/bash -c 'cat src/core.py'"),
        bash("sh -c 'cat src/core.py'"),
        bash("{ cat src/core.py; }"),
        bash("cat -- src/core.py"),
        bash("cat < src/core.py"),
        bash("cd src || exit 1; cat core.py"),
        bash("cd src && cd .. && cat src/core.py"),
        bash("cd /testbed/src/../src && cat core.py"),
        run(bash("cd nope", "bash: cd: nope: No such file or directory\n", 1), CAT),
        run(bash("bash -c 'cd src'"), CAT),
        run(bash("(cd src && ls)"), CAT),
        run(raw("bash", '{"command": "cd src'), CAT),
        bash("cat src/core.py", "# 12: 'No such file or directory' is raised here\n", 0),
        editor("view", "/testbed/src/core.py", "Here's the result of running `cat -n` on a file:\n"
               "     1\tERROR = 'No replacement was performed, old_str'\n"),
        bash("cat src/core.py &"),
        bash("sudo -u root cat src/core.py"),
    )  # fmt: skip
    yield from meet(
        "a name with a blank",
        bash("cat 'my core.py'"),
        bash('cat "my core.py"'),
        bash("cat my\\ core.py"),
        editor("view", "/testbed/my core.py"),
        bash("cat /testbed/'my core.py'"),
    )
    yield from meet(
        "lines, by redirection and pipe",
        SED,
        bash("sed -n '345,389p' < src/core.py"),
        bash("cat src/core.py | awk 'NR>=345 && NR<=389'"),
        bash("sed -n '345,389p;390q' src/core.py"),
        bash("bash -lc \"sed -n '345,389p' src/core.py\""),
    )
    yield from meet(
        "search with operators and quotes in the pattern",
        bash("grep -n run src/core.py"),
        bash('grep -n "it\'s" src/core.py'),
        bash("grep -n 'say \"x\"' src/core.py"),
        bash('grep -n \\"x\\" src/core.py'),
        bash("grep -n 'a | rm -rf src' src/core.py"),
        bash("grep -n 'x > y' src/core.py"),
        bash("grep -n 'cat <<EOF' src/core.py"),
        bash("grep -n '$HOME `date` $(rm x)' src/core.py"),
        bash("grep -n 'größe' src/core.py"),
        bash("grep -n -- '--flag' src/core.py"),
        bash("grep -nE '^(def|class) ' src/core.py | grep -v test | sort"),
        bash("grep -n 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT' src/core.py"),
        bash("grep -rn --include '*.py' run src/core.py"),
        bash("grep -A5 -B 5 -m 3 run src/core.py"),
    )
    for name, text in {
        "code that looks like shell": "import os\nos.system('cat > x <<EOF && rm -r src | tail')\n",
        "a delimiter inside a line": "print('EOF')\nEOFX = 1\n EOF\nx = 'a EOF'\n",
        "quotes that do not close": "# don't\ns = \"it's\"\nt = '''a\n\"\n'''\n",
        "leading blanks": "        a = 1\n\tb = 2\n    c = 3\n",
        "not ASCII": "größe = 'naïve – 日本語 🙂'\n    print(größe)\n",
        "dollars and backticks": "x = '$HOME ${y} $(z) `w`'\n\\n = 1\n",
        "a marker": "print('COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT')\nsubmit = 1\n",
        "blank lines inside": "a = 1\n\n\n\nb = 2\n",
        "comments": "#!/bin/sh\n# <<EOF\n#; rm x\n",
        "one word": "x\n",
    }.items():
        yield from meet(
            f"heredoc or tool, {name}",
            editor("create", "/testbed/out/x.py", file_text=text),
            bash(f"cat > out/x.py <<'EOF'\n{text}EOF\n"),
            bash(f"# Prüfung\ncd out\ncat <<'EOF' > x.py\n{text}EOF"),
            bash(f"cd out && tee x.py << 'EOF' > /dev/null\n{text}EOF"),
        )
    yield from meet(
        "escapes in an open heredoc",
        editor("create", "/testbed/x.sh", file_text="echo $1 `date` \\ end\n"),
        bash("cat > x.sh <<'EOF'\necho $1 `date` \\ end\nEOF"),
        bash("cat > x.sh <<EOF\necho \\$1 \\`date\\` \\\\ end\nEOF"),
    )
    yield from meet(
        "heredocs between other commands",
        together(tool("create", path="a/x", file_text="1\n"), tool("Read", file_path="/repo/b")),
        bash("cat > a/x <<'E1'\n1\nE1\ncat b"),
        bash("cat > a/x <<'E1' && cat b\n1\nE1"),
        bash("(cd a && cat > x <<'E1'\n1\nE1\n)\ncat b"),
        bash("cd a\ncat > x <<'E1'\n1\nE1\ncd ..\ncat b"),
    )
    yield from meet(
        "python from a heredoc",
        bash("python3 <<'EOF'\nimport a\na.b()\nEOF"),
        bash("python - <<EOF\nimport a\na.b()\nEOF"),
        bash("cd /testbed && python3 - << 'PY'\nimport a\na.b()\nPY\n"),
        bash("timeout 9 python <<'EOF'\nimport a\na.b()\nEOF"),
    )
    snippet = (
        "The file /testbed/src/core.py has been edited. Here's the result of running `cat -n` on a "
        "snippet of /testbed/src/core.py:\n     4\traise E('No replacement was performed, old_str')"
        "\n     5\t# ERROR: No such file or directory\n"
    )
    edit = {"old_str": OLD, "new_str": NEW}
    yield from meet(
        "an edit near text that reads like a refusal",
        editor("str_replace", "/testbed/src/core.py", **edit),
        editor("str_replace", "/testbed/src/core.py", snippet, **edit),
    )
    yield from meet(
        "text taken out",
        editor("str_replace", "/testbed/a.py", old_str=OLD, new_str=""),
        editor("str_replace", "/testbed/a.py", old_str=OLD),
        editor("str_replace", "/testbed/a.py", old_str=OLD, new_str=None),
        tool("Edit", file_path="/repo/a.py", old_string=OLD, new_string=""),
        tool("edit", search=OLD, replace="", path="a.py"),
    )
    yield from meet(
        "several edits in one call",
        together(
            tool("Edit", file_path="/repo/a.py", old_string="a", new_string="b"),
            tool("Edit", file_path="/repo/a.py", old_string="c", new_string="d"),
        ),
        tool(
            "MultiEdit",
            file_path="/repo/a.py",
            edits=[{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}],
        ),
        together(
            editor("str_replace", "/testbed/a.py", old_str="a", new_str="b"),
            tool("edit", search="c", replace="d", path="a.py"),
        ),
    )
    yield from meet(
        "a patch of one hunk",
        editor("str_replace", "/testbed/a.py", old_str="x = 1", new_str="x = 2"),
        tool(
            "apply_patch",
            input="*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch\n",
        ),
        bash(
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n"
            "*** End Patch\nEOF"
        ),
    )
    yield from meet(
        "a patch that adds a file",
        editor("create", "/testbed/a.py", file_text="x = 1\ny = 2\n"),
        tool(
            "apply_patch",
            input="*** Begin Patch\n*** Add File: a.py\n+x = 1\n+y = 2\n*** End Patch\n",
        ),
    )
    yield from meet(
        "deletion, spelt differently",
        bash("rm a.py"),
        bash("rm -- a.py"),
        bash("rm -v a.py"),
        bash("/bin/rm a.py"),
        bash("rm a.py 2>/dev/null"),
        bash("rm -r -f a.py || true"),
        bash("git rm -q --force a.py"),
        bash("if [ -f a.py ]; then rm a.py; fi"),
        bash("[ -f a.py ] && rm a.py"),
        bash("test -f a.py && rm a.py"),
    )
    yield from meet(
        "everything back",
        bash("git checkout ."),
        bash("git checkout -- ."),
        bash("git restore ."),
        bash("cd src && git restore /testbed"),
    )
    yield from meet(
        "git with options of its own",
        bash("git diff"),
        bash("git --no-pager diff"),
        bash("git -C /testbed diff"),
        bash("GIT_PAGER=cat git diff"),
        bash("git diff 2>&1 | head -100"),
    )
    yield from meet(
        "restored from another folder",
        bash("git checkout -- src/core.py"),
        bash("git -C src checkout -- core.py"),
        bash("git checkout HEAD~1 -- src/core.py"),
        bash("cd src && git checkout -q -- ./core.py"),
    )
    yield from meet(
        "a test's flags and their values",
        bash("pytest tests/test_core.py", PYTEST_PASS),
        bash("pytest -k test_a tests/test_core.py", PYTEST_PASS),
        bash("pytest tests/test_core.py -k 'test_b and not test_c' -m slow", PYTEST_PASS),
        bash("pytest -n 4 tests/test_core.py", PYTEST_PASS),
        bash("pytest --maxfail 1 --durations 5 tests/test_core.py", PYTEST_PASS),
        bash("pytest -W ignore -o addopts= tests/test_core.py", PYTEST_PASS),
        bash("pytest -c setup.cfg tests/test_core.py", PYTEST_PASS),
        bash("pytest --rootdir /testbed tests/test_core.py", PYTEST_PASS),
        bash("pytest --ignore tests/slow tests/test_core.py", PYTEST_PASS),
        bash("pytest --deselect tests/test_core.py::test_z tests/test_core.py", PYTEST_PASS),
        bash("python -W error -m pytest tests/test_core.py", PYTEST_PASS),
        bash("python -B -m pytest tests/test_core.py", PYTEST_PASS),
        bash("python -m pytest tests/test_core.py > /dev/null 2>&1"),
        bash("python3.11 -m pytest tests/test_core.py &> /dev/null"),
        bash("(pytest tests/test_core.py)", PYTEST_PASS),
        bash("time pytest tests/test_core.py", PYTEST_PASS),
        bash("set -e; pytest tests/test_core.py", PYTEST_PASS),
        bash("timeout --signal=KILL 60 pytest tests/test_core.py", PYTEST_PASS),
        bash("bash -c 'pytest tests/test_core.py' 2>&1 | tail -5", PYTEST_PASS),
        bash("py.test tests/test_core.py", PYTEST_PASS),
        free("pytest tests/test_core.py", "1 failed in 0.1s\n...\n5 passed, 2 warnings in 0.9s\n"),
        free("pytest tests/test_core.py", "== 5 passed, 1 skipped, 2 xfailed in 0.12s ==\n"),
        free(
            "pytest tests/test_core.py",
            f"{'=' * 146} 5 passed in 0.\n12s {'=' * 146}\n",  # wrapped at 160 columns
        ),
    )
    missing = "ERROR: file or directory not found: tests/test_core.py\n\nno tests ran in 0.00s\n"
    yield from meet(
        "tests that cannot run",
        bash("pytest tests/test_core.py", PYTEST_ERROR, 2),
        bash("pytest tests/test_core.py", missing, 4),
        bash("pytest tests/test_core.py | tail", missing, 0),
        bash("pytest tests/test_core.py", "ERROR: usage: pytest [options]\n", 4),
        bash("pytest tests/test_core.py", "3 deselected in 0.02s\n", 5),
    )
    yield from meet(
        "tests by make",
        bash("make test", PYTEST_FAIL, 2),
        bash("make test 2>&1 | tail -20", PYTEST_FAIL, 0),
    )
    yield from meet(
        "a unittest file run by itself",
        bash("python test_fix.py", UNITTEST_FAIL, 1),
        bash("python3 test_fix.py 2>&1 | tail -4", UNITTEST_FAIL, 0),
        bash("python -m pytest test_fix.py | tail -4", PYTEST_FAIL, 0),
    )
    yield from meet(
        "cargo, several results",
        bash("cargo test", CARGO_FAIL + CARGO_OK, 101),
        bash("cargo test | tail", CARGO_FAIL + CARGO_OK, 0),
        bash("cargo test | tail", CARGO_OK + CARGO_FAIL, 0),
    )
    yield from meet(
        "go, several packages",
        bash("go test ./...", GO_FAIL + GO_OK, 1),
        bash("go test ./... | tail", GO_FAIL + GO_OK, 0),
        bash("go test ./... | tail", GO_OK + GO_FAIL, 0),
    )
    yield from meet(
        "result unknown behind a filter",
        bash("pytest tests/test_core.py | tail -3"),
        bash("pytest tests/test_core.py | grep -c x", "0\n", 1),
        bash("pytest tests/test_core.py || true"),
        bash("pytest tests/test_core.py; true"),
        free("pytest tests/test_core.py"),
    )
    yield from meet(
        "a script and its interpreter",
        bash("bash run.sh"),
        bash("./run.sh"),
        bash("sh ./run.sh"),
        bash("cd /app && bash /app/run.sh"),
        bash("sudo ./run.sh 2>&1"),
    )
    yield from meet(
        "an interpreter's flags",
        bash("python check.py"),
        bash("python -u check.py"),
        bash("python -W ignore check.py"),
        bash("python -X dev -B check.py"),
        bash("/usr/bin/env python3 check.py"),
        bash("env -u HOME python3.11 check.py"),
        bash("sudo -u nobody -E python check.py"),
        bash("timeout -s 9 60 python check.py"),
        bash("/opt/conda/envs/x/bin/python check.py"),
        bash("python check.py", "FAILED (failures=1)\n1 failed, 2 passed in 0.1s\n", 0),
        bash("python check.py > /dev/null"),
        bash("python check.py < /dev/null"),
    )
    yield from meet(
        "a test's flags in go",
        bash("go test ./core", GO_OK),
        bash("go test -v ./core", GO_OK),
        bash("go test -run TestA -count=1 ./core", GO_OK),
    )
    yield from meet(
        "a script in a temporary folder",
        bash("python /tmp/tmpab12cd9x/run.py"),
        bash("python /tmp/tmpq8_z77aa/run.py"),
    )
    yield from meet(
        "temporary folders in paths",
        bash("cat /tmp/tmpab12cd9x/server.log"),
        bash("cat /tmp/tmpq8_z77aa/server.log"),
    )
    yield from meet(
        "a loop, laid out differently",
        bash("for f in a.py b.py; do rm $f; done"),
        bash('for f in a.py b.py\ndo\n    rm "$f"\ndone'),
        bash("for f in a.py b.py; do\n  # away\n  rm -f $f\ndone"),
    )
    yield from meet(
        "nothing after the end",
        tool("submit"),
        bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; rm a.py"),
        bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\ncat patch.txt\nls"),
        bash("cd /testbed && echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A"),
    )


def run_of(*steps: Step) -> Run:
    """A rollout whose last step is only there to have a state."""
    return run(*steps, bash("ls"))


def state_pairs() -> Iterator[StatePair]:
    view, search = bash("cat src/core.py"), bash("grep -n run src/util.py")
    one = editor("str_replace", "/testbed/src/core.py", old_str="a = 1", new_str="a = 2")
    two = editor("str_replace", "/testbed/src/core.py", old_str="b = 1", new_str="b = 2")
    other = editor("str_replace", "/testbed/src/util.py", old_str="c = 1", new_str="c = 2")
    create = bash(f"cat > check.py <<'EOF'\n{BODY}EOF")
    think, ran = tool("think", thought="x"), bash("python check.py")
    passed = bash("pytest tests/test_core.py", PYTEST_PASS)
    failed = bash("pytest tests/test_core.py", PYTEST_FAIL, 1)
    refused = editor(
        "str_replace",
        "/testbed/src/core.py",
        "No replacement was performed, old_str `z` did not appear verbatim in the file.",
        old_str="z",
        new_str="y",
    )
    lint = tool(
        "edit",
        start=4,
        end=4,
        text="return int(",
        path="src/core.py",
        said="Your proposed edit has introduced new syntax error(s). Please read this error "
        "message carefully and then retry editing the file.\r\n\r\nERRORS:\r\n- E999 SyntaxError",
    )
    undo = editor("undo_edit", "/testbed/src/core.py")
    restore, delete = bash("git checkout -- src/core.py"), bash("rm check.py")
    rows = [
        ("paper", "order of reading", [view, search], [search, view]),
        ("paper", "order of edits of one file", [one, two], [two, one]),
        ("paper", "order of edits of two files", [one, other], [other, one]),
        ("paper", "order of test and reading", [one, passed, view], [view, one, passed]),
        ("paper", "a step or two", [view, search], [bash("cat src/core.py; grep run src/util.py")]),
        ("paper", "parallel or one by one", [view, search], [together(search, view)]),
        ("paper", "another tool", [view, one], [tool("Read", file_path="/repo/src/core.py"), one]),
        ("paper", "thinking twice", [think], [think, prose("And again")]),
        ("paper", "reading twice", [view], [view, view]),
        ("paper", "the same failing test twice", [failed], [failed, failed]),
        ("paper", "noops", [view], [bash("cd ."), view, bash("C-c")]),
        ("paper", "another pattern", [search], [bash("grep -n stop src/util.py")]),
        ("paper", "bucket by bucket", [SED], [bash("nl -ba src/core.py | sed -n '302,304p'")]),
        ("paper", "nothing done yet", [], [bash("cd src")]),
        ("content", "a refused edit", [one], [one, refused]),
        ("content", "an edit the linter refused", [one], [lint, one]),
        ("content", "reading", [one], [view, one, search, think]),
        ("content", "running a script", [one], [one, ran]),
        ("content", "created and removed", [one], [create, one, delete]),
        ("content", "created, run, removed", [], [create, ran, bash("rm -f check.py")]),
        ("content", "undone", [one], [one, two, undo]),
        ("content", "all undone", [], [one, undo]),
        ("content", "restored", [], [one, two, restore]),
        ("content", "restored and done again", [one], [two, restore, one]),
        ("content", "edits of two files", [one, other], [other, one]),
        ("content", "the last test counts", [one, passed], [one, failed, passed]),
        ("content", "the test's target", [one, passed], [one, bash("pytest x.py", PYTEST_PASS)]),
        ("content", "a change makes tests stale", [passed, one], [failed, one]),
        ("content", "replaced by another tool", [one],
         [tool("Edit", file_path="/testbed/src/core.py", old_string="a = 1", new_string="a = 2")]),
        ("content", "heredoc or tool", [create],
         [editor("create", "/testbed/check.py", file_text=BODY)]),
        ("coarse", "one edit or two", [one], [one, two]),
        ("coarse", "other lines", [SED], [bash("sed -n '1,50p' src/core.py")]),
        ("coarse", "other text", [one], [two]),
        ("coarse", "test results", [passed], [failed]),
        ("coarse", "order", [one, view, passed], [passed, view, one]),
        ("work", "reading and searching", [one], [view, search, one]),
        ("work", "only reading", [], [view, search, SED]),
        ("work", "other text", [one], [two]),
        ("paper", "a refused edit", [view], [view, refused]),
        ("paper", "a refused view", [one],
         [bash("cat x", "cat: x: No such file or directory", 1), one]),
        ("paper", "a nonsense undo is no edit", [one], [one, bash("")]),
        ("content", "a folder created and removed", [],
         [bash("mkdir out"), bash("cat > out/a <<'EOF'\n1\nEOF"), bash("rm -rf out")]),
        ("content", "everything restored", [], [one, other, bash("git checkout .")]),
        ("content", "deleted and restored", [], [bash("rm src/core.py"), restore]),
        ("content", "edited, deleted, restored", [], [one, bash("rm src/core.py"), restore]),
        ("content", "created, edited, removed", [],
         [create, bash("sed -i s/a/b/ check.py"), delete]),
        ("content", "a folder restored", [], [one, other, bash("git restore src")]),
        ("content", "removed in the same step as created", [],
         [bash("cat > x.py <<'EOF'\n1\nEOF\npython x.py\nrm x.py")]),
        ("content", "undone twice", [], [one, two, undo, undo]),
        ("content", "several effects of a step", [one, two], [together(one, two)]),
        ("content", "a refused undo", [one],
         [one, editor("undo_edit", "/testbed/src/util.py", "ERROR:\nNo edit history found.")]),
        ("content", "an unknown test result", [one], [one, free("pytest -q || true")]),
        ("root", "anything", [], [one, passed, create, delete]),
        ("full", "the same actions", [view, one], [tool("open", path="src/core.py"), one]),
    ]  # fmt: skip
    for level, note, a, b in rows:
        yield StatePair(note, level, run_of(*a), run_of(*b))


MEET = [
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
STATES_MEET = list(state_pairs())
