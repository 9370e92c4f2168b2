"""What a run leaves on disk: settings, metrics, rollouts, checkpoints; and how it goes on."""

import fcntl
import gzip
import os
import shutil
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from rtmc.atomic import open_atomic
from rtmc.errors import OptionError, OutputError
from rtmc.report.runs import METRICS, SETTINGS, flat, json_object, read_metrics
from rtmc.rollouts import Rollout, encode_rollout
from rtmc.train.config import TrainConfig

__all__ = ["Store"]

_COMPLETE = "complete"
_LOCK = ".lock"
_MAY_CHANGE = ("about", "output", "optimizer.steps", "evaluation.every")
"""Settings with which a run may go on although they are not those it began with."""


class Store:
    """The folder of a run; only one of its processes ``writes``.

    ``config.json``, ``metrics.jsonl`` (a line a step, and one an evaluation), ``rollouts/``
    (a file a step), ``checkpoint-…`` (to go on from), ``best/`` (the best policy so far).
    """

    def __init__(self, folder: Path, config: TrainConfig, writes: bool = True) -> None:
        """Take a folder: a new one, or that of a run with the same settings.

        Args:
            folder: of the run.
            config: its settings.
            writes: whether this process is the one of several that writes.

        Raises:
            FormatError: what is in it is damaged.
            OptionError: it holds something else, or a run with other settings, or one that another
                process is at.
            OutputError: it cannot be written.
        """
        self.folder, self.best = folder, folder / "best"
        self.coming, self._before = folder / "best.new", folder / "best.old"
        self._config, self.writes = config, writes
        self._metrics, self._rollouts = folder / METRICS, folder / "rollouts"
        if writes:
            self._begin()
            if self._before.exists() and not self.best.exists():
                self._before.replace(self.best)  # killed while a better one took its place
            for rest in (self.coming, self._before):
                shutil.rmtree(rest, ignore_errors=True)
        path = folder / "best.json"
        self._best: dict[str, Any] | None = (
            json_object(path, path.read_bytes()) if path.exists() else None
        )

    def _begin(self) -> None:
        folder, path = self.folder, self.folder / SETTINGS
        mine = msgspec.to_builtins(self._config)
        if folder.exists() and not folder.is_dir():
            raise OptionError(f"{folder} is a file; choose another -o")
        if path.exists() and self._has_begun():
            ours, theirs = flat(mine), flat(json_object(path, path.read_bytes()))
            other = [
                key
                for key in sorted({*ours, *theirs})
                if ours.get(key) != theirs.get(key) and not key.startswith(_MAY_CHANGE)
            ]
            if other:
                raise OptionError(
                    f"{folder} holds a run with another {', '.join(other)}; go on with the same "
                    "settings, or choose another -o"
                )
        elif folder.exists() and not self._may_begin():
            raise OptionError(f"{folder} is not empty and holds no run; choose another -o")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock()
            with open_atomic(path) as file:  # first: by it the folder is known as that of a run
                file.write(msgspec.json.format(msgspec.json.encode(mine)) + b"\n")
            self._rollouts.mkdir(exist_ok=True)
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(f"cannot write {folder}: {error.strerror}") from error

    def _lock(self) -> None:
        """Keep other processes out of the folder until this one ends, however it ends."""
        lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        weakref.finalize(self, os.close, lock)
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise OptionError(
                f"another process is training in {self.folder}; wait for it, or choose another -o"
            ) from None
        except OSError:  # a file system that has no locks
            pass

    def _may_begin(self) -> bool:
        """Say whether the folder holds nothing but settings of a run, which a model has too."""
        path = self.folder / SETTINGS
        if path.is_file():
            try:
                msgspec.convert(json_object(path, path.read_bytes()), TrainConfig)
            except (msgspec.ValidationError, OptionError):
                return False
            return True
        begun = (_LOCK, f".{SETTINGS}.")
        return all(one.name.startswith(begun) for one in self.folder.iterdir())

    def _has_begun(self) -> bool:
        """Say whether there is anything to lose: a run may have failed before its first step."""
        return bool(self.metrics()) or self.best.exists() or any(self.folder.glob("checkpoint-*"))

    # Checkpoints.

    def complete(self, step: int) -> None:
        """Mark a checkpoint as whole."""
        (self.folder / f"checkpoint-{step}" / _COMPLETE).touch()

    def go_on(self) -> Path | None:
        """Find the last checkpoint that is whole; remove what came after it.

        What was being written when the run was killed goes, and the metrics and rollouts of later
        steps, which are going to be made again, the same.
        """
        found: dict[int, Path] = {}
        for path in self.folder.glob("checkpoint-*"):
            if (path / _COMPLETE).exists():
                found[int(path.name.partition("-")[2])] = path
            elif self.writes:
                shutil.rmtree(path)
        last = max(found, default=0)
        if self.writes:
            self._forget_after(last)
        return found.get(last)

    def _forget_after(self, last: int) -> None:
        updates = self._config.optimizer.minibatches * self._config.optimizer.passes
        kept = [line for line in self.metrics() if line["step"] <= last // updates and last]
        with open_atomic(self._metrics) as file:
            file.write(b"".join(msgspec.json.encode(line) + b"\n" for line in kept))
        for path in self.kept():
            if _number(path) > last // updates:
                path.unlink()

    def is_best(self, success: float) -> bool:
        """Say whether a policy of that success is better than all before it."""
        return self._best is None or success > self._best["success"]

    def crown(self, success: float, step: int) -> None:
        """Let the policy that was saved to ``coming`` be the best.

        A kill at any moment leaves ``best`` whole, and ``best.json`` as good as it or less.
        """
        self._best = {"step": step, "success": success}
        if not self.writes:
            return
        if self.best.exists():
            self.best.replace(self._before)
        self.coming.replace(self.best)
        with open_atomic(self.folder / "best.json") as file:
            file.write(msgspec.json.encode(self._best) + b"\n")
        shutil.rmtree(self._before, ignore_errors=True)

    @property
    def best_step(self) -> int | None:
        """The step after which the best policy so far was evaluated."""
        return self._best["step"] if self._best is not None else None

    # Metrics.

    def log(self, line: dict[str, Any]) -> None:
        """Add a line of metrics."""
        with self._metrics.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")

    def metrics(self) -> list[dict[str, Any]]:
        """Read the lines; one that was cut off is left out."""
        return read_metrics(self._metrics) if self._metrics.exists() else []

    # Rollouts.

    def kept(self) -> list[Path]:
        """List the files of rollouts, by step."""
        return sorted(self._rollouts.glob("step-*.jsonl.gz"), key=_number)

    def keep(self, step: int, rollouts: Iterable[Rollout]) -> None:
        """Keep the rollouts of a step, counted from 1: of the first, the last, and some between."""
        most, steps = self._config.output.rollouts, self._config.optimizer.steps
        if not most or ((step - 1) % -(-steps // most) and step != steps):
            return
        lines = b"".join(encode_rollout(one) + b"\n" for one in rollouts)
        with open_atomic(self._rollouts / f"step-{step:05}.jsonl.gz") as file:
            file.write(gzip.compress(lines, mtime=0))


def _number(path: Path) -> int:
    return int(path.name.removeprefix("step-").removesuffix(".jsonl.gz"))
