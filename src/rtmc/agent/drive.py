"""Drive many attempts over one model: it is asked for many turns at once."""

import logging
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Generic, NamedTuple, TypeVar

from rtmc.agent.models.base import Completion, Dialogue, Model
from rtmc.errors import ModelError, RtmcError

__all__ = ["drive"]

T = TypeVar("T")
Driven = Generator[Dialogue, Completion, T]

_log = logging.getLogger(__name__)


class _Ended(NamedTuple, Generic[T]):
    """How an attempt ended."""

    result: T | Exception


def drive(
    attempts: Iterable[Driven[T]],
    model: Model,
    *,
    workers: int = 8,
    at_once: int = 64,
    lockstep: bool = True,
) -> Iterator[tuple[int, T | Exception]]:
    """Drive attempts until all have ended; a new one begins when one ends.

    An attempt that raises gives what it raised, and the others go on; what is not an ``RtmcError``
    is a bug and goes to the log with its traceback. Where the model raises an ``RtmcError``, the
    attempts that asked it get it; a ``ModelError``, and anything else that it raises, goes through.

    Args:
        attempts: generators such as ``rtmc.agent.loop.attempt``, on a sandbox each; taken as there
            is room for them.
        model: which is asked by one thread only.
        workers: how many attempts carry out their calls at the same time.
        at_once: how many attempts there are at any time.
        lockstep: ask when all that go on are waiting, so that what is asked together does not
            depend on how long calls take; else as soon as the model is free and one is waiting.

    Yields:
        The number of an attempt, from 0, and its result, in the order in which they end.
    """
    coming = enumerate(attempts)
    going: dict[int, Driven[T]] = {}
    working: dict[Future[Any], int] = {}
    asking: dict[int, Dialogue] = {}
    try:
        with ThreadPoolExecutor(workers, "attempt") as pool:

            def work(number: int, answer: Completion | RtmcError | None = None) -> None:
                working[pool.submit(_go_on, going[number], answer)] = number

            while True:
                while len(going) < at_once and (one := next(coming, None)):
                    number, going[one[0]] = one
                    work(number)
                if not going:
                    return
                done = wait(working, None, ALL_COMPLETED if lockstep else FIRST_COMPLETED).done
                ended: list[tuple[int, T | Exception]] = []
                for number, future in sorted((working.pop(future), future) for future in done):
                    turn = future.result()
                    if isinstance(turn, _Ended):
                        del going[number]
                        ended.append((number, turn.result))
                    else:
                        asking[number] = turn
                yield from ended
                if ended and lockstep:
                    continue  # those that begin now are asked together with the others
                for number, answer in _ask(model, asking).items():
                    work(number, answer)
                asking.clear()
    finally:
        for one in going.values():
            one.close()


def _ask(model: Model, asking: dict[int, Dialogue]) -> dict[int, Completion | RtmcError]:
    """Ask the model for one turn of each dialogue."""
    if not asking:
        return {}
    numbers = sorted(asking)
    try:
        said = model.complete([asking[number] for number in numbers])
        return dict(zip(numbers, said, strict=True))
    except ModelError:
        raise  # it concerns all
    except RtmcError as error:
        return dict.fromkeys(numbers, error)


def _go_on(one: Driven[T], answer: Completion | RtmcError | None = None) -> Dialogue | _Ended[T]:
    """Go on with an attempt until it asks again, or ends."""
    try:
        if answer is None:
            return next(one)
        if isinstance(answer, RtmcError):
            return one.throw(answer)
        return one.send(answer)
    except StopIteration as end:
        return _Ended(end.value)
    except RtmcError as error:
        return _Ended(error)
    except Exception as error:
        _log.exception("an attempt raised; it is ended, the others go on")
        return _Ended(error)
