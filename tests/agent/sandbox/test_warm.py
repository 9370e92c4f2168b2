"""Sandboxes from a template: as those of bwrap, apart from each other, and pytest as ever."""

import os
import re
import signal
import time

import pytest

from rtmc.agent.sandbox import Limits, WarmSandbox, warm
from rtmc.errors import SandboxError


@pytest.fixture
def two(bwrap_works):
    with WarmSandbox() as one, WarmSandbox() as other:
        yield one, other


@pytest.fixture
def sandbox(two):
    return two[0]


WORKSPACES = {
    "passes": {"test_a.py": "def test_a(): pass\n"},
    "fails": {"test_a.py": "def f(x): return [x]\n\ndef test_a(): assert f(1) == [2], 'why'\n"},
    "prints": {"test_a.py": "import sys\n\ndef test_a():\n    print('ä', file=sys.stderr); 1/0\n"},
    "syntax": {"test_a.py": "def test_a(:\n"},
    "nothing": {"a.py": "x = 1\n"},
    "settings": {
        "pytest.ini": "[pytest]\naddopts = -ra\nmarkers = slow: takes long\n",
        "conftest.py": "import pytest\n\n@pytest.fixture\ndef three(): return 3\n",
        "tests/test_a.py": "import pytest\n\n@pytest.mark.slow\ndef test_a(three): assert 0\n"
        "\n@pytest.mark.skip(reason='no')\ndef test_b(): pass\n",
    },
    "beside": {"m.py": "x = 1\n", "tests/test_a.py": "import m\n\ndef test_a(): assert m.x == 1\n"},
    "named as ours": {"template.py": "x = 1\n", "test_a.py": "from template import x\n"},
    "main": {
        "test_a.py": "import __main__, sys\n\ndef test_a():\n"
        "    assert not hasattr(__main__, 'main')\n    assert sys.flags.isolated == 0\n"
    },
    "exits": {"test_a.py": "import os\n\ndef test_a(): os._exit(3)\n"},
    "late": {
        "test_a.py": "import atexit, threading, time\n\ndef test_a():\n"
        "    atexit.register(print, 'at the end')\n"
        "    threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()\n"
    },
    "children": {
        "test_a.py": "import subprocess, sys, os\n\ndef test_a(capfd):\n"
        "    out = subprocess.run([sys.executable, '-c', 'import pytest; print(1)'],"
        " capture_output=True, text=True)\n    assert out.stdout == '1\\n'\n"
        "    assert os.system('exit 3') >> 8 == 3\n    assert capfd.readouterr().out == ''\n"
    },
    "many": {
        "test_a.py": "import multiprocessing\n\ndef test_a():\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        assert pool.map(abs, [-1]) == [1]\n"
    },
}


def without_times(text: str) -> str:
    return re.sub(r"\d+\.\d+s|0x[0-9a-f]+", "…", text)


def both(two, files, command):
    """Run a command in a warm sandbox, and as a Python of its own runs it."""
    one, other = two
    for sandbox in two:
        sandbox.put({path: text.encode() for path, text in files.items()})
    script = one.run("type -ap pytest | sed -n 2p").output.strip()
    plain = f"/run/rtmc/plain {script}" if command.startswith("pytest") else "/run/rtmc/plain"
    results = [one.run(command), other.run(re.sub(r"^(pytest|python)", plain, command))]
    return [(without_times(result.output), result.exit_code) for result in results]


@pytest.mark.parametrize("command", ["pytest", "python -m pytest -q"])
@pytest.mark.parametrize("name", WORKSPACES)
def test_pytest_says_the_same_as_in_a_python_of_its_own(two, name, command):
    warm, plain = both(two, WORKSPACES[name], f"{command} -o cache_dir=/tmp/cache")
    assert warm == plain


OPTIONS = (
    "--nonsense", "--fixtures -q", "-p no:doctest -q", "-q -x -k a", "-h",
    "--version", "-q --assert=plain", "-q -p no:cacheprovider", "nowhere.py",
)  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("program", ["pytest", "python -m pytest"])
def test_options_too(two, program, options):
    warm, plain = both(two, WORKSPACES["settings"], f"{program} {options}")
    assert warm == plain


def test_what_the_caller_has_set_holds(sandbox):
    sandbox.put(
        {
            "lib/dep.py": b"",
            "test_a.py": b"import os, resource, dep\n\ndef test_a():\n"
            b"    umask = os.umask(0)\n    os.umask(umask)\n"
            b"    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]\n"
            b"    print(os.environ['X'], oct(umask), limit, os.getcwd())\n",
        }
    )
    command = "mkdir d; cd d; umask 027; ulimit -f 7; X=1 PYTHONPATH=../lib pytest -sq ../test_a.py"
    assert "1 0o27 7168 /workspace/d" in sandbox.run(command).output


def test_pipes_and_input(sandbox):
    sandbox.put({"test_a.py": b"def test_a(): print(input())\n"})
    assert "given" in sandbox.run("echo given | pytest -sq | cat").output
    assert sandbox.run("pytest -q >/dev/full; echo $?").output.endswith("1\n")
    assert sandbox.run("pytest --help | head -1").output.startswith("usage")


def test_a_variable_that_a_fork_cannot_heed_starts_a_python(sandbox):
    sandbox.put({"test_a.py": b"import sys\n\ndef test_a(): print('level', sys.flags.optimize)\n"})
    assert "level 0" in sandbox.run("pytest -sq").output
    assert "level 1" in sandbox.run("PYTHONOPTIMIZE=1 pytest -sq").output


def test_a_run_that_kills_itself(sandbox):
    sandbox.put({"test_a.py": b"import os\n\ndef test_a(): os.kill(os.getpid(), 9)\n"})
    assert sandbox.run("pytest -q").exit_code == 137


@pytest.mark.parametrize("end", ["timeout 0.5 pytest -q", "pytest -q & sleep 0.5; kill $!"])
def test_the_end_of_the_caller_is_the_end_of_the_run(sandbox, end):
    sandbox.put({"test_a.py": b"import time\n\ndef test_a(): time.sleep(30)\n"})
    sandbox.run(end)
    time.sleep(0.1)
    processes = sandbox.run("ps -eo pid,comm --no-headers").output.split()
    assert processes[1::2] == [processes[1], "bash", "ps"]  # the first process, the shell, ps


def test_a_run_out_of_time_is_killed_and_the_next_one_works(sandbox):
    sandbox.put({"test_a.py": b"import time\n\ndef test_a(): time.sleep(30)\n"})
    assert sandbox.run("pytest -q", timeout=1).timed_out
    assert sandbox.exec(["pytest", "-q"], timeout=1).timed_out
    sandbox.write("test_a.py", b"def test_a(): pass\n")
    assert "1 passed" in sandbox.run("pytest -q").output


FORGED = """
import array, socket, sys
fork = socket.socket(socket.AF_UNIX)
fork.connect("\\0rtmc-warm")
code = "import os, contextlib\\nfor fd in range(256):\\n  with contextlib.suppress(OSError):\\n"
code += "    os.write(fd, b'\\\\xff' * 99)"
text = repr((["warm", "-c", code], "/workspace", {}, 0, [])).encode()
fork.sendall(len(text).to_bytes(4, "big"))
fds = array.array("i", [2] * int(sys.argv[1]))
fork.sendmsg([text[:1]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)] if fds else [])
fork.sendall(text[1:])
print(fork.recv(9))
"""


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_who_asks_with_other_files_does_not_get_ours(sandbox, count):
    """The first process talks to the host on its own: nobody else may write there."""
    sandbox.put({"forged.py": FORGED.encode()})
    result = sandbox.run(f"python forged.py {count}")
    assert result.exit_code == 0
    assert sandbox.run("echo on").output == "on\n"
    assert sandbox.read("forged.py") == FORGED.encode()


def test_too_many_runs_at_once_are_killed(bwrap_works):
    with WarmSandbox(Limits(processes=10)) as sandbox:
        sandbox.put({"test_a.py": b"import time\n\ndef test_a(): time.sleep(30)\n"})
        result = sandbox.run("for i in $(seq 40); do pytest -q & done; wait", timeout=20)
        assert "10 processes" in result.output or "fork" in result.output
        assert sandbox.run("echo on").output.endswith("on\n")


def test_sandboxes_of_one_template_do_not_meet(two):
    one, other = two
    one.run("sleep 60 & echo secret > /tmp/file; echo secret > /dev/shm/file; mkfifo f")
    one.run("script -qc 'sleep 60' /dev/null & python -m http.server 8123 &")
    listen = "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('\\0mark'); s.listen()"
    one.run(f'python -c "{listen}; time.sleep(60)" & sleep 1')
    assert other.run("ls /tmp /dev/shm").output.split() == ["/dev/shm:", "/tmp:"]
    assert "sleep" not in other.run("ps -e").output
    assert other.run("kill -9 -1; echo on").output.endswith("on\n")
    assert "sleep" in one.run("ps -e").output
    assert other.run("ls /dev/pts").output.split() == ["ptmx"]
    probe = "import socket\nfor f, a in ((1, '\\0mark'), (2, ('127.0.0.1', 8123))):\n" \
            "  print(socket.socket(f).connect_ex(a))\n"  # fmt: skip
    assert other.exec(["python", "-c", probe]).output.split() == ["111", "111"]
    ids = [s.run("readlink /proc/self/ns/{pid,mnt,net,ipc,uts,user,cgroup}").output for s in two]
    assert not set(ids[0].split()) & set(ids[1].split())


def test_a_sandbox_that_cannot_start_says_why(two, monkeypatch):
    monkeypatch.setattr(warm, "_framed", lambda data: b"\0\0\0\4much")
    with pytest.raises(SandboxError, match=r"could not start \(invalid literal for int.*much"):
        WarmSandbox()
    assert two[0].run("echo on").output == "on\n"


@pytest.mark.parametrize("disk", [4096, 99_999, 1 << 34])
def test_disks_of_any_size(bwrap_works, disk):
    with WarmSandbox(Limits(disk=disk)) as sandbox:
        assert sandbox.run("echo on").output == "on\n"


def test_a_template_that_is_gone_is_replaced(bwrap_works):
    with WarmSandbox() as lost:
        template = warm.template_of(())
        signal.pidfd_send_signal(template._end.peek()[2][2][0], signal.SIGKILL)
        template._process.wait()
        with pytest.raises(SandboxError, match="the sandbox has ended"):
            lost.run("true")
    with WarmSandbox() as sandbox:
        assert sandbox.run("echo on").output == "on\n"


def test_a_forked_host_has_a_template_of_its_own(two):
    pid = os.fork()
    if not pid:
        with WarmSandbox() as sandbox:
            os._exit(0 if sandbox.run("echo on").output == "on\n" else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert two[0].run("echo on").output == "on\n"


def test_sets_are_in_the_same_order_everywhere(two):
    command = "python -c 'print(list(set(\"abcdefgh\")))'"
    assert two[0].run(command).output == two[1].run(command).output
