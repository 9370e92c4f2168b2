"""From a configuration to TRL's own."""

import warnings
from pathlib import Path
from typing import Any

import torch
from trl import GRPOConfig

from rtmc.agent.models.hf import Sampling
from rtmc.errors import OptionError
from rtmc.train.config import TrainConfig

__all__ = ["arguments"]


_NOT_OURS = (
    "mask_truncated_completions", "num_generations_eval", "generation_batch_size",
    "sync_ref_model",
)  # fmt: skip
"""What TRL takes and does not fit: rollouts that a limit stopped are ``credit.incomplete``, batches
follow from ``rollouts``, and a reference that moves is in no checkpoint: a run that goes on would
be drawn to another policy than before."""


def arguments(config: TrainConfig, folder: Path, processes: int = 1) -> GRPOConfig:
    """Make TRL's arguments.

    A step of ours is one batch of rollouts; TRL counts optimizer steps, ``minibatches × passes`` of
    them. A micro-batch of TRL's is ours divided among the processes.

    Args:
        config: of the run.
        folder: where checkpoints go.
        processes: that train together.

    Raises:
        OptionError: the micro-batch cannot be divided among the processes, TRL does not know an
            option, or there are several GPUs for one process.
    """
    o, batch = config.optimizer, config.rollouts.problems * config.rollouts.n
    if o.micro_batch % processes:
        raise OptionError(
            f"optimizer.micro_batch is {o.micro_batch}; expected a multiple of the {processes} "
            "processes"
        )
    updates = o.minibatches * o.passes
    on_cpu = not torch.cuda.is_available()
    given: dict[str, Any] = {
        "output_dir": str(folder),
        "seed": config.seed,
        "num_generations": config.rollouts.n,
        "per_device_train_batch_size": o.micro_batch // processes,
        "gradient_accumulation_steps": batch // o.minibatches // o.micro_batch,
        "steps_per_generation": batch // o.micro_batch,
        "num_iterations": o.passes,
        "max_steps": o.steps * updates,
        "learning_rate": o.learning_rate,
        "lr_scheduler_type": o.schedule,
        "warmup_steps": o.warmup * updates,
        "loss_type": o.loss,
        "epsilon": o.epsilon,
        "epsilon_high": o.epsilon_high,
        "beta": o.kl,
        "max_grad_norm": o.max_grad_norm,
        "temperature": config.rollouts.temperature,
        "max_completion_length": config.rollouts.tokens,
        "gradient_checkpointing": o.gradient_checkpointing,
        "scale_rewards": "group",
        "bf16": config.model.autocast == "bfloat16",
        "fp16": config.model.autocast == "float16",
        "use_cpu": on_cpu,
        "dataloader_pin_memory": not on_cpu,
        "logging_steps": updates,
        "logging_first_step": False,
        "save_strategy": "steps",
        "save_steps": config.output.save_every * updates,
        "save_total_limit": config.output.checkpoints,
        "ignore_data_skip": True,  # what a step trains on follows from its number
        "shuffle_dataset": False,
        "report_to": list(config.output.report_to) or "none",
        "disable_tqdm": True,
        "log_completions": False,
        "remove_unused_columns": False,
        **_vllm(config),
    }
    if taken := sorted(k for k in o.extra if k in (*given, *_NOT_OURS) or "vllm" in k):
        raise OptionError(
            f"optimizer.extra.{taken[0]}: this follows from other settings, or does not go with "
            "credit by step; leave it out (`rtmc train … --show` lists the settings)"
        )
    given |= o.extra
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # a name that is being changed
            made = GRPOConfig(**given)
    except (TypeError, ValueError) as error:
        raise OptionError(f"TRL does not take these settings: {error}") from error
    if made.n_gpu > 1:
        raise OptionError(
            f"this process sees {made.n_gpu} GPUs, and trains on one: say accelerate launch "
            f"--num_processes {made.n_gpu} -m rtmc.cli train …, or CUDA_VISIBLE_DEVICES=0"
        )
    return made


def _vllm(config: TrainConfig) -> dict[str, Any]:
    """Let vLLM end a turn where the agent's loop would."""
    vllm = config.model.vllm
    if vllm is None:
        return {}
    if foreign := sorted(key for key in vllm if not key.startswith("vllm_")):
        raise OptionError(f"model.vllm.{foreign[0]}: expected options of TRL's that begin vllm_")
    # these make processes wait for each other at every turn, and rollouts do not end together
    if vllm.get("vllm_mode", "colocate") != "colocate":
        raise OptionError('model.vllm.vllm_mode: only "colocate" works with rollouts of many turns')
    if vllm.get("vllm_tensor_parallel_size", 1) != 1:
        raise OptionError(
            "model.vllm.vllm_tensor_parallel_size: only 1 works with rollouts of many turns; a "
            "model that is too large for one GPU cannot be sampled by vLLM here"
        )
    if vllm.get("vllm_enable_sleep_mode"):
        raise OptionError(
            "model.vllm.vllm_enable_sleep_mode: TRL would send the weights again at every turn"
        )
    stops = {"stop": list(Sampling().stop), "include_stop_str_in_output": True}
    return {
        "use_vllm": True,
        # one ratio over the hundreds of turns' tokens of a rollout would soon drop it whole
        "vllm_importance_sampling_mode": "token_truncate",
        "top_p": config.rollouts.top_p,
        "generation_kwargs": {**stops, "max_tokens": config.rollouts.max_tokens},
        **vllm,
    }
