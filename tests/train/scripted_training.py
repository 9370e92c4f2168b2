"""A trainer whose rollouts are written down: all else is as it runs."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from rtmc.agent.models.shorthand import Shorthand
from rtmc.agent.tasks import Problem
from rtmc.rollouts import Rollout, Span, Step, ToolCall
from rtmc.train.arguments import arguments
from rtmc.train.config import TrainConfig
from rtmc.train.run import lora_of, tokenizer_of
from rtmc.train.store import Store
from rtmc.train.trainer import StepCreditTrainer

CHAT = Shorthand.of(["farm", "mill", "fee", "cost"])

LIVE = (("ls", "pytest"), ("ls", "cat a"), ("ls", "cat a"), ("pwd", "pytest"))
"""What the four rollouts of a problem do; the first and the last pass."""


def rollout_of(problem: str, number: int, commands: Sequence[str], reward: float) -> Rollout:
    """Write a rollout down: three tokens a prompt, two a turn, one an observation."""
    steps, ids, shift = [], [1, 2, 3], number
    for command in commands:
        start = len(ids)
        ids += [10 + shift, 20 + len(command)]
        call = ToolCall("bash", {"command": command}, output=f"saw {command}", exit_code=0)
        steps.append(Step(calls=(call,), spans=(Span(0, start, start + 2),)))
        ids.append(5)
    return Rollout(
        problem,
        str(number),
        tuple(steps),
        reward=reward,
        stop_reason="finished",
        sequence_lengths=(len(ids),),
        token_ids=(tuple(ids),),
        logprobs=(tuple([0.0] * len(ids)),),
    )


def problems(count: int) -> list[Problem]:
    return [Problem(f"p{number}", "text", must_pass=("t",)) for number in range(count)]


class Scripted(StepCreditTrainer):
    """Rollouts of some problems differ in outcome; those of the others all fail."""

    live: frozenset[str] = frozenset(["p0", "p2"])

    def roll_out(self, task: Any, places: Any, seed: int) -> list[Rollout]:
        return [
            rollout_of(
                problem.problem_id,
                number,
                LIVE[number],
                float(problem.problem_id in self.live and number in (0, 3)),
            )
            for problem, number in places
        ]


def saved_model(folder: Path) -> Path:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(CHAT.words), hidden_size=16, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=64, tie_word_embeddings=True,
        pad_token_id=0, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def config_of(**changes: Any) -> TrainConfig:
    import msgspec

    table: dict[str, Any] = {
        "model": {"name": "scripted"},
        "rollouts": {"problems": 2, "n": 4, "tokens": 16},
        "optimizer": {"steps": 2, "learning_rate": 0.01, "micro_batch": 8},
        "output": {"save_every": 100},
    }
    for key, value in changes.items():
        section, _, name = key.partition("__")
        table.setdefault(section, {})[name] = value
    return msgspec.convert(table, TrainConfig)


def trainer_of(
    folder: Path, config: TrainConfig, kind: type[Scripted] = Scripted, processes: int = 1
) -> Scripted:
    model_folder = folder / "model"
    if not model_folder.exists():
        saved_model(model_folder)
    model = LlamaForCausalLM.from_pretrained(model_folder)
    return kind(
        config,
        arguments(config, folder / "run", processes),
        model=model,
        tokenizer=tokenizer_of(CHAT),
        chat=CHAT,
        task=None,  # ty: ignore
        problems=problems(config.rollouts.problems),
        peft_config=lora_of(config),
        store=Store(folder / "run", config, writes=os.environ.get("RANK", "0") == "0"),
    )
