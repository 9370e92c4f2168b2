"""Attempts to use up what a sandbox may use: each ends in an observation, and the loop goes on."""

import time
from pathlib import Path

import pytest

from rtmc.agent.sandbox import Limits, open_sandbox
from rtmc.errors import WorkspaceError

MIB = 1 << 20


def goes_on(sandbox) -> bool:
    return sandbox.run("cd /workspace && echo on && python3 -c 'print(1)'").output == "on\n1\n"


# --- processes -----------------------------------------------------------------------------------


def test_processes(bwrap):
    sandbox = bwrap(processes=40)
    code = """
import os, time
made = 0
for _ in range(200):
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
    except BlockingIOError as error:
        print(made, error)
        break
"""
    result = sandbox.run(f"python3 -c '{code}'")
    made, _, why = result.output.strip().partition(" ")
    assert 30 <= int(made) <= 40
    assert "Resource temporarily unavailable" in why
    assert sandbox.run("sleep 100", timeout=0.3).timed_out  # which ends them
    assert goes_on(sandbox)


def test_processes_of_other_sandboxes_do_not_count(bwrap):
    full, other = bwrap(processes=20), bwrap(processes=20)
    full.run("for i in $(seq 18); do sleep 60 & done")
    assert other.run("for i in $(seq 15); do sleep 60 & done; jobs | wc -l").output == "15\n"


def test_a_fork_bomb(bwrap):
    """Doubling, 300 forks at most: the limit is reached long before."""
    sandbox = bwrap(processes=40)
    bomb = """
import os, time
for _ in range(8):
    try: os.fork()
    except BlockingIOError: pass
time.sleep(60)
"""
    result = sandbox.run(f"python3 -c '{bomb}'", timeout=1)
    assert result.timed_out
    assert goes_on(sandbox)
    assert sandbox.run("ps -e -o comm= | grep -cx python3").output == "0\n"


def test_a_bomb_in_the_background_ends_with_the_next_timeout(bwrap):
    sandbox = bwrap(processes=30)
    sandbox.run("for i in $(seq 100); do sleep 60 & done", timeout=1)
    sandbox.run("sleep 60", timeout=0.3)
    assert goes_on(sandbox)


def test_processes_where_no_kernel_counts_them():
    with open_sandbox("local", Limits(processes=20), unsafe=True) as sandbox:
        result = sandbox.run("for i in $(seq 60); do sleep 60 & done; wait", timeout=30)
        assert "killed, with everything it had started: more than 20 processes ran" in result.output
        assert (result.exit_code, result.timed_out) == (None, False)
        assert sandbox.run("echo on").output == "on\n"


# --- memory --------------------------------------------------------------------------------------


def test_one_process_with_too_much_memory_gets_an_error(bwrap):
    sandbox = bwrap(memory=100 * MIB)
    result = sandbox.run("python3 -c 'bytearray(10**9)'")
    assert result.output.endswith("MemoryError\n")
    assert result.exit_code == 1
    assert goes_on(sandbox)


@pytest.mark.parametrize(
    "command",
    [
        "for i in 1 2 3 4; do python3 -c 'import time; x = bytearray(60 << 20); time.sleep(60)' & "
        "done; wait",
        "python3 -c 'import mmap, time\nm = mmap.mmap(-1, 400 << 20)\n"
        "for i in range(0, len(m), 4096): m[i] = 1\ntime.sleep(60)'",
    ],
    ids=["many processes", "shared"],
)
def test_too_much_memory_together(bwrap, command):
    sandbox = bwrap(memory=150 * MIB)
    result = sandbox.run(command, timeout=50)
    assert (
        "[killed, with everything it had started: the processes used more than 150 MiB of memory]"
    ) in result.output
    assert (result.exit_code, result.timed_out) == (None, False)
    assert goes_on(sandbox)


def test_shared_pages_count_once(bwrap):
    sandbox = bwrap(memory=150 * MIB)
    code = """
import os, time
x = bytearray(60 << 20)
for _ in range(4):
    if os.fork() == 0:
        time.sleep(0.5)
        os._exit(0)
for _ in range(4): os.wait()
print("done")
"""
    assert sandbox.run(f"python3 -c '{code}'").output == "done\n"


def test_too_much_memory_in_the_background(bwrap):
    sandbox = bwrap(memory=80 * MIB)
    hog = "python3 -c 'import time; x = bytearray(60 << 20); time.sleep(60)'"
    sandbox.run(f"{hog} & {hog} &")
    until, output = time.monotonic() + 30, ""
    while "background" not in output and time.monotonic() < until:
        time.sleep(0.1)
        output = sandbox.run("true").output
    assert "used more than 80 MiB of memory" in output
    assert goes_on(sandbox)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["/workspace", "/tmp", "/dev/shm"])
def test_disk(bwrap, place):
    sandbox = bwrap(disk=8 * MIB)
    result = sandbox.run(f"head -c 20M /dev/zero > {place}/big")
    assert "No space left on device" in result.output
    assert int(sandbox.run(f"stat -c %s {place}/big").output) <= 8 * MIB
    if place == "/workspace":
        with pytest.raises(WorkspaceError, match="cannot write x: No space left on device"):
            sandbox.write("x", b"x" * 10_000)
        sandbox.state()
    assert goes_on(sandbox)


def test_size_of_a_file(bwrap):
    sandbox = bwrap(file_size=MIB)
    result = sandbox.run("head -c 2M /dev/zero > big")
    assert "File size limit exceeded" in result.output
    assert sandbox.run("stat -c %s big").output == f"{MIB}\n"
    with pytest.raises(WorkspaceError, match="larger than 1048576 bytes"):
        sandbox.write("other", b"x" * (MIB + 1))
    assert goes_on(sandbox)


def test_number_of_files(bwrap):
    sandbox = bwrap(files=500)
    result = sandbox.run("i=0; while :; do : > f$((i += 1)); done", timeout=50)
    assert "there were more than 500 files" in result.output
    assert not result.timed_out
    # What does not make them more goes on, so that the agent can clean up.
    assert sandbox.run("sleep 0.5; rm -f f*; ls | wc -l").output == "0\n"
    assert goes_on(sandbox)


def test_files_that_claim_any_size_do_not_stop_the_state(bwrap):
    sandbox = bwrap(disk=4 * MIB, file_size=64 * MIB)
    sandbox.run("for i in $(seq 200); do truncate -s 64M sparse$i; done")
    before = sandbox.state()
    sandbox.run("truncate -s 63M sparse1")
    assert sandbox.state() != before


def test_folders_deeper_than_any_path(bwrap):
    sandbox = bwrap()
    code = """
import os
for _ in range(3000):
    os.mkdir("deep")
    os.chdir("deep")
"""
    sandbox.run(f"python3 -c '{code}'")
    assert sandbox.state()
    assert goes_on(sandbox)


def test_folders_that_cannot_be_read(bwrap):
    sandbox = bwrap()
    sandbox.run("mkdir d; echo x > d/x; echo y > y; chmod 0 d y")
    assert sandbox.state() != bwrap().state()
    with pytest.raises(WorkspaceError, match="Permission denied"):
        sandbox.read("y")


# --- time ----------------------------------------------------------------------------------------


def test_processor_time(bwrap):
    sandbox = bwrap(cpu_seconds=1)
    result = sandbox.run("python3 -c 'while True: pass'", timeout=50)
    assert result.exit_code in (128 + 24, 128 + 9)  # SIGXCPU
    assert not result.timed_out
    assert goes_on(sandbox)


def test_a_test_run_that_never_ends(bwrap):
    sandbox = bwrap()
    sandbox.put({"test_loop.py": b"def test_it():\n    while True:\n        pass\n"})
    result = sandbox.run("python3 -m pytest -q test_loop.py", timeout=2)
    assert result.timed_out
    assert result.duration < 30
    assert "[killed after 2 s, with everything it had started]" in result.output
    assert goes_on(sandbox)


# --- output --------------------------------------------------------------------------------------


def resident() -> int:
    """Give the memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_a_gigabyte_of_output(bwrap):
    sandbox = bwrap(output=10_000)
    before = resident()
    result = sandbox.run("head -c 1000000000 /dev/zero; echo; echo end", timeout=120)
    assert result.exit_code == 0
    assert len(result.output) < 11_000
    assert result.output.endswith("\0\nend\n")
    assert "[… 999990005 bytes left out …]" in result.output
    assert resident() - before < 50 * MIB
    inside = int(sandbox.exec(["cat", "/proc/1/statm"]).output.split()[1]) * 4096
    assert inside < 100 * MIB


def test_output_that_never_ends(bwrap):
    sandbox = bwrap()
    result = sandbox.run("yes", timeout=0.5)
    assert result.timed_out
    assert "bytes left out" in result.output
    sandbox.run("yes &")
    for _ in range(3):
        assert sandbox.run("true").exit_code == 0
    sandbox.run("kill %1 2>/dev/null; wait")
    assert goes_on(sandbox)
