"""R2E-Gym and DeepSWE: one trajectory a line.

The problem is the dataset row's ``instance_id``, else the docker image (R2E-Gym builds one image a
problem). The rollout is the experiment's name; rows of one problem and experiment are different
attempts. The outcome is ``reward``.
"""

from typing import Any

import msgspec

from rtmc.errors import FormatError
from rtmc.formats.base import Format, Identity, content_id, first_text, outcome_of
from rtmc.formats.observations import observe
from rtmc.formats.xml_calls import xml_calls
from rtmc.rollouts import Rollout, Source, Step, ToolCall, status_of

__all__ = ["R2E_GYM"]

_SHELLS = ("execute_bash", "bash")


class _DatasetRow(msgspec.Struct):
    instance_id: Any = None


class _Model(msgspec.Struct):
    llm_name: str | None = None


class _Ids(msgspec.Struct):
    ds: _DatasetRow | None = None
    docker_image: str | None = None
    exp_name: str | None = None
    agent_args: _Model | None = None


class _Step(msgspec.Struct):
    thought: str | None = None
    action: str | None = None
    observation: str | None = None


class _Row(_Ids):
    trajectory_steps: list[_Step] = msgspec.field(default_factory=list)
    exit_reason: str | None = None
    reward: Any = None


_ids = msgspec.json.Decoder(_Ids)
_row = msgspec.json.Decoder(_Row)


def _identity(row: _Ids, raw: bytes) -> Identity:
    problem = first_text(row.ds.instance_id if row.ds else None, row.docker_image)
    if problem is None:
        raise FormatError("no problem id: the row needs ds.instance_id or docker_image")
    model = row.agent_args.llm_name if row.agent_args else None
    return Identity(problem, first_text(row.exp_name) or content_id(raw), model)


def _identify(raw: bytes, source: Source) -> list[Identity]:
    return [_identity(_ids.decode(raw), raw)]


def _read(raw: bytes, source: Source) -> list[Rollout]:
    row = _row.decode(raw)
    ids = _identity(row, raw)
    reward, resolved = outcome_of(row.reward)
    return [
        Rollout(
            ids.problem_id,
            ids.rollout_id,
            tuple(_step(step) for step in row.trajectory_steps),
            reward,
            status_of(reward, row.exit_reason, resolved),
            row.exit_reason,
            ids.model,
            root="/testbed",
            source=source,
        )
    ]


def _step(step: _Step) -> Step:
    prose, calls = xml_calls(step.action or "")
    thought = (step.thought or prose).strip()
    if not calls:
        return Step((), thought)
    if step.observation is not None:
        seen = observe(step.observation)
        first = msgspec.structs.replace(
            calls[0], output=seen.output, exit_code=seen.exit_code, timed_out=seen.timed_out
        )
        calls = [first, *calls[1:]]
    return Step(tuple(_with_command(call) for call in calls), thought)


def _with_command(call: ToolCall) -> ToolCall:
    """Give the shell's text its usual name; some of R2E-Gym's tools call it ``cmd``."""
    arguments = call.arguments
    if call.name not in _SHELLS or isinstance(arguments, str) or "cmd" not in arguments:
        return call
    renamed = {"command" if k == "cmd" else k: v for k, v in arguments.items()}
    return msgspec.structs.replace(call, arguments=renamed)


def _detect(value: Any, path: str) -> bool:
    return isinstance(value, dict) and isinstance(value.get("trajectory_steps"), list)


R2E_GYM = Format(
    name="r2e-gym",
    title="R2E-Gym and DeepSWE trajectories",
    needs="rows with trajectory_steps; outcome from reward",
    ids="ds.instance_id (else docker_image) and exp_name",
    unit="line",
    detect=_detect,
    read=_read,
    identify=_identify,
)
