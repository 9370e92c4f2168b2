"""Many sandboxes at once."""

from concurrent.futures import ThreadPoolExecutor

from rtmc.agent.sandbox import Limits, open_sandbox


def test_32_at_once(bwrap_works):
    """Each runs, writes and is judged by itself, from a thread of its own."""

    def roll(number: int) -> tuple[str, str, str]:
        with open_sandbox(limits=Limits(seconds=120)) as sandbox:
            sandbox.put({"n.py": f"print({number})\n".encode()})
            for _ in range(5):
                output = sandbox.run("export N=$((N + 1)); python3 n.py; echo $N").output
            return output, sandbox.exec(["python3", "n.py"]).output, sandbox.state()

    with ThreadPoolExecutor(32) as pool:
        rolled = list(pool.map(roll, range(32), timeout=100))
    assert [one[:2] for one in rolled] == [(f"{n}\n5\n", f"{n}\n") for n in range(32)]
    assert len({state for _, _, state in rolled}) == 32


def test_32_open_together(bwrap_works):
    sandboxes = [open_sandbox() for _ in range(32)]
    for number, sandbox in enumerate(sandboxes):
        sandbox.run(f"cd /tmp; echo {number} > mine")
    assert [one.run("cat mine").output for one in sandboxes] == [f"{n}\n" for n in range(32)]
    for sandbox in sandboxes:
        sandbox.close()
