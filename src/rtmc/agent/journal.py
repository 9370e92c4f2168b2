"""Keep finished rollouts in a file beside the output until all are there, so that none is lost."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import msgspec

from rtmc.agent.rollout import Place
from rtmc.atomic import open_atomic
from rtmc.errors import FormatError, OptionError, OutputError
from rtmc.rollouts import Rollout, decode_rollout, encode_rollout

__all__ = ["Journal", "refuse_existing"]

SCHEMA = "rtmc.partial/1"


class _Head(msgspec.Struct):
    schema: str
    settings: dict[str, Any]


def refuse_existing(output: str) -> None:
    """Refuse to write onto what is there.

    Raises:
        OptionError: something is.
    """
    if Path(output).is_dir():
        raise OptionError(f"{output} is a folder; name a file, as in -o {output}/rollouts.jsonl")
    if Path(output).exists():
        raise OptionError(f"{output} is there already; remove it, or choose another -o")


class Journal:
    """The rollouts that are finished, on disk, whatever happens to the process.

    Each is a line, written at once; a last line that was cut off is dropped. The first line says
    what they come from, so that two different runs are not mixed. A rollout that ended with an
    error that is not the agent's is kept too, and is to be made again.
    """

    def __init__(self, output: str, settings: dict[str, Any]) -> None:
        """Begin, or go on where an earlier run with the same settings was stopped.

        Args:
            output: the file that ``finish`` writes.
            settings: what the rollouts follow from, as JSON holds it.

        Raises:
            OptionError: the output is there already, or the earlier run had other settings.
            FormatError: what is there is no journal.
            OutputError: it cannot be written.
        """
        self.output = Path(output)
        self.path = Path(f"{output}.partial.jsonl")
        refuse_existing(output)
        self._at: dict[Place, tuple[int, int]] = {}
        self.errors: set[Place] = set()
        try:
            begun = self.path.exists() and self.path.stat().st_size > 0
            self._file = self.path.open("r+b" if begun else "w+b")
        except OSError as error:
            raise OutputError(f"cannot write {self.path}: {error.strerror}") from error
        if begun:
            try:
                self._read(settings)
            except BaseException:
                self._file.close()
                raise
        else:
            head = _Head(SCHEMA, settings)
            self._file.write(msgspec.json.encode(head) + b"\n")
            self._file.flush()

    def _read(self, settings: dict[str, Any]) -> None:
        """Find what is there, and drop a line that was cut off."""
        end = 0
        for number, line in enumerate(self._file, start=1):
            if not line.endswith(b"\n"):
                break
            if number == 1:
                self._check(line, settings)
            else:
                try:
                    rollout = decode_rollout(line)
                except FormatError as error:
                    raise FormatError(f"{self.path}:{number}: {error}") from error
                self._note(rollout, end, len(line))
            end += len(line)
        self._file.seek(end)
        self._file.truncate()

    def _check(self, line: bytes, settings: dict[str, Any]) -> None:
        try:
            head = msgspec.json.decode(line, type=_Head)
        except msgspec.MsgspecError as error:
            raise FormatError(
                f"{self.path}: not what an earlier run left; remove it to begin anew"
            ) from error
        now = msgspec.to_builtins(settings)
        other = [
            name for name in {*now, *head.settings} if now.get(name) != head.settings.get(name)
        ]
        if other:
            differ = ", ".join(
                f"{name} {head.settings.get(name)!r} and now {now.get(name)!r}"
                for name in sorted(other)
            )
            raise OptionError(
                f"{self.path} is of a run with other settings ({differ}); repeat them to go on, or "
                "remove it to begin anew"
            )

    def _note(self, rollout: Rollout, offset: int, size: int) -> None:
        place = (rollout.problem_id, rollout.rollout_id)
        self._at[place] = (offset, size)
        if (rollout.stop_reason or "").startswith("error:"):
            self.errors.add(place)
        else:
            self.errors.discard(place)

    @property
    def done(self) -> frozenset[Place]:
        """Which rollouts need not be made again."""
        return frozenset(self._at.keys() - self.errors)

    def add(self, rollout: Rollout) -> None:
        """Keep a rollout."""
        line = encode_rollout(rollout) + b"\n"
        self._note(rollout, self._file.tell(), len(line))
        self._file.write(line)
        self._file.flush()

    def read(self, places: Iterable[Place]) -> Iterator[Rollout]:
        """Give rollouts that are there; nothing may be added meanwhile."""
        for place in places:
            yield decode_rollout(self._line(place))

    def _line(self, place: Place) -> bytes:
        end = self._file.tell()
        offset, size = self._at[place]
        self._file.seek(offset)
        line = self._file.read(size)
        self._file.seek(end)
        return line

    def finish(self, order: Iterable[Place]) -> None:
        """Write the output, in this order, and remove the journal.

        Raises:
            OutputError: it cannot be written; the journal is still there.
        """
        with open_atomic(self.output) as file:
            for place in order:
                file.write(self._line(place))
        self.close()
        self.path.unlink()

    def close(self) -> None:
        """Let the file go; what is there stays."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
