"""Times of day as minutes since midnight."""

MINUTES_PER_DAY = 24 * 60


def parse_time(text: str) -> int:
    """Return the minutes since midnight of a time such as "09:30" ("24:00" ends the day)."""
    hours, colon, minutes = text.strip().partition(":")
    if not (colon and hours.isdigit() and minutes.isdigit() and int(minutes) < 60):
        raise ValueError(f"not a time of day: {text!r}")
    total = int(hours) * 60 + int(minutes)
    if total > MINUTES_PER_DAY:
        raise ValueError(f"not a time of day: {text!r}")
    return total


def format_time(minutes: int) -> str:
    """Return the time of day, such as "09:30"."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
