"""What every kind of sandbox does, one like the other."""

import io
import os
import signal
import tarfile
import threading
import time

import pytest

from rtmc.agent.sandbox import Limits, open_sandbox
from rtmc.errors import OptionError, SandboxError, WorkspaceError


def test_the_shell_keeps_directory_variables_functions_and_the_last_code(sandbox):
    sandbox.run("mkdir sub; cd sub; export A=1; b=2; f() { echo f; }; false")
    result = sandbox.run("echo $?; pwd; echo $A $b; f")
    assert result.output == f"1\n{sandbox.workspace}/sub\n1 2\nf\n"
    assert (result.exit_code, result.cwd) == (0, f"{sandbox.workspace}/sub")


def test_stdout_and_stderr_come_in_their_order(sandbox):
    assert sandbox.run("echo 1; echo 2 >&2; echo 3").output == "1\n2\n3\n"
    python = (
        "python3 -c 'import sys\nfor i in 1, 2, 3: print(i, file=[sys.stdout, sys.stderr][i % 2])'"
    )
    assert sandbox.run(python).output == "1\n2\n3\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("true", 0),
        ("(exit 9)", 9),
        ("none", 127),
        ("sh -c 'kill $$'", 143),
        ("echo 'a", 2),
        ("", 0),
    ],
)
def test_exit_codes(sandbox, command, code):
    result = sandbox.run(command)
    assert (result.exit_code, result.died) == (code, False)


def test_a_command_reads_nothing(sandbox):
    """Least of all the next command."""
    assert sandbox.run("cat; read x; echo $?").output == "1\n"
    assert sandbox.run("echo next").output == "next\n"


def test_errors_name_bash_and_the_line(sandbox):
    output = sandbox.run("true\nnosuchprogram").output
    assert output == "bash: line 2: nosuchprogram: command not found\n"


def test_commands_come_whole(sandbox):
    text = "é√'\\\n" * 30_000
    assert sandbox.run(f"cat > long <<'END'\n{text}END").exit_code == 0
    assert sandbox.read("long").decode() == text
    assert sandbox.run("export LC_ALL=C; echo é").output == "é\n"
    assert sandbox.run("echo é").output == "é\n"


def test_a_command_with_a_nul_is_not_run(sandbox):
    result = sandbox.run("touch made\0")
    assert "NUL" in result.output
    assert result.exit_code == 2
    assert sandbox.run("ls").output == ""


def test_a_command_out_of_time_is_killed_and_the_shell_goes_on(sandbox):
    sandbox.run("mkdir sub; cd sub; export KEPT=1; lost=2")
    result = sandbox.run("echo before; sleep 1000; echo after", timeout=0.5)
    assert result.timed_out
    assert result.died
    assert result.exit_code is None
    assert result.output == (
        "before\n[killed after 0.5 s, with everything it had started]\n"
        f"[the shell began anew in {sandbox.workspace}/sub: "
        "exported variables are kept, the others are gone]\n"
    )
    assert sandbox.run("pwd; echo $KEPT$lost").output == f"{sandbox.workspace}/sub\n1\n"


def test_a_command_that_is_not_even_read_in_time_leaves_no_rest(bwrap):
    sandbox = bwrap()
    for _ in range(5):
        sandbox.run(f": {'x' * 2_000_000}\n", timeout=0.001)
        assert sandbox.run("echo on").output == "on\n"


def test_a_loop_of_the_shell_itself_is_ended_too(sandbox):
    assert sandbox.run("while :; do :; done", timeout=0.5).timed_out
    assert sandbox.run("echo on").output == "on\n"


def test_a_shell_that_shields_itself_is_replaced(bwrap):
    sandbox = bwrap()
    sandbox.run("mkdir sub; cd sub")
    result = sandbox.run("trap '' RTMIN+5 TERM INT HUP; while :; do :; done", timeout=0.5)
    assert result.timed_out
    assert "the shell had ended; a new one begins in" in result.output
    assert sandbox.run("pwd").output == f"{sandbox.workspace}/sub\n"


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("exit 7", 7, "began anew"),
        ("set -e; false; echo not reached", 1, "began anew"),
        ("kill -9 $$", 137, "had ended"),
        ("exec true", 0, "had ended"),
        ("trap 'echo bye' EXIT; exit 3", 3, "had ended"),
    ],
)
def test_a_shell_that_ends_is_followed_by_another(sandbox, command, code, said):
    sandbox.run("cd /tmp")
    result = sandbox.run(command)
    assert (result.exit_code, result.died, result.timed_out) == (code, True, False)
    assert said in result.output
    assert "not reached" not in result.output
    assert sandbox.run("pwd; echo $-").output == "/tmp\nhBc\n"


def test_output_sent_away_comes_back_with_the_next_shell(sandbox):
    sandbox.run("exec >/dev/null 2>&1")
    assert sandbox.run("echo lost").output == ""
    sandbox.run("exit")
    assert sandbox.run("echo back").output == "back\n"


def test_a_directory_that_is_gone(sandbox):
    sandbox.run("mkdir gone; cd gone; rmdir ../gone")
    sandbox.run("kill -9 $$")
    assert sandbox.run("pwd").output.strip() == sandbox.workspace


def test_what_runs_in_the_background_goes_on_and_is_heard_later(sandbox):
    assert sandbox.run("(sleep 0.2; echo late) & echo now").output == "now\n"
    assert sandbox.run("wait; echo done").output == "late\ndone\n"


def test_output_is_cut_in_the_middle():
    with open_sandbox("local", Limits(output=20), unsafe=True) as sandbox:
        assert (
            sandbox.run("printf 0123456789; printf abcdefghij").output == "0123456789abcdefghij\n"
        )
        cut = sandbox.run("printf 0123456789; printf -- -----; printf abcdefghij").output
        assert cut == "0123456789\n[… 5 bytes left out …]\nabcdefghij\n"
        # Ten bytes are five times é, or, one byte off, four with halves at both ends.
        cut = sandbox.run("printf x; printf é%.0s {1..30}").output
        assert cut == "xéééé\n[… 41 bytes left out …]\nééééé\n"
        cut = sandbox.run("printf é%.0s {1..30}; printf x").output
        assert cut == "ééééé\n[… 41 bytes left out …]\nééééx\n"


def test_bytes_that_are_no_text(sandbox):
    assert sandbox.run(r"printf '\377\000\033[1m\xe2\x82'").output == "�\0\x1b[1m�\n"
    assert len(sandbox.run("head -c 5000 /dev/urandom").output) > 100


def test_exec_is_outside_the_shell(sandbox):
    sandbox.run("cd /tmp; export A=1")
    result = sandbox.exec(["sh", "-c", 'echo "$1 $A"; pwd; cat; exit 3', "sh", "it's"], b"fed")
    assert result.output == f"it's \n{sandbox.workspace}\nfed\n"
    assert (result.exit_code, result.died) == (3, False)
    assert sandbox.run("pwd").output == "/tmp\n"


def test_exec_feeds_and_reads_at_once(sandbox):
    data = b"x" * 3_000_000
    assert sandbox.exec(["wc", "-c"], data).output.strip() == "3000000"
    assert "left out" in sandbox.exec(["cat"], data).output
    assert sandbox.exec(["true"], data).exit_code == 0


def test_exec_out_of_time_and_without_a_program(sandbox):
    result = sandbox.exec(["sh", "-c", "echo a; sleep 1000 & sleep 1000"], timeout=0.5)
    assert result.timed_out
    assert result.exit_code is None
    assert result.output == "a\n[killed after 0.5 s, with everything it had started]\n"
    missing = sandbox.exec(["/no/such/program"])
    assert missing.exit_code == 127
    assert "No such file" in missing.output


def test_exec_leaves_nothing_and_spares_the_shells_jobs(sandbox):
    sandbox.run("sleep 1000 & echo $! > job")
    sandbox.exec(["sh", "-c", "setsid sleep 1001 & echo $! > left"])
    assert sandbox.run("kill -0 $(cat job) && echo lives").output == "lives\n"
    assert sandbox.run("kill -0 $(cat left) 2>/dev/null || echo gone").output == "gone\n"


def test_files(sandbox):
    sandbox.write("a/b c/é.txt", b"\0\xff")
    assert sandbox.read("a/b c/é.txt") == b"\0\xff"
    assert sandbox.read(f"{sandbox.workspace}/a/b c/é.txt") == b"\0\xff"
    sandbox.write("a/b c/é.txt", b"shorter"[:1])
    assert sandbox.run("cat a/*/*").output == "s\n"
    sandbox.run("echo '#!/bin/sh' > run; chmod 755 run")
    sandbox.write("run", b"#!/bin/sh\necho ran\n")
    assert sandbox.run("./run").output == "ran\n"


@pytest.mark.parametrize(
    ("make", "path", "why"),
    [
        ("", "missing", "No such file or directory"),
        ("mkdir folder", "folder", "it is a folder|Is a directory"),
        ("mkfifo pipe", "pipe", "no plain file|No such device"),
        ("", "../x", "leads out of the workspace"),
        ("", "/etc/passwd", "leads out of the workspace"),
        ("ln -s /etc out", "out/passwd", "leads out of the workspace"),
        ("ln -s loop loop", "loop", "symbolic links|leads out"),
        ("", "a\0b", "cannot hold a NUL"),
    ],
)
def test_files_that_cannot_be_read_or_written(sandbox, make, path, why):
    sandbox.run(make)
    with pytest.raises(WorkspaceError, match=why):
        sandbox.read(path)
    if path != "missing":
        with pytest.raises(WorkspaceError, match=why):
            sandbox.write(path, b"x")
    assert sandbox.run("echo on").output == "on\n"


def test_links_within_the_workspace_are_followed(sandbox):
    sandbox.run("mkdir d; echo x > d/file; ln -s d/file link")
    assert sandbox.read("link") == b"x\n"
    sandbox.write("link", b"y")
    assert sandbox.run("cat d/file; readlink link").output == "yd/file\n"


def test_put_and_take(sandbox, tmp_path):
    sandbox.put({"src/a.py": b"print(1)\n", "tool": b"#!/bin/sh\necho tool\n"})
    assert sandbox.run("python3 src/a.py; ./tool; ln -s src/a.py link").output == "1\ntool\n"
    taken = sandbox.take()
    with tarfile.open(fileobj=io.BytesIO(taken)) as tar:
        assert {"./src/a.py", "./tool", "./link"} <= set(tar.getnames())
    with open_sandbox("local", unsafe=True) as other:
        other.put(taken)
        assert other.state() == sandbox.state()
        assert other.run("./tool; readlink link").output == "tool\nsrc/a.py\n"


def test_a_tar_that_is_none(sandbox):
    with pytest.raises(WorkspaceError, match="cannot put the files"):
        sandbox.put(b"no tar" * 200)
    assert sandbox.run("echo on").output == "on\n"


def test_nothing_after_close(sandbox):
    sandbox.close()
    sandbox.close()
    with pytest.raises(SandboxError, match="the sandbox is closed; open a new one"):
        sandbox.run("true")


def test_it_outlives_the_thread_that_opened_it(bwrap_works):
    opened = []
    thread = threading.Thread(target=lambda: opened.append(open_sandbox()))
    thread.start()
    thread.join()
    with opened[0] as sandbox:
        assert sandbox.run("echo on").output == "on\n"


def test_the_shell_does_not_outlive_the_first_process():
    """Where no kernel namespace ends it: it would go on, and could spin on its closed pipes."""
    with open_sandbox("local", unsafe=True) as sandbox:
        first, shell = map(int, sandbox.run("echo $PPID $$").output.split())
        ends = threading.Timer(0.2, os.kill, (first, signal.SIGKILL))
        ends.start()
        with pytest.raises(SandboxError, match="the sandbox has ended"):
            sandbox.run("sleep 60; echo on")
        until = time.monotonic() + 10
        while os.path.exists(f"/proc/{shell}") and time.monotonic() < until:
            time.sleep(0.01)
        assert not os.path.exists(f"/proc/{shell}")


def test_files_are_put_over_whatever_stands_there(sandbox):
    sandbox.run("mkdir -p full/of/things file; touch full/of/things/x file/y; ln -s /etc link; "
                "echo old > plain; ln -s plain a.txt; touch folder; chmod 600 plain")  # fmt: skip
    sandbox.put({
        "full": b"1\n", "file": b"2\n", "link/new": b"3\n", "a.txt": b"4\n", "folder/x": b"5\n",
        "run.sh": b"#!/bin/sh\necho ran\n", "./b//c": b"6\n",
    })  # fmt: skip
    names = "cat full file link/new a.txt folder/x b/c plain; ./run.sh; [ -L link ] || echo none"
    assert sandbox.run(names).output == "1\n2\n3\n4\n5\n6\nold\nran\nnone\n"


@pytest.mark.parametrize("path", ["/tmp/x", "../x", "a/../../x", "", "."])
def test_files_are_put_in_the_workspace_only(sandbox, path):
    with pytest.raises(WorkspaceError, match=r"cannot put the files: .* leads out of"):
        sandbox.put({path: b"x"})


def test_a_kind_that_is_none():
    with pytest.raises(
        OptionError, match="no sandbox 'chroot'; choose from bwrap, warm, docker, local"
    ):
        open_sandbox("chroot")


@pytest.mark.parametrize("limits", [{"memory": 0}, {"seconds": float("inf")}, {"output": -1}])
def test_limits_that_are_none(limits):
    (name,) = limits
    with pytest.raises(OptionError, match=f"limits: {name} is .*; expected a positive number"):
        Limits(**limits)


def test_notes_say_how_the_limits_hold(sandbox):
    for limit in ("memory", "processes", "disk", "files", "file_size", "cpu_seconds"):
        assert any(limit in note for note in sandbox.notes)
