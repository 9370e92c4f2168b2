"""How bubblewrap is started, and what is said where it cannot be."""

import os
import signal
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from rtmc.agent.sandbox import BwrapSandbox, Limits, open_sandbox
from rtmc.agent.sandbox.bwrap import check_version, command, environment
from rtmc.agent.sandbox.seccomp import MACHINES, seccomp_filter
from rtmc.errors import SandboxError

BINDS = {"/usr": "/usr", "/opt/python": "/opt/python", "/etc/passwd": "/package/passwd"}


def after(words: list[str], option: str) -> list[str]:
    """List what follows an option wherever it stands."""
    return [words[at + 1] for at, word in enumerate(words) if word == option]


def test_an_ordinary_user_needs_one_bwrap():
    words = command("bwrap", Limits(disk=1000), BINDS, False, 7, ["first"])
    assert words.count("bwrap") == 1
    assert {"--unshare-all", "--unshare-user", "--disable-userns", "--new-session", "--clearenv",
            "--as-pid-1"} <= set(words)  # fmt: skip
    assert after(words, "--cap-drop") == ["ALL"]
    assert after(words, "--seccomp") == ["7"]
    assert after(words, "--size") == ["1000"] * 3
    assert after(words, "--tmpfs") == ["/dev/shm", "/tmp", "/workspace"]
    assert after(words, "--ro-bind") == ["/usr", "/opt/python", "/package/passwd"]
    assert "--bind" not in words
    assert "--dev-bind" not in words
    assert "--die-with-parent" not in words  # it would die with the thread that started it
    assert after(words, "--remount-ro") == ["/dev", "/"]


def test_root_becomes_another_before_the_sandbox_begins():
    words = command("bwrap", Limits(), BINDS, True, None, ["first"])
    inner = len(words) - words[::-1].index("bwrap") - 1
    front, rest = words[:inner], words[inner:]
    drop = ["--reuid", "65533", "--regid", "65533", "--clear-groups"]
    assert front[-8:] == ["--", "setpriv", *drop, "--"][-8:]
    assert "--seccomp" not in rest
    # What the first one has put in place is what the second one sees.
    assert after(front, "--ro-bind") == ["/usr", "/opt/python", "/package/passwd"]
    assert after(rest, "--ro-bind") == ["/usr", "/opt/python", "/etc/passwd"]


def test_folders_above_a_path_are_open_to_all_inside():
    """bwrap would give them the mode they have here; /root is closed to others."""
    words = command("bwrap", Limits(), {"/root/a/python": "/root/a/python"}, False, None, [])
    assert words.index("/root") < words.index("/root/a") < words.index("/root/a/python")
    assert after(words, "--dir") == ["/root", "/root/a"]


def test_the_environment_holds_nothing_of_ours(monkeypatch):
    monkeypatch.setenv("RTMC_TEST_SECRET", "x")
    variables = environment({"HOME": "/workspace", "MORE": "1"})
    assert "RTMC_TEST_SECRET" not in variables
    assert (variables["HOME"], variables["MORE"]) == ("/workspace", "1")
    assert variables["PATH"].split(":")[0] == f"{sys.prefix}/bin"


def test_the_python_inside_is_the_one_outside(bwrap):
    printed = bwrap().run("python -c 'import sys, pytest; print(sys.prefix)'").output
    assert printed == f"{sys.prefix}\n"


def test_an_edit_within_the_same_second_is_seen(bwrap):
    """Python takes a compiled file for fresh if size and second agree."""
    sandbox = bwrap()
    for text in ("a + b", "a - b", "a * b"):
        sandbox.write("m.py", f"def f(a, b): return {text}\n".encode())
        printed = sandbox.run("python -c 'import m; print(m.f(3, 2))'").output
        assert printed == f"{eval(text, {'a': 3, 'b': 2})}\n"


def test_files_readable_besides(bwrap, tmp_path):
    (tmp_path / "data").write_text("given")
    tmp_path.chmod(0o755)
    assert bwrap(readable=[str(tmp_path)]).run(f"cat {tmp_path}/data").output == "given\n"


# --- where it cannot be started ------------------------------------------------------------------


def test_bubblewrap_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError) as caught:
        open_sandbox()
    assert str(caught.value) == (
        "bubblewrap is not installed, and the sandbox 'bwrap' needs it: "
        "apt-get install bubblewrap (Fedora: dnf install bubblewrap)"
    )


def scripted(folder: Path, version: str, says: str) -> None:
    """Put a bwrap into a folder that fails as the real one does."""
    path = folder / "bwrap"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && {{ echo "{version}"; exit; }}\n'
        f'echo "{says}" >&2\nexit 1\n'
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize("version", ["bubblewrap 0.6.1", "bubblewrap 0.4.0"])
def test_bubblewrap_is_too_old(monkeypatch, tmp_path, version):
    scripted(tmp_path, version, "")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxError) as caught:
        open_sandbox()
    assert str(caught.value) == (
        f"{version} is too old, and the sandbox 'bwrap' needs 0.8 or newer: "
        "update the system's package bubblewrap"
    )


@pytest.mark.parametrize("version", ["bubblewrap 0.8.0", "bubblewrap 0.11.0", "bubblewrap 1.0"])
def test_versions_that_do(version):
    check_version(version)


@pytest.mark.parametrize(
    "says",
    [
        "bwrap: No permissions to create new namespace, likely because of the kernel",
        "bwrap: Creating new namespace failed: Operation not permitted",
        "bwrap: setting up uid map: Permission denied",
        "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
    ],
)
def test_user_namespaces_are_forbidden(monkeypatch, tmp_path, says):
    scripted(tmp_path, "bubblewrap 0.9.0", says)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxError) as caught:
        open_sandbox()
    message = str(caught.value)
    assert "may not use user namespaces here" in message
    assert says in message
    assert "sysctl kernel.unprivileged_userns_clone=1" in message
    assert "in Docker: --security-opt seccomp=unconfined" in message


def test_anything_else_is_quoted(monkeypatch, tmp_path):
    scripted(tmp_path, "bubblewrap 0.9.0", "bwrap: the moon is full")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxError, match="could not start: bwrap: the moon is full"):
        open_sandbox()


def test_the_first_process_is_killed(bwrap):
    """By whatever: the host learns that the sandbox has ended."""
    sandbox = bwrap()
    _, end = sandbox._end.peek()[2]
    *_, (first,) = end.args
    signal.pidfd_send_signal(first, signal.SIGKILL)
    with pytest.raises(SandboxError, match=r"the sandbox has ended \(.*\); open a new one"):
        sandbox.run("true")
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run("true")


def test_a_forked_child_that_ends_leaves_the_sandbox_to_its_parent(bwrap_works):
    program = (
        "import os, sys\nfrom rtmc.agent.sandbox import open_sandbox\n"
        "with open_sandbox() as sandbox:\n"
        "    if os.fork() == 0: sys.exit()\n"
        "    os.wait(); print(sandbox.run('echo on').output)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.stdout == b"on\n\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_gets_the_same(bwrap_works):
    """With the system's Python, which another user than root can reach."""
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from rtmc.agent.sandbox import open_sandbox, Limits\n"
        "with open_sandbox(limits=Limits(processes=20)) as s:\n"
        "    r = s.run('id -u; for i in $(seq 40); do sleep 9 & done', timeout=1)\n"
        "    print(r.output.splitlines()[0], r.output.count('fork: retry') > 0, r.timed_out)\n"
        "    print(s.run('echo on; ls /root; unshare -Ur true').output)\n"
    )
    import msgspec

    import rtmc

    places = [str(Path(module.__file__).parents[1]) for module in (rtmc, msgspec)]
    user = ["setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups", "env", "-i"]
    python = [*user, "PATH=/usr/bin:/bin", "/usr/bin/python3", "-B", "-c"]
    reach = f"import sys; sys.path[:0] = {places}; import msgspec, rtmc.errors"
    if subprocess.run([*python, reach], capture_output=True, check=False).returncode:
        pytest.skip("another user's Python cannot reach this one's packages")
    done = subprocess.run([*python, program, *places], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    first, on, *refused = done.stdout.splitlines()
    assert (first, on) == ("1000 True True", "on")
    assert any("unshare failed" in line for line in refused)


# --- the filter of system calls ------------------------------------------------------------------


def decide(program: bytes, arch: int, number: int, argument: int = 0) -> int:
    """Run a filter as the kernel does, and give its verdict."""
    data = struct.pack("<IIQ6Q", number, arch, 0, argument, 0, 0, 0, 0, 0)
    lines = list(struct.iter_unpack("<HBBI", program))
    at = accumulator = 0
    while True:
        code, yes, no, k = lines[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, k)
        elif code == 0x15:
            at += yes if accumulator == k else no
        elif code == 0x35:
            at += yes if accumulator >= k else no
        else:
            assert code == 0x06
            return k


ALLOW, NOT_THERE, NO_FAMILY = 0x7FFF0000, 0x50000 | 38, 0x50000 | 97


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter(machine):
    numbers = MACHINES[machine]
    program = seccomp_filter(machine)
    assert program is not None

    def verdict(number: int, argument: int = 0) -> int:
        return decide(program, numbers.audit, number, argument)

    refused = {number for number in range(600) if verdict(number, 1) != ALLOW}
    assert refused == set(numbers.refused)
    assert {verdict(number) for number in numbers.refused} == {NOT_THERE}
    for call in (numbers.socket, numbers.socketpair):
        families = {family for family in range(60) if verdict(call, family) == ALLOW}
        assert families == {1, 2, 10, 16}
        assert verdict(call, 40) == NO_FAMILY  # vsock
    assert verdict(0x40000000 + numbers.socket, 1) == NOT_THERE  # x32
    assert decide(program, 0x40000003, 1) == NOT_THERE  # 32-bit calls


def test_no_filter_for_a_machine_not_known():
    assert seccomp_filter("riscv64") is None


def test_the_class_is_the_factorys():
    assert BwrapSandbox.__init__.__kwdefaults__ == {"env": None, "readable": ()}
