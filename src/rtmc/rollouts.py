"""Hold what an agent did: the one data model that every reader fills and every part reads.

    Group      all rollouts of one problem
    └─ Rollout one attempt, with its outcome
       └─ Step one turn of the model (several parallel calls are one step)
          └─ ToolCall one call and what came back

All are frozen msgspec structs. ``encode_rollout`` and ``decode_rollout`` write and read the
project's own JSON line (schema ``rtmc.rollout/1``) without loss.
"""

from math import isfinite
from typing import Any, Literal

import msgspec
from msgspec.structs import force_setattr

from rtmc.errors import FormatError

__all__ = [
    "SCHEMA",
    "Group",
    "Rollout",
    "Source",
    "Span",
    "Status",
    "Step",
    "ToolCall",
    "decode_rollout",
    "encode_rollout",
    "status_of",
]

SCHEMA = "rtmc.rollout/1"

Status = Literal["passed", "failed", "incomplete", "unknown"]

PASS_AT = 0.5
"""A reward from here on counts as passed where the source does not say ``resolved`` itself."""


class Source(msgspec.Struct, frozen=True):
    """Where a record came from: ``path`` as given, ``line`` counted from 1."""

    path: str = ""
    line: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Span(msgspec.Struct, frozen=True, array_like=True):
    """One run of tokens that the model sampled: ``[start, end)`` of token sequence ``sequence``."""

    sequence: int
    start: int
    end: int


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call of one tool, and what came back.

    Attributes:
        name: the tool as the agent named it (``bash``, ``str_replace_editor``, ``Read`` …).
        arguments: the decoded arguments, or the raw text where it could not be decoded
            (such a call is ``malformed`` and is kept, so that steps stay aligned).
        output: the observation; None where nothing came back.
        exit_code: of the whole command, where the trajectory records it.
        is_error: what the harness itself says of the call, None where it says nothing.
        timed_out: the harness stopped the call.
        cwd: the directory in which the call started, where the trajectory records it.
    """

    name: str
    arguments: dict[str, Any] | str = msgspec.field(default_factory=dict)
    output: str | None = None
    exit_code: int | None = None
    is_error: bool | None = None
    timed_out: bool = False
    cwd: str | None = None


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn of the model.

    Attributes:
        calls: the turn's tool calls in order; none means prose only.
        thought: what the model wrote besides its calls.
        reward: a reward that the environment gave for this very step, besides the outcome.
        spans: every run of tokens sampled in this turn, reasoning and call alike.
        observation_key: an identity of what the agent saw before acting, if one is known.
        env_state: an exact identity of the environment before acting, if one is known.
        seconds: wall time of the turn, sampling included, where it is known.
    """

    calls: tuple[ToolCall, ...] = ()
    thought: str = ""
    reward: float = 0.0
    spans: tuple[Span, ...] = ()
    observation_key: str | None = None
    env_state: str | None = None
    seconds: float | None = None


class Rollout(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attempt at one problem.

    Attributes:
        reward: the outcome, undiscounted; None where it is unknown.
        status: by default what ``status_of`` makes of reward and stop reason.
        stop_reason: in the words of the source.
        root: the directory of the repository, where the source names it.
        persistent_shell: False where every command starts in a new shell (``cd`` is forgotten).
        sequence_lengths: number of tokens of each token sequence that the spans refer to;
            there are several after compaction, or with one training row a step.
        token_ids: the tokens of each sequence as they were sampled and fed, where they are kept.
        logprobs: one number for each of them: the log-probability under the policy that sampled
            it; 0 at the tokens that no policy sampled.
        patch: what it changed in the repository, as a unified diff, where it is kept.
    """

    problem_id: str
    rollout_id: str
    steps: tuple[Step, ...] = ()
    reward: float | None = None
    status: Status = "unknown"
    stop_reason: str | None = None
    model: str | None = None
    policy_version: str | None = None
    root: str | None = None
    persistent_shell: bool = True
    sequence_lengths: tuple[int, ...] = ()
    source: Source = Source()
    token_ids: tuple[tuple[int, ...], ...] = ()
    logprobs: tuple[tuple[float, ...], ...] = ()
    patch: str | None = None

    def __post_init__(self) -> None:
        """Derive the status of a known outcome where none is given."""
        if self.status == "unknown" and self.reward is not None:
            force_setattr(self, "status", status_of(self.reward, self.stop_reason))


class Group(msgspec.Struct, frozen=True):
    """All rollouts of one problem (of one model, where grouped by problem and model)."""

    problem_id: str
    rollouts: tuple[Rollout, ...]


_LIMIT_WORDS = (
    "timeout", "timed_out", "time_limit", "limit", "max_", "exit_cost", "exit_context",
    "budget", "truncated", "length", "token_limit", "incomplete", "stuck",
)  # fmt: skip


def is_limit(stop_reason: str | None) -> bool:
    """Tell whether a stop reason says that a limit ended the rollout, not the agent."""
    if not stop_reason:
        return False
    text = stop_reason.lower().replace(" ", "_").replace("-", "_")
    if "test_timeout" in text or text.startswith("error:"):  # the tests did, or an endpoint
        return False
    return any(word in text for word in _LIMIT_WORDS)


def status_of(
    reward: float | None, stop_reason: str | None = None, resolved: bool | None = None
) -> Status:
    """Combine outcome and stop reason: a known outcome wins.

    passed if resolved (or reward ≥ 0.5); else incomplete if a limit stopped the rollout; else
    failed if the outcome is known, unknown if it is not.
    """
    if resolved is None and reward is not None:
        resolved = reward >= PASS_AT
    if resolved:
        return "passed"
    if is_limit(stop_reason):
        return "incomplete"
    return "unknown" if resolved is None else "failed"


class _Line(msgspec.Struct):
    schema: str = ""


_encoder = msgspec.json.Encoder()
_peek = msgspec.json.Decoder(_Line)
_decoder = msgspec.json.Decoder(Rollout)


def encode_rollout(rollout: Rollout) -> bytes:
    """Write one rollout as one JSON line (no newline) that ``decode_rollout`` reads back equal.

    Raises:
        FormatError: a reward or log-probability is not finite: JSON has no such number.
    """
    for reward in (rollout.reward, *(step.reward for step in rollout.steps)):
        if reward is not None and not isfinite(reward):
            raise FormatError(
                f"{rollout.rollout_id}: a reward is {reward}; expected a finite number"
            )
    for logprobs in rollout.logprobs:
        if not all(map(isfinite, logprobs)):
            raise FormatError(
                f"{rollout.rollout_id}: a log-probability is not finite; expected one of a token "
                "that can be sampled"
            )
    body = _encoder.encode(rollout)
    return b'{"schema":"' + SCHEMA.encode() + b'",' + body[1:]


def decode_rollout(line: bytes | str) -> Rollout:
    """Read a line of ``encode_rollout``.

    Raises:
        FormatError: the line is not JSON, or not a rollout of this schema.
    """
    try:
        schema = _peek.decode(line).schema
        if schema != SCHEMA:
            raise FormatError(f"expected schema {SCHEMA!r}, got {schema!r}")
        return _decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise FormatError(f"not a rollout of schema {SCHEMA}: {error}") from error
