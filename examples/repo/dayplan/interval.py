"""A stretch of one day."""

from dataclasses import dataclass

from dayplan.clock import format_time, parse_time


@dataclass(frozen=True, order=True)
class Interval:
    """The minutes from ``start`` up to ``end``, where ``end`` itself is excluded."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise ValueError(f"an interval must end after its start, got {self}")

    @classmethod
    def parse(cls, text: str) -> "Interval":
        """Read an interval such as "09:30-10:15"."""
        start, _, end = text.partition("-")
        return cls(parse_time(start), parse_time(end))

    def __str__(self) -> str:
        return f"{format_time(self.start)}-{format_time(self.end)}"

    @property
    def minutes(self) -> int:
        """The length in minutes."""
        return self.end - self.start

    def overlaps(self, other: "Interval") -> bool:
        """Tell whether the two share at least one minute."""
        return self.start < other.end and other.start < self.end

    def hull(self, other: "Interval") -> "Interval":
        """Return the smallest interval that holds both."""
        return Interval(min(self.start, other.start), max(self.end, other.end))
