"""Long work in parts: it goes on where it stopped, in parallel or not."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rtmc.bench.pieces import done, partial, run
from rtmc.errors import FormatError
from squares import Square, square

PIECES = [Square(5), Square(2), Square(3), Square(2, "machine")]


class Work:
    """Squares, and a list of what was asked for."""

    def __init__(self):
        self.asked = []
        self.ticks = 0

    def __call__(self, piece):
        self.asked.append(piece.of)
        return [piece.of**2]

    def tick(self):
        self.ticks += 1


def test_results_are_in_the_order_of_the_pieces():
    work = Work()
    assert run(work, PIECES, 1, None, work.tick) == [[25], [4], [9], [4]]
    assert work.asked == [5, 2, 3, 2]
    assert work.ticks == 4
    assert run(work, [], 1, None, work.tick) == []


def test_processes_give_the_same_results(tmp_path):
    store = tmp_path / "s.jsonl"
    work = Work()
    alone = run(square, PIECES, 1, None, work.tick)
    together = run(square, PIECES, 2, store, work.tick)
    assert [value for value, _ in together] == [value for value, _ in alone] == [25, 4, 9, 4]
    assert {process for _, process in alone} == {os.getpid()}
    assert os.getpid() not in {process for _, process in together}
    assert work.ticks == 8
    assert sorted(result[0] for _, result in done(store)) == [4, 4, 9, 25]
    # what is stored is not done again, by however many processes
    assert run(square, PIECES, 2, store, work.tick) == together


def test_a_run_that_was_stopped_goes_on(tmp_path):
    store = tmp_path / "s.jsonl"

    class StopsAtThree(Work):
        def __call__(self, piece):
            if piece.of == 3:
                raise KeyboardInterrupt
            return super().__call__(piece)

    work = StopsAtThree()
    with pytest.raises(KeyboardInterrupt):
        run(work, PIECES, 1, store, work.tick)
    assert work.ticks == 2
    assert len(store.read_bytes().splitlines()) == 2
    again = Work()
    assert run(again, PIECES, 1, store, again.tick) == [[25], [4], [9], [4]]
    assert again.asked == [3, 2], "what was finished is not done again"
    assert again.ticks == 4
    assert len(store.read_bytes().splitlines()) == 4


SLEEPERS = """
import signal, sys
from rtmc.bench.pieces import run
from squares import Nap, nap

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    run(nap, [Nap(number, sys.argv[1]) for number in range(4)], 2, None, print)
"""


def begun(folder):
    """Start four naps, and wait until two of them have begun."""
    (folder / "sleepers.py").write_text(SLEEPERS)
    asked = subprocess.Popen(
        [sys.executable, folder / "sleepers.py", folder],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + 50
    while len(list(folder.glob("*.begun"))) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    return asked


def test_what_is_under_way_does_not_outlive_a_kill(tmp_path):
    asked = begun(tmp_path)
    workers = [int(path.read_text()) for path in tmp_path.glob("*.begun")]
    asked.kill()
    asked.communicate(timeout=50)
    until = time.monotonic() + 30
    while any(map(lives, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(lives, workers))
    assert sorted(path.stem for path in tmp_path.glob("*.cleaned")) == ["0", "1"]
    assert len(list(tmp_path.glob("*.begun"))) == 2, "they took up what was waiting"


def lives(process):
    """Say whether a process is there, and not just not yet buried."""
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("to", ["the process", "its group"])
def test_told_to_stop_it_stops_what_is_under_way(tmp_path, to):
    asked = begun(tmp_path)
    before = time.monotonic()
    if to == "the process":
        asked.send_signal(signal.SIGTERM)
    else:
        os.killpg(asked.pid, signal.SIGINT)  # Ctrl-C
    _, told = asked.communicate(timeout=50)
    assert time.monotonic() - before < 40, "it waited for the minute to end"
    assert asked.returncode == (143 if to == "the process" else -signal.SIGINT)
    assert sorted(path.stem for path in tmp_path.glob("*.cleaned")) == ["0", "1"]
    assert told.count("Traceback") == (to == "its group"), told  # its own, of KeyboardInterrupt


def test_pieces_that_differ_in_anything_are_other_pieces(tmp_path):
    store = tmp_path / "s.jsonl"
    work = Work()
    run(work, [Square(2)], 1, store, work.tick)
    run(work, [Square(2, "machine")], 1, store, work.tick)
    assert work.asked == [2, 2]


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_last_line_that_was_cut_is_done_again(tmp_path, cut):
    store = tmp_path / "s.jsonl"
    work = Work()
    run(work, PIECES[:3], 1, store, work.tick)
    whole = store.read_bytes()
    store.write_bytes(whole[:-cut])
    again = Work()
    assert run(again, PIECES[:3], 1, store, again.tick) == [[25], [4], [9]]
    assert again.asked == [3]
    assert store.read_bytes() == whole


@pytest.mark.parametrize(
    "line", ["{broken", "", "17", "null", '{"a": 1, "b": 2}', '["a", 1, 2]', "[1, 2]", '"ab"']
)
def test_a_damaged_line_is_named(tmp_path, line):
    store = tmp_path / "s.jsonl"
    work = Work()
    run(work, PIECES[:1], 1, store, work.tick)
    store.write_bytes(store.read_bytes() + line.encode() + b"\n" + store.read_bytes())
    with pytest.raises(FormatError) as caught:
        run(work, PIECES, 1, store, work.tick)
    assert str(caught.value) == (
        f"{store}:2: no finished piece of a benchmark; remove the file to begin anew"
    )


def test_text_that_is_no_text_is_named(tmp_path):
    store = tmp_path / "s.jsonl"
    store.write_bytes(b'["\xff\xfe", 1]\n')
    with pytest.raises(FormatError, match=r"s\.jsonl:1: no finished piece"):
        list(done(store))


def test_where_finished_pieces_are_kept():
    assert str(partial("out/quality.json")) == "out/quality.json.partial.jsonl"
