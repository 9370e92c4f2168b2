from dayplan import Interval, Schedule


def texts(intervals):
    return [str(interval) for interval in intervals]


def test_overlapping_meetings_are_one_block():
    day = Schedule.parse("09:00-17:00", "09:00-10:30, 10:00-11:00, 14:00-15:00")
    assert texts(day.busy()) == ["09:00-11:00", "14:00-15:00"]


def test_back_to_back_meetings_are_one_block():
    day = Schedule.parse("09:00-17:00", "09:00-10:00, 10:00-11:00")
    assert texts(day.busy()) == ["09:00-11:00"]


def test_a_short_break_is_kept():
    day = Schedule.parse("09:00-17:00", "09:00-10:00, 10:15-11:00")
    assert texts(day.busy()) == ["09:00-10:00", "10:15-11:00"]
    assert texts(day.free(minutes=10)) == ["10:00-10:15", "11:00-17:00"]


def test_add_joins_what_it_overlaps():
    day = Schedule.parse("09:00-17:00", "09:00-10:00, 11:00-12:00")
    day.add(Interval.parse("09:30-11:30"))
    assert texts(day.busy()) == ["09:00-12:00"]
    assert day.longest_busy() == 180


def test_conflicts():
    day = Schedule.parse("09:00-17:00", "09:00-10:00, 10:00-11:00")
    assert texts(day.conflicts(Interval.parse("09:30-09:45"))) == ["09:00-10:00"]
    assert texts(day.conflicts(Interval.parse("11:00-11:30"))) == []
