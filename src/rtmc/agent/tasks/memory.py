"""Remember what has been worked out, for threads that ask for the same at the same time."""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

__all__ = ["Memory"]

T = TypeVar("T")


class Memory(Generic[T]):
    """Results by key; the oldest are forgotten."""

    def __init__(self, most: int = 4096) -> None:
        """Remember nothing yet.

        Args:
            most: how many results are kept.
        """
        self._most, self._known, self._lock = most, dict[Hashable, Future[T]](), threading.Lock()

    def of(
        self, key: Hashable, work_out: Callable[[], T], keeps: Callable[[T], bool] = lambda _: True
    ) -> T:
        """Give the result for a key; who asks first works it out, the others wait.

        An error is raised for all who wait, and not remembered; nor is what is not to be kept.
        """
        with self._lock:
            found = self._known.get(key)
            if found is None:
                mine = self._known[key] = Future[T]()
                if len(self._known) > self._most:
                    del self._known[next(iter(self._known))]
        if found is not None:
            return found.result()
        kept = False
        try:
            result = work_out()
            kept = keeps(result)
            mine.set_result(result)
        except BaseException as error:
            mine.set_exception(error)
        finally:
            if not kept:
                with self._lock:
                    self._known.pop(key, None)
        return mine.result()
