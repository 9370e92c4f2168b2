"""Meetings of one day, the blocks they keep busy and the gaps they leave free."""

from dayplan.interval import Interval
from dayplan.merge import merge, subtract
from dayplan.schedule import Schedule

__all__ = ["Interval", "Schedule", "merge", "subtract"]
