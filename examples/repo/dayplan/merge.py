"""Set operations on intervals."""

from collections.abc import Iterable

from dayplan.interval import Interval


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the time that the intervals cover, as few blocks as possible, in order."""
    blocks: list[Interval] = []
    for interval in sorted(intervals):
        if blocks and blocks[-1].overlaps(interval):
            blocks[-1] = blocks[-1].hull(interval)
        else:
            blocks.append(interval)
    return blocks


def subtract(whole: Interval, blocks: Iterable[Interval]) -> list[Interval]:
    """Return the parts of ``whole`` that the sorted, disjoint ``blocks`` leave over."""
    gaps: list[Interval] = []
    cursor = whole.start
    for block in blocks:
        if cursor < min(block.start, whole.end):
            gaps.append(Interval(cursor, min(block.start, whole.end)))
        cursor = max(cursor, block.end)
    if cursor < whole.end:
        gaps.append(Interval(cursor, whole.end))
    return gaps
