"""Many attempts over one model."""

import logging
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from scripts import FIX, REPOSITORY, driven, xml

from rtmc.agent.drive import drive
from rtmc.agent.loop import Episode, attempt, recorded
from rtmc.agent.models.base import Completion, Dialogue
from rtmc.agent.models.scripted import Scripted
from rtmc.errors import OptionError, SandboxError

DONE = Completion("said")


def asks(times, pause=0.0, error=None):
    """An attempt without a sandbox: it asks so often, and then ends or raises."""
    for _ in range(times):
        assert (yield Dialogue([])) == DONE
        time.sleep(pause)
    if error is not None:
        raise error
    return Episode((), f"asked {times}")


class Counting:
    """Answers, and notes how many asked at once and in which thread."""

    name, native_tools = "counting", False

    def __init__(self, fails_at=None, error=None):
        self.asked, self.threads, self.fails_at, self.error = [], set(), fails_at, error

    def complete(self, dialogues):
        self.asked.append(len(dialogues))
        self.threads.add(threading.get_ident())
        if len(self.asked) == self.fails_at:
            raise self.error
        return [DONE] * len(dialogues)


def test_in_lockstep_all_that_go_on_are_asked_together():
    model = Counting()
    episodes = driven([asks(3), asks(1), asks(0), asks(2, pause=0.05)], model)
    assert [e.stop_reason for e in episodes] == ["asked 3", "asked 1", "asked 0", "asked 2"]
    assert model.asked == [3, 2, 1]
    assert model.threads == {threading.get_ident()}


def test_as_ready_nobody_waits_for_the_slowest():
    """The slow one goes on when the other, which asks more often, has ended."""
    ended = threading.Event()

    def slow():
        yield Dialogue([])
        assert ended.wait(20)
        yield Dialogue([])
        return Episode((), "waited")

    def quick():
        episode = yield from asks(20)
        ended.set()
        return episode

    model = Counting()
    episodes = driven([slow(), quick()], model, lockstep=False)
    assert [e.stop_reason for e in episodes] == ["waited", "asked 20"]
    assert sum(model.asked) == 22


def test_calls_are_carried_out_at_the_same_time():
    """Each of the four waits for the three others."""
    barrier = threading.Barrier(4, timeout=20)

    def meets():
        yield Dialogue([])
        barrier.wait()
        return Episode((), "met")

    assert {e.stop_reason for e in driven([meets() for _ in range(4)], Counting())} == {"met"}


def test_one_attempt_that_raises_does_not_lose_the_others(caplog):
    attempts = [
        asks(2),
        asks(1, error=SandboxError("it has ended")),
        asks(1, error=KeyError("bug")),
        asks(0, error=SandboxError("at once")),
    ]
    with caplog.at_level(logging.ERROR):
        episodes = driven(attempts, Counting())
    assert episodes[0].stop_reason == "asked 2"
    assert [repr(error) for error in episodes[1:]] == [
        "SandboxError('it has ended')", "KeyError('bug')", "SandboxError('at once')"
    ]  # fmt: skip
    (record,) = caplog.records  # the bug alone, with its traceback
    assert record.exc_info[0] is KeyError


def test_an_error_of_the_model_ends_those_that_asked(bench):
    bench.sandbox.put(REPOSITORY)
    think = xml("think", thought="x")

    class Breaks(Scripted):
        def complete(self, dialogues):
            if len(dialogues[0].messages) > 4:
                raise OptionError("the endpoint is gone")
            return super().complete(dialogues)

    one = attempt("Fix add.", bench, Dialogue([]), False)
    (episode,) = driven([one], Breaks([[think] * 9]))
    assert episode.stop_reason == "error: the endpoint is gone"
    assert len(episode.steps) == 2  # what was done is kept
    assert episode.token_ids


def test_a_bug_of_the_model_goes_through_and_closes_the_attempts():
    closed = []

    def careful():
        try:
            yield Dialogue([])
            yield Dialogue([])
        finally:
            closed.append(1)

    with pytest.raises(ZeroDivisionError):
        driven([careful(), careful()], Counting(2, ZeroDivisionError()))
    assert closed == [1, 1]


def test_nothing_to_driven():
    assert driven([], Counting()) == []


@pytest.mark.parametrize("lockstep", [True, False])
def test_what_comes_out_does_not_depend_on_how_it_is_driven(open_bench, lockstep):
    scripts = [FIX, [FIX[1], FIX[-1]], FIX[3:]]

    def dialogues():
        return [Dialogue([], seed=number) for number in range(3)]

    def work(one_by_one):
        attempts = []
        for dialogue in dialogues():
            bench = open_bench()
            bench.sandbox.put(REPOSITORY)
            attempts.append(attempt("Fix add.", bench, dialogue, False))
        model = Scripted(scripts)
        if one_by_one:
            return [driven([one], model)[0] for one in attempts]
        return driven(attempts, model, lockstep=lockstep)

    def kept(episode):
        rollout = recorded(episode, "p", "r")
        calls = [[(c.name, c.arguments, c.exit_code) for c in step.calls] for step in rollout.steps]
        states = [step.env_state for step in rollout.steps]
        return episode.stop_reason, calls, states, rollout.status

    assert [*map(kept, work(True))] == [*map(kept, work(False))]


@pytest.mark.parametrize("lockstep", [True, False])
def test_so_many_at_once_and_what_has_ended_comes_at_once(lockstep):
    """The fourth is made when the first has ended, and not before."""
    made = []

    def attempts():
        for number in range(6):
            made.append(number)
            yield asks(1 + number % 2)

    model = Counting()
    came = []
    for number, episode in drive(attempts(), model, at_once=3, lockstep=lockstep):
        came.append((number, episode.stop_reason))
        assert len(made) <= len(came) + 3
    assert sorted(came) == [(n, f"asked {1 + n % 2}") for n in range(6)]
    assert max(model.asked) <= 3
    if lockstep:
        assert model.asked == [3, 3, 2, 1]


def test_who_stops_listening_closes_the_attempts():
    closed = []

    def careful(times):
        try:
            yield from asks(times)
        finally:
            closed.append(times)
        return Episode((), "done")

    driving = drive([careful(1), careful(9), careful(9)], Counting())
    next(driving)
    driving.close()
    assert closed == [1, 9, 9]
