"""Decide the outcome of a rollout: the agent never sees this file."""

import pytest
from dayplan import Interval, Schedule, merge


def spans(text):
    return [Interval.parse(part) for part in text.split(", ") if part]


def grown(meetings):
    """Return a schedule whose meetings came one by one, in the order given."""
    day = Schedule.parse("08:00-18:00")
    for meeting in spans(meetings):
        day.add(meeting)
    return day


DAYS = [
    ("09:00-10:00, 10:00-11:00", "09:00-11:00"),
    ("10:00-11:00, 09:00-10:00", "09:00-11:00"),
    ("09:00-10:00, 11:00-12:00, 10:00-11:00", "09:00-12:00"),
    ("09:00-12:00, 10:00-10:30, 12:00-12:15", "09:00-12:15"),
    ("09:00-10:00, 10:01-11:00", "09:00-10:00, 10:01-11:00"),
    ("09:00-10:00, 10:05-11:00", "09:00-10:00, 10:05-11:00"),
]


@pytest.mark.parametrize(("meetings", "busy"), DAYS)
def test_merged_at_once(meetings, busy):
    assert merge(spans(meetings)) == spans(busy)


@pytest.mark.parametrize(("meetings", "busy"), DAYS)
def test_added_one_by_one(meetings, busy):
    assert grown(meetings).busy() == spans(busy)


def test_longest_busy_sees_the_joined_block():
    assert grown("09:00-10:30, 10:30-12:00, 12:00-13:00, 14:00-15:00").longest_busy() == 240


def test_free_keeps_a_single_minute():
    day = Schedule.parse("09:00-11:00", "09:00-10:00, 10:01-11:00")
    assert day.free() == spans("10:00-10:01")


def test_back_to_back_meetings_do_not_conflict():
    day = Schedule.parse("09:00-17:00", "09:00-10:00, 11:00-12:00")
    assert day.conflicts(Interval.parse("10:00-11:00")) == []


def test_overlapping_meetings_conflict():
    day = Schedule.parse("09:00-17:00", "09:00-10:00, 11:00-12:00")
    assert day.conflicts(Interval.parse("09:59-11:01")) == spans("09:00-10:00, 11:00-12:00")
