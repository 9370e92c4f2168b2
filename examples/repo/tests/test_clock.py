import pytest

from dayplan.clock import format_time, parse_time


def test_there_and_back():
    assert parse_time("09:30") == 570
    assert format_time(570) == "09:30"
    assert parse_time("24:00") == 1440


@pytest.mark.parametrize("text", ["9", "09:60", "24:01", "-1:00", ""])
def test_no_time_of_day(text):
    with pytest.raises(ValueError, match="not a time of day"):
        parse_time(text)
