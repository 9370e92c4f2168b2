"""The trainer: TRL's GRPO with an advantage for every step. Read it from top to bottom.

One step of training is

1. ``_collect``: N rollouts of each of some problems, by the agent's loop with the policy as it is;
2. ``_generate_and_score_completions``: credit for every step of theirs, put onto their tokens;
3. ``_compute_loss``: TRL's loss over the rollouts of groups that carry signal.

Generation batches, optimiser, schedule, mixed precision, LoRA, gradient accumulation, checkpoints
and the reports to TensorBoard or W&B are TRL's and transformers'.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import torch
from accelerate.utils import gather_object
from datasets import Dataset
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase, Trainer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from rtmc.agent.drive import drive
from rtmc.agent.loop import Limits
from rtmc.agent.models import Model
from rtmc.agent.models.chat import Chat
from rtmc.agent.models.hf import HF, Sampling
from rtmc.agent.models.shorthand import Shorthand
from rtmc.agent.rollout import rollout
from rtmc.agent.tasks import Problem, Task
from rtmc.credit import credit
from rtmc.errors import RolloutError, RtmcError
from rtmc.rollouts import Group, Rollout, decode_rollout, encode_rollout
from rtmc.train.config import TrainConfig
from rtmc.train.metrics import metrics_of
from rtmc.train.signal import Signal, signal_of
from rtmc.train.store import Store
from rtmc.train.vllm import ThroughVLLM

__all__ = ["StepCreditTrainer"]

Place = tuple[Problem, int]
"""A problem, and which of its rollouts."""

SEEDS = 1_000_003
"""Batches of one seed at most; one more is the seed of all evaluations."""
EVALUATION = SEEDS - 1


class _BeforeUpdate(TrainerCallback):
    """Does something before each update of the optimizer."""

    def __init__(self, do: Callable[[], None]) -> None:
        self._do = do

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        self._do()


class StepCreditTrainer(GRPOTrainer):
    """Trains a policy on rollouts of an agent, with step-level credit."""

    def __init__(
        self,
        config: TrainConfig,
        args: GRPOConfig,
        *,
        model: Any,
        tokenizer: PreTrainedTokenizerBase,
        chat: Chat,
        task: Task,
        problems: Sequence[Problem],
        held_out: tuple[Task, Sequence[Problem]] | None = None,
        store: Store,
        **options: Any,
    ) -> None:
        """Set up.

        Args:
            config: of the run.
            args: TRL's, made of it.
            model: as ``GRPOTrainer`` takes it.
            tokenizer: with a token for padding.
            chat: what the tokens of the model mean.
            task: opens and judges.
            problems: to train on.
            held_out: a task and the problems of it that are evaluated on.
            store: where rollouts and metrics are kept.
            options: more of what ``GRPOTrainer`` takes.
        """
        self._config, self._chat, self._store = config, chat, store
        self._task, self._problems, self._held_out = task, problems, held_out
        self._credit_config = config.credit.made()
        self._made: list[Rollout] = []
        self._seconds: dict[str, float] = {}
        self._began = 0.0
        self._order = lru_cache(maxsize=2)(self._shuffled)
        os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # rollout_func is what we build on
        slots = Dataset.from_dict({"prompt": [str(n) for n in range(config.rollouts.problems)]})
        super().__init__(
            model,
            reward_funcs=[success],
            args=args,
            train_dataset=slots,  # which problems they stand for is said by the step's number
            processing_class=tokenizer,
            rollout_func=self._collect,
            **options,
        )
        self._rows_with_signal = torch.zeros((), dtype=torch.long, device=self.accelerator.device)
        self.add_callback(_BeforeUpdate(self.stand_still))

    # 1. Rollouts.

    @property
    def batch_number(self) -> int:
        """Batches of rollouts before this one; what follows from chance follows from it."""
        updates = self._config.optimizer.minibatches * self._config.optimizer.passes
        return self.state.global_step // updates

    def batch(self, number: int) -> list[Problem]:
        """List the problems of a batch: epoch by epoch, each in an order of its own."""
        size = self._config.rollouts.problems
        epoch, at = divmod(number, max(len(self._problems) // size, 1))
        return [self._problems[index] for index in self._order(epoch)[at * size : (at + 1) * size]]

    def _shuffled(self, epoch: int) -> list[int]:
        rng = Random(f"{self._config.seed} {epoch}")
        return rng.sample(range(len(self._problems)), len(self._problems))

    def _collect(self, prompts: list[str], _: Any) -> dict[str, list[Any]]:
        """Make this process's share of the rollouts of a batch, in TRL's order.

        TRL asks for N rollouts in a row of each prompt, shared out among the processes in order.
        """
        n, first = self._config.rollouts.n, self.accelerator.process_index * len(prompts)
        problems = self.batch(self.batch_number)
        places = [divmod(first + at, n) for at in range(len(prompts))]
        self._began = began = time.perf_counter()
        chosen = [(problems[which], number) for which, number in places]
        version = f"step {self.batch_number}"  # the policy after so many
        self._made = [
            msgspec.structs.replace(one, policy_version=version)
            for one in self.roll_out(self._task, chosen, self.batch_number)
        ]
        self._seconds["rollouts"] = time.perf_counter() - began
        out: dict[str, list[Any]] = {
            name: [] for name in ("prompt_ids", "completion_ids", "logprobs", "env_mask", "outcome")
        }
        for one in self._made:
            ids, logprobs, start = self._record(one)
            sampled = [0] * len(ids)
            for span in (span for step in one.steps for span in step.spans):
                sampled[span.start : span.end] = [1] * (span.end - span.start)
            out["prompt_ids"].append(ids[:start])
            out["completion_ids"].append(ids[start:])
            out["logprobs"].append(logprobs[start:])
            out["env_mask"].append(sampled[start:])
            out["outcome"].append(one.reward)
        return out

    def roll_out(self, task: Task, places: Sequence[Place], seed: int) -> list[Rollout]:
        """Make rollouts with the policy as it is.

        Args:
            task: which opens and judges.
            places: which.
            seed: with the run's own, what they follow from.
        """
        r = self._config.rollouts
        model, limits = self._sampler(), Limits(r.steps, r.tokens, r.seconds)
        seed += self._config.seed * SEEDS
        attempts = (
            rollout(task, problem, model, number, seed, limits) for problem, number in places
        )
        made: dict[int, Rollout] = {}
        driving = drive(attempts, model, workers=r.workers, at_once=r.at_once)
        hidden = not sys.stderr.isatty() or not self.accelerator.is_main_process
        bar = tqdm(driving, "rollouts", len(places), leave=False, disable=hidden)
        with self.accelerator.autocast():
            for at, result in bar:
                if isinstance(result, Exception):
                    if not isinstance(result, RtmcError):
                        raise result
                    problem, number = places[at]
                    reason = f"error: {result}"
                    result = Rollout(problem.problem_id, str(number), stop_reason=reason)
                made[at] = result
        return [made[at] for at in range(len(places))]

    def _sampler(self) -> Model:
        """Give the policy as something that continues dialogues."""
        r = self._config.rollouts
        sampling = Sampling(r.temperature, r.top_p, max_new_tokens=r.max_tokens)
        model = self.accelerator.unwrap_model(self.model)
        options: dict[str, Any] = {
            "name": self._config.model.name,
            "context": self._config.model.context,
        }
        if not self.use_vllm:
            return HF(model, self._chat, sampling, **options)
        if self.state.global_step != self._last_loaded_step:
            self.vllm_generation.sync_weights()
            self._last_loaded_step = self.state.global_step
        return ThroughVLLM(self.vllm_generation, model, self._chat, sampling, **options)

    def _record(self, one: Rollout) -> tuple[list[int], list[float], int]:
        """Give a rollout's tokens, their log-probabilities, and where the first turn begins."""
        starts = [span.start for step in one.steps for span in step.spans]
        if not one.token_ids or not starts:  # nothing was sampled: TRL needs a token, masked out
            pad = self._tokenizer.pad_token_id
            return [pad, pad], [0.0, 0.0], 1
        return list(one.token_ids[0]), list(one.logprobs[0]), min(starts)

    # 2. Credit.

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Put the advantage of each step in the place of TRL's one number a rollout."""
        out = super()._generate_and_score_completions(inputs)
        rollouts = self._gathered(self._made)
        began = time.perf_counter()
        credited = credit(grouped(rollouts), self._credit_config)
        signals = signal_of(credited)
        self._seconds["credit"] = time.perf_counter() - began
        first = self.accelerator.process_index * len(self._made)
        own = signals[first : first + len(self._made)]
        advantages, mask = self._laid_out(own, out["completion_ids"])
        out["advantages"], out["tool_mask"] = advantages, mask
        out["num_items_in_batch"] = self.accelerator.gather(mask.sum()).sum()
        out["live_share"] = torch.tensor(
            sum(bool(signal.mask.any()) for signal in signals) / len(signals), device=mask.device
        )
        if self.accelerator.is_main_process:
            self._store.keep(self.batch_number + 1, rollouts)
        for name, value in metrics_of(credited, signals, self._seconds).items():
            self._metrics["train"][name].append(value)
        return out

    def _gathered(self, own: list[Rollout]) -> list[Rollout]:
        """Bring the rollouts of all processes together, in the order of their ranks.

        Raises:
            RolloutError: every one of them ended with an error that is not the agent's.
        """
        if self.accelerator.num_processes > 1:
            own = [decode_rollout(line) for line in gather_object(list(map(encode_rollout, own)))]
        errors = [one.stop_reason for one in own if (one.stop_reason or "").startswith("error")]
        if own and len(errors) == len(own):
            raise RolloutError(f"every rollout ended with an error; the first: {errors[0]}")
        return own

    def _laid_out(
        self, signals: Sequence[Signal], completions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Lay advantages and mask out beside the completions, shape [rollouts, tokens]."""
        advantages = torch.zeros(completions.shape, device=completions.device)
        mask = torch.zeros_like(completions)
        for row, (signal, one) in enumerate(zip(signals, self._made, strict=True)):
            if signal.mask.any():  # else there may be no turn, and no record that TRL was given
                start = self._record(one)[2]
                end = len(signal.mask) - start
                advantages[row, :end] = torch.as_tensor(signal.advantages[start:])
                mask[row, :end] = torch.as_tensor(signal.mask[start:], dtype=mask.dtype)
        return advantages * mask, mask

    # 3. Loss.

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        """Take TRL's loss over the rollouts that carry signal, as if there were no others.

        Losses that divide by rollouts (grpo, dr_grpo, sapo, luspo) divide by those only; dapo and
        cispo divide by tokens of the mask, bnpo by those of the micro-batch. What carries no signal
        is not even fed to the model here, unless there are several processes: TRL compares notes
        about every rollout between them.
        """
        live = inputs["tool_mask"].any(dim=1)
        self._rows_with_signal += live.sum()
        rows, fed = len(live), len(live)
        if self.accelerator.num_processes == 1 and not live.all():
            # float16's scaler wants a gradient of every step, if of zeros
            if not live.any() and self.accelerator.scaler is None:
                return torch.zeros((), device=live.device, requires_grad=True)
            live[0] |= not live.any()
            inputs = {name: _rows(value, live, rows) for name, value in inputs.items()}
            fed = int(live.sum())
        loss = super()._compute_loss(model, _short(inputs))
        if self.loss_type in ("grpo", "dr_grpo", "sapo", "luspo"):
            # TRL took the mean over the rows that were fed, and divides by the micro-batches of an
            # update; what is wanted is the sum over rows with signal, divided by all those of the
            # update: × fed rows / rows of a micro-batch / share of rows with signal
            loss = loss * (fed / rows) / inputs["live_share"].clamp(min=1e-9)
        return loss

    def stand_still(self) -> None:
        """Take the gradient away where no rollout of an optimizer step carries signal.

        A gradient of zeros would still move the weights: the optimizer has momentum.
        """
        is_dead = not self.accelerator.reduce(self._rows_with_signal.clone()).item()
        self._rows_with_signal.zero_()
        if is_dead:
            self.accelerator.unwrap_model(self.model).zero_grad(set_to_none=True)

    # 4. Metrics, evaluation, and what is saved.

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Tell how long the step took, and how much of that went into credit."""
        if "loss" in logs and self._seconds:
            whole = time.perf_counter() - self._began
            logs["seconds/update"] = whole - sum(self._seconds.values())
            logs["seconds/step"] = whole
            logs["credit_share"] = self._seconds["credit"] / whole
        super().log(logs, start_time)

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Roll out the held-out problems; keep the policy if it is the best so far.

        The random numbers are the same at every evaluation.
        """
        if self._held_out is None:
            return {}
        task, problems = self._held_out
        places = [(one, number) for one in problems for number in range(self._config.evaluation.n)]
        rank, ranks = self.accelerator.process_index, self.accelerator.num_processes
        began = time.perf_counter()
        rollouts = self._gathered(self.roll_out(task, places[rank::ranks], EVALUATION))
        metrics = {
            "eval_success": sum(one.status == "passed" for one in rollouts) / len(rollouts),
            "eval_errors": sum(one.status == "unknown" for one in rollouts) / len(rollouts),
            "eval_rollout_steps": sum(len(one.steps) for one in rollouts) / len(rollouts),
            "eval_seconds": time.perf_counter() - began,
        }
        Trainer.log(self, metrics)
        if self._store.is_best(metrics["eval_success"]):
            self.save_model(str(self._store.coming))
            self._store.crown(metrics["eval_success"], self.batch_number)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """Save the words of the chat too, where it has some of its own."""
        super()._save(output_dir, state_dict)
        if isinstance(self._chat, Shorthand) and self.args.should_save:
            self._chat.save(Path(output_dir or self._store.folder))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Mark a checkpoint that is whole."""
        super()._save_checkpoint(model, trial)
        self.accelerator.wait_for_everyone()  # each writes the state of its random numbers
        if self.accelerator.is_main_process:
            self._store.complete(self.state.global_step)

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """Write none."""


def _rows(value: Any, which: Any, rows: int) -> Any:
    """Choose rows of what has one for each rollout."""
    is_batch = isinstance(value, torch.Tensor) and value.dim() > 0 and len(value) == rows
    return value[which] if is_batch else value


def _short(inputs: dict[str, Any]) -> dict[str, Any]:
    """Cut what stands behind the last token that is trained on: nothing before depends on it.

    Two columns stay at least: what has one TRL takes for one number a rollout.
    """
    trained = inputs["tool_mask"].any(dim=0).nonzero()
    width = inputs["tool_mask"].shape[1]
    end = max(int(trained.max()) + 1 if len(trained) else 0, 2)
    return {
        name: value[:, :end]
        if isinstance(value, torch.Tensor)
        and value.shape[1:] == (width,)
        and not name.startswith("prompt")
        else value
        for name, value in inputs.items()
    }


def grouped(rollouts: Sequence[Rollout]) -> list[Group]:
    """Put rollouts of a problem together; they come in a row."""
    groups: dict[str, list[Rollout]] = {}
    for one in rollouts:
        groups.setdefault(one.problem_id, []).append(one)
    return [Group(name, tuple(members)) for name, members in groups.items()]


def success(prompts: Any, completions: Any, outcome: Sequence[float | None], **_: Any) -> list:
    """Tell TRL the outcomes, for its logs."""
    return list(outcome)
