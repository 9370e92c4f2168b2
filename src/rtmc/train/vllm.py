"""Turns sampled by the vLLM that TRL runs beside the trainer, many dialogues at once."""

from typing import Any

from rtmc.agent.models.base import Completion, Dialogue
from rtmc.agent.models.hf import HF

__all__ = ["ThroughVLLM"]


class ThroughVLLM(HF):
    """A model whose record is kept as ``HF`` keeps it, and whose turns come from vLLM.

    Temperature, top_p and the longest turn are what TRL set vLLM up with. vLLM is asked by each
    process for its own rollouts (``vllm_mode = "colocate"``): a server would wait for all of them
    at every turn, and rollouts do not end together.
    """

    def __init__(self, engine: Any, *args: Any, **options: Any) -> None:
        """Take TRL's engine (``GRPOTrainer.vllm_generation``), and what ``HF`` takes."""
        super().__init__(*args, cache=False, **options)
        self._engine = engine

    def complete(self, dialogues: list[Dialogue]) -> list[Completion]:
        """Sample the next turn of each; what is left to chance follows from vLLM's own state.

        Raises:
            AlignmentError: a dialogue's messages and its record do not fit together.
            FloatingPointError: the model gives NaN.
        """
        rows = [self._row(dialogue) for dialogue in dialogues]
        ready = [row for row in rows if row.room > 0]
        if ready:
            _, sampled, logprobs, _ = self._engine.generate([row.ids for row in ready], None, 1)
            for row, ids, values in zip(ready, sampled, logprobs, strict=True):
                if not ids:
                    continue  # as if there were no room
                row.sampled = list(ids)
                row.logprobs = [value[0] for value in values]
                if None in row.logprobs:  # as TRL says NaN
                    raise FloatingPointError(
                        "vLLM gives tokens without a log-probability; look at the model's weights"
                    )
                row.stop = "stop" if self._ended(row.sampled) else "length"
        return [self._record(*both) for both in zip(dialogues, rows, strict=True)]
