"""The project's own format: one ``rtmc.rollout/1`` JSON object a line, without loss.

Problem and rollout id are the fields of these names; equal ids are parts of one rollout.
"""

from typing import Any

import msgspec

from rtmc.errors import FormatError
from rtmc.formats.base import Format, Identity
from rtmc.rollouts import SCHEMA, Rollout, Source, decode_rollout

__all__ = ["OWN"]


class _Ids(msgspec.Struct):
    problem_id: str
    rollout_id: str
    schema: str = ""
    model: str | None = None


_ids = msgspec.json.Decoder(_Ids)


def _identify(raw: bytes, source: Source) -> list[Identity]:
    ids = _ids.decode(raw)
    if ids.schema != SCHEMA:
        raise FormatError(f"expected schema {SCHEMA!r}, got {ids.schema!r}")
    return [Identity(ids.problem_id, ids.rollout_id, ids.model, "samples")]


def _read(raw: bytes, source: Source) -> list[Rollout]:
    rollout = decode_rollout(raw)
    # the first source is the more telling one: it names the file that the rollout was made in
    return [rollout if rollout.source.path else msgspec.structs.replace(rollout, source=source)]


def _detect(value: Any, path: str) -> bool:
    return isinstance(value, dict) and value.get("schema") == SCHEMA


OWN = Format(
    name="rtmc",
    title="rtmc's own rollouts",
    needs=f"lines with schema {SCHEMA}; outcome from reward and status",
    ids="problem_id and rollout_id",
    unit="line",
    detect=_detect,
    read=_read,
    identify=_identify,
)
