"""Set a training run up, or go on with it."""

import importlib.util
import os
import re
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rtmc.agent.models.chat import Chat
from rtmc.agent.models.shorthand import END, PAD, UNKNOWN, Shorthand
from rtmc.agent.tasks import open_problems
from rtmc.errors import MissingExtraError, OptionError
from rtmc.train.config import TrainConfig
from rtmc.train.store import Store

__all__ = ["train"]


def train(config: TrainConfig, folder: Path, say: Callable[[str], None] = print) -> Store:
    """Train; where the folder holds an unfinished run of the same settings, go on with it.

    A run goes on from its last checkpoint, and what it does then is what it would have done without
    the interruption: weights, optimizer and schedule are restored, and what is left to chance
    follows from the seed and the number of the step.

    Args:
        config: of the run.
        folder: where all of it goes; see ``Store``.
        say: gets a line a step.

    Returns:
        What is in the folder.

    Raises:
        MissingExtraError: the extra ``train`` is not installed.
        OptionError: the settings do not fit together, or not what is in the folder.
        SandboxError: the sandbox does not work here.
    """
    for package in ("torch", "transformers", "trl"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "train")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers import PrinterCallback
    from transformers.utils import logging

    from rtmc.train.arguments import arguments
    from rtmc.train.record import Record
    from rtmc.train.trainer import StepCreditTrainer

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    _check_reports(config)
    t, e = config.task, config.evaluation
    with _about("task"):
        task, problems = open_problems(t.train, t.sandbox, t.memory, t.first, t.problems)
    held_out = None
    if e.task is not None:
        with _about("evaluation"):
            held_out = open_problems(e.task, t.sandbox, t.memory, e.first, e.problems)
    if len(problems) < config.rollouts.problems:
        raise OptionError(
            f"task: {t.train} has {len(problems)} problems from task.first = {t.first}"
            f"{'' if t.problems is None else f' with task.problems = {t.problems}'}; a step takes "
            f"rollouts.problems = {config.rollouts.problems}"
        )
    store = Store(folder, config, writes=os.environ.get("RANK", "0") == "0")
    say = say if store.writes else _silent
    last = store.go_on()
    model, tokenizer, chat = policy_of(config)
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    args = arguments(config, folder, processes)
    args.eval_on_start = last is None and held_out is not None
    lora = lora_of(config)
    _check_targets(config, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = StepCreditTrainer(
            config,
            args,
            model=model,
            tokenizer=tokenizer,
            chat=chat,
            task=task,
            problems=problems,
            held_out=held_out,
            store=store,
            callbacks=[Record(config, store, say)],
            peft_config=lora,
        )
        trainer.remove_callback(PrinterCallback)
        say(_head(config, trainer.model))
        if last is not None:
            done = trainer_step(last, config)
            say(
                f"going on after step {done}, from {last}"
                if done < config.optimizer.steps
                else f"all {done} steps are done"
            )
        trainer.train(resume_from_checkpoint=str(last) if last is not None else None)
        trainer.save_model(str(folder / "last"))
    return store


@contextmanager
def _about(section: str) -> Generator[None]:
    """Say which section of the configuration an error is about."""
    try:
        yield
    except OptionError as error:
        raise OptionError(f"{section}: {error}") from error


def _check_targets(config: TrainConfig, model: Any) -> None:
    """Refuse LoRA on modules that the model does not have."""
    targets = (config.model.lora or {}).get("target_modules", ())
    names = [name for name, _ in model.named_modules()]
    if isinstance(targets, str):
        known = targets == "all-linear" or any(re.fullmatch(targets, name) for name in names)
        missing = [] if known else [targets]
    else:
        missing = [t for t in targets if not any(f".{name}".endswith(f".{t}") for name in names)]
    if missing:
        last = {name.rpartition(".")[2] for name in names}
        projections = sorted(name for name in last if "proj" in name)
        raise OptionError(
            f'model.lora.target_modules: no module is called {", ".join(missing)}; "all-linear" '
            f"takes all that are linear, such as {', '.join(projections)}"
        )


def _check_reports(config: TrainConfig) -> None:
    """Refuse places for metrics that transformers does not find here."""
    from transformers.integrations import get_available_reporting_integrations

    there = get_available_reporting_integrations()
    for name in config.output.report_to:
        if name not in (*there, "none", "all"):
            raise OptionError(
                f"output.report_to: {name} is not installed, or not known to transformers; here "
                f"are {', '.join(there) or 'none'}"
            )


def _head(config: TrainConfig, model: Any) -> str:
    """Say what is going to happen."""
    size = sum(value.numel() for value in model.parameters())
    trained = sum(value.numel() for value in model.parameters() if value.requires_grad)
    part = "" if trained == size else f", {trained / 1e6:.1f} of them trained"
    r = config.rollouts
    return (
        f"{config.model.name} ({size / 1e6:.1f} million parameters{part}) on {config.task.train}: "
        f"{config.optimizer.steps} steps of {r.problems} problems × {r.n} rollouts, credit by "
        f"{config.credit.estimator}"
    )


def _silent(line: str) -> None:
    """Say nothing: another process does."""


def trainer_step(checkpoint: Path, config: TrainConfig) -> int:
    """Tell after which step a checkpoint was written."""
    updates = config.optimizer.minibatches * config.optimizer.passes
    return int(checkpoint.name.partition("-")[2]) // updates


def policy_of(config: TrainConfig) -> tuple[Any, Any, Chat]:
    """Load model, tokenizer and chat.

    Raises:
        OptionError: there is no such model.
    """
    import torch
    import transformers

    from rtmc.agent.models.hf import chat_of, find

    source, files = find(config.model.name)
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            source, dtype=getattr(torch, config.model.dtype), **files
        )
        chat = chat_of(source, model, files)
        if isinstance(chat, Shorthand):
            return model, tokenizer_of(chat), chat
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(source, **files)
    except (OSError, ValueError) as error:
        raise OptionError(f"cannot load {config.model.name!r}: {error}") from error
    if config.optimizer.kl > 0 and config.model.lora is None and "gguf_file" in files:
        raise OptionError(
            "optimizer.kl: TRL cannot load a GGUF file as the reference a second time; set it to "
            "0, train with model.lora, or save the model as a transformers checkpoint first"
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer, chat


def tokenizer_of(chat: Shorthand) -> Any:
    """Make the tokenizer that transformers wants beside a model: a word is a token."""
    import tokenizers
    import transformers

    words = tokenizers.models.WordLevel(dict(chat.ids), unk_token=UNKNOWN)
    inner = tokenizers.Tokenizer(words)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token=PAD, unk_token=UNKNOWN, eos_token=END
    )


def lora_of(config: TrainConfig) -> Any:
    """Make peft's settings of ours, None without them.

    Raises:
        MissingExtraError: peft is not installed.
        OptionError: it does not take them.
    """
    if config.model.lora is None:
        return None
    if importlib.util.find_spec("peft") is None:
        raise MissingExtraError("peft", "train")
    import peft

    try:
        return peft.LoraConfig(task_type="CAUSAL_LM", **config.model.lora)
    except (TypeError, ValueError) as error:
        raise OptionError(f"model.lora: {error}") from error
