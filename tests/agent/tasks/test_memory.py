"""What was worked out is remembered, by whoever asks and whenever."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rtmc.agent.tasks.memory import Memory


def test_threads_that_ask_at_the_same_time_wait_for_the_first():
    memory, begun, go_on = Memory[int](), [], threading.Event()

    def work_out():
        begun.append(1)
        assert go_on.wait(10)
        return 7

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(memory.of, "key", work_out) for _ in range(4)]
        go_on.set()
        assert [one.result() for one in asked] == [7] * 4
    assert len(begun) == 1


def test_an_error_is_not_remembered():
    memory = Memory[int]()

    def fails():
        raise ValueError("once")

    with pytest.raises(ValueError, match="once"):
        memory.of("key", fails)
    assert memory.of("key", lambda: 3) == 3
    assert memory.of("key", fails) == 3


def test_the_oldest_is_forgotten():
    memory, made = Memory[int](2), []
    for key in (1, 2, 3, 3, 2, 1):
        memory.of(key, lambda key=key: made.append(key) or key)
    assert made == [1, 2, 3, 1]


def test_what_is_not_to_be_kept_is_asked_again():
    memory, made = Memory[int](), iter([1, 2, 3])
    found = [memory.of("key", lambda: next(made), lambda value: value > 1) for _ in range(3)]
    assert found == [1, 2, 2]
