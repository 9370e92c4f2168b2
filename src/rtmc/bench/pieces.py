"""Do a long piece of work in parts: in parallel, with progress, and going on where it stopped."""

import functools
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, TypeVar

import msgspec

from rtmc.errors import FormatError

__all__ = ["done", "partial", "run"]

P = TypeVar("P", bound=msgspec.Struct)


def partial(out: str) -> Path:
    """Where finished pieces are kept until the whole is done."""
    return Path(f"{out}.partial.jsonl")


def run(
    function: Callable[[P], Any],
    pieces: Sequence[P],
    jobs: int,
    store: Path | None,
    tick: Callable[[], object],
) -> list[Any]:
    """Apply a function to every piece.

    Args:
        function: of a piece; its result must be plain values that JSON holds.
        pieces: what to do.
        jobs: processes.
        store: file in which finished pieces are kept, a line each, so that the next run need not
            do them again; None keeps nothing.
        tick: called for every piece that is finished.

    Returns:
        The results, in the order of the pieces.
    """
    results = dict(done(store)) if store else {}
    missing = [piece for piece in pieces if _name(piece) not in results]
    for _ in range(len(pieces) - len(missing)):
        tick()
    for piece, result in _each(function, missing, jobs):
        results[_name(piece)] = result
        if store:
            with store.open("ab") as file:
                file.write(msgspec.json.encode([_name(piece), result]) + b"\n")
        tick()
    return [results[_name(piece)] for piece in pieces]


def done(store: Path) -> Iterator[tuple[str, Any]]:
    """Read the pieces that are finished; a last line that was cut off is left out."""
    lines = store.read_bytes().split(b"\n") if store.exists() else []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            name, result = msgspec.json.decode(line, type=tuple[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise FormatError(
                f"{store}:{number}: no finished piece of a benchmark; remove the file to begin anew"
            ) from error
        yield name, result
    if lines and lines[-1]:
        store.write_bytes(b"".join(line + b"\n" for line in lines[:-1]))


def _name(piece: msgspec.Struct) -> str:
    return msgspec.json.encode(piece).decode()


def _each(function: Callable[[P], Any], pieces: Sequence[P], jobs: int) -> Iterator[tuple[P, Any]]:
    if jobs == 1 or len(pieces) < 2:
        for piece in pieces:
            yield piece, function(piece)
        return
    # small systems gain nothing from threads of their own, which would be in each other's way
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    others = active_children()
    with ProcessPoolExecutor(jobs, get_context("spawn"), _wait_for_word) as pool:
        do = functools.partial(_work, function)
        waiting = {pool.submit(do, piece): piece for piece in pieces}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BaseException:
            # do not wait hours for what is under way; it cleans up after itself
            for worker in set(active_children()).difference(others):
                worker.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


# What follows is of a process that does pieces.

_told_to_stop = Event()
_busy = Lock()


def _wait_for_word() -> None:
    """Leave it to the process that shares the work out to say when to stop.

    Ctrl-C reaches all processes of a terminal. A handler that does nothing, unlike a signal that is
    ignored, is not handed down to the programs that a piece of work starts.
    """
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, _hear)
    Thread(target=_outlive_nobody, daemon=True).start()


def _outlive_nobody() -> None:
    """Stop when the process that shares the work out is killed; nobody would take the result.

    When the command is given again, another process would do the same piece in the same folder.
    """
    # a signal that came here would not wake the thread that has to act on it
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    above = parent_process()
    assert above is not None
    above.join()
    os.kill(os.getpid(), signal.SIGTERM)
    with _busy:  # the piece cleans up
        os._exit(1)


def _work(function: Callable[[P], Any], piece: P) -> Any:
    """Do a piece; when told to stop, stop there, and begin no other."""
    with _busy:
        signal.signal(signal.SIGTERM, _leave)
        try:
            if _told_to_stop.is_set():
                sys.exit(1)
            return function(piece)
        finally:
            signal.signal(signal.SIGTERM, _hear)


def _hear(number: int, frame: object) -> None:
    _told_to_stop.set()


def _leave(number: int, frame: object) -> None:
    signal.signal(number, _hear)  # once is enough: cleaning up is not to be disturbed
    _told_to_stop.set()
    sys.exit(1)
