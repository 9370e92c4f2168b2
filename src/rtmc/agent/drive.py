"""Drive many attempts over one model: it is asked for many turns at once."""

import logging
from collections.abc import Iterable
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from rtmc.agent.loop import Attempt, Episode
from rtmc.agent.models.base import Completion, Dialogue, Model
from rtmc.errors import RtmcError

__all__ = ["drive"]

_log = logging.getLogger(__name__)
_Turn = Dialogue | Episode


def drive(
    attempts: Iterable[Attempt], model: Model, *, workers: int = 8, lockstep: bool = True
) -> list[Episode]:
    """Drive attempts until all have ended.

    An attempt that raises ends with ``error: …`` as its stop reason, and the others go on; what is
    not an ``RtmcError`` is a bug and goes to the log with its traceback. Where the model raises an
    ``RtmcError``, the attempts that asked it end so; anything else that it raises goes through.

    Args:
        attempts: generators of ``rtmc.agent.loop.attempt``, on a sandbox each.
        model: which is asked by one thread only.
        workers: how many attempts carry out their calls at the same time.
        lockstep: ask when all that go on are waiting, so that what is asked together does not
            depend on how long calls take; else as soon as the model is free and one is waiting.

    Returns:
        The episodes, in the order of the attempts.
    """
    all_of_them = list(attempts)
    ended: dict[int, Episode] = {}
    try:
        with ThreadPoolExecutor(workers, "attempt") as pool:
            working: dict[Future[_Turn], int] = {
                pool.submit(_go_on, one): number for number, one in enumerate(all_of_them)
            }
            while working:
                done = wait(working, None, ALL_COMPLETED if lockstep else FIRST_COMPLETED).done
                asking: dict[int, Dialogue] = {}
                for number, future in sorted((working.pop(future), future) for future in done):
                    turn = future.result()
                    if isinstance(turn, Episode):
                        ended[number] = turn
                    else:
                        asking[number] = turn
                for number, answer in _ask(model, asking).items():
                    working[pool.submit(_go_on, all_of_them[number], answer)] = number
    finally:
        for one in all_of_them:
            one.close()
    return [ended[number] for number in range(len(all_of_them))]


def _ask(model: Model, asking: dict[int, Dialogue]) -> dict[int, Completion | RtmcError]:
    """Ask the model for one turn of each dialogue."""
    if not asking:
        return {}
    try:
        return dict(zip(asking, model.complete(list(asking.values())), strict=True))
    except RtmcError as error:
        return dict.fromkeys(asking, error)


def _go_on(one: Attempt, answer: Completion | RtmcError | None = None) -> _Turn:
    """Go on with an attempt until it asks again, or ends."""
    try:
        if answer is None:
            return next(one)
        if isinstance(answer, RtmcError):
            return one.throw(answer)
        return one.send(answer)
    except StopIteration as end:
        return end.value
    except RtmcError as error:
        return Episode((), f"error: {error}")
    except Exception as error:
        _log.exception("an attempt raised; it is ended, the others go on")
        return Episode((), f"error: {type(error).__name__}: {error}")
