"""The plan of one day."""

from bisect import insort
from collections.abc import Iterable

from dayplan.interval import Interval
from dayplan.merge import merge, subtract


class Schedule:
    """The meetings within the opening hours of one day.

    The busy blocks are kept up to date with every meeting, so that asking for them is cheap.
    """

    def __init__(self, opening: Interval, meetings: Iterable[Interval] = ()) -> None:
        self.opening = opening
        self.meetings = sorted(meetings)
        self._busy = merge(self.meetings)

    @classmethod
    def parse(cls, opening: str, meetings: str = "") -> "Schedule":
        """Read a day such as ("09:00-17:00", "09:30-10:15, 11:00-12:00")."""
        parts = [part for part in meetings.split(",") if part.strip()]
        return cls(Interval.parse(opening), map(Interval.parse, parts))

    def add(self, meeting: Interval) -> None:
        """Book one more meeting; overlapping ones are allowed, see ``conflicts``."""
        insort(self.meetings, meeting)
        block, apart = meeting, []
        for other in self._busy:
            if other.overlaps(block):
                block = block.hull(other)
            else:
                apart.append(other)
        self._busy = sorted([*apart, block])

    def conflicts(self, meeting: Interval) -> list[Interval]:
        """Return the booked meetings that cannot be attended together with this one."""
        return [booked for booked in self.meetings if booked.overlaps(meeting)]

    def busy(self) -> list[Interval]:
        """Return the blocks without a break, in order."""
        return list(self._busy)

    def longest_busy(self) -> int:
        """Return the minutes of the longest block without a break."""
        return max((block.minutes for block in self._busy), default=0)

    def free(self, minutes: int = 1) -> list[Interval]:
        """Return the gaps of at least so many minutes within the opening hours."""
        return [gap for gap in subtract(self.opening, self._busy) if gap.minutes >= minutes]
