"""What is written and shown while a run goes on."""

from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState

from rtmc.train.config import TrainConfig
from rtmc.train.store import Store

__all__ = ["Record"]


class Record(TrainerCallback):
    """Puts every step's metrics into ``metrics.jsonl``, shows a line of them, asks for evaluations.

    Steps are batches of rollouts, from 1; an evaluation before the first is step 0.
    """

    def __init__(self, config: TrainConfig, store: Store, say: Callable[[str], None]) -> None:
        """Take what is needed."""
        self._config, self._store, self._say = config, store, say
        self._updates = config.optimizer.minibatches * config.optimizer.passes

    def on_train_begin(
        self, args: Any, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Let a run that goes on keep to what it is told now, not to what it was told before."""
        state.save_steps = args.save_steps

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **_: Any):
        """Ask for an evaluation now and then, and after the last step."""
        step, rest = divmod(state.global_step, self._updates)
        last = step == self._config.optimizer.steps
        if rest == 0 and (step % self._config.evaluation.every == 0 or last):
            control.should_evaluate = self._config.evaluation.task is not None
        if rest == 0 and last:
            control.should_save = True

    def on_log(
        self,
        args: Any,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ):
        """Keep and show what was logged."""
        if not state.is_world_process_zero or not logs or "train_runtime" in logs:
            return
        line: dict[str, Any] = {"step": state.global_step // self._updates}
        line |= {name: value for name, value in logs.items() if name != "epoch"}
        self._store.log(line)
        self._say(self._shown(line))

    def _shown(self, line: dict[str, Any]) -> str:
        steps = self._config.optimizer.steps
        if "eval_success" in line:
            return f"       held out: {line['eval_success']:.1%} solved"
        # TRL's is of what carries signal, and missing where nothing does
        entropy = f"{line['entropy']:.2f}" if "entropy" in line else "   –"
        return (
            f"{line['step']:>4}/{steps}  success {line['success']:.2f}  signal {line['signal']:.2f}"
            f"  bonus {line['bonus']:.3f}  entropy {entropy}"
            f"  gradient {line['grad_norm']:.2f}  {line['seconds/step']:.1f} s"
        )
