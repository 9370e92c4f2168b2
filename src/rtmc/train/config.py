"""Every choice of a training run, as a TOML file says it."""

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec

from rtmc.config import Config, estimator_of
from rtmc.errors import FormatError, OptionError

__all__ = [
    "CreditConfig",
    "EvaluationConfig",
    "ModelConfig",
    "OptimizerConfig",
    "OutputConfig",
    "RolloutConfig",
    "TaskConfig",
    "TrainConfig",
    "load",
    "presets",
]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class ModelConfig(_Section, frozen=True):
    """The policy.

    Attributes:
        name: as in ``hf:NAME``: a folder, a name that transformers knows, ``tiny`` for the start
            checkpoint that comes with the package.
        dtype: of the weights, as torch names it; what is trained wants float32, since a small
            rate is lost in the rounding of less.
        autocast: what is computed with: ``none`` for the dtype of the weights.
        lora: options of peft's ``LoraConfig``, such as ``{r = 32, lora_alpha = 64}``; without them
            all weights are trained.
        context: tokens of a rollout at most; by default what the model was made for.
        vllm: options of TRL's vLLM (``vllm_mode``, ``vllm_gpu_memory_utilization``, …); without
            them turns are sampled in this process.
    """

    name: str = "tiny"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    autocast: Literal["none", "bfloat16", "float16"] = "none"
    lora: dict[str, Any] | None = None
    context: int | None = None
    vllm: dict[str, Any] | None = None


class TaskConfig(_Section, frozen=True):
    """The problems.

    Attributes:
        train: a task, as ``rtmc rollout --task`` takes it.
        first: the first of its problems that are trained on.
        problems: how many of them; None for all.
        sandbox: as ``rtmc rollout --sandbox`` takes it; by default that of the task.
        memory: MiB that a sandbox may use.
    """

    train: str = "tiny"
    first: int = 0
    problems: int | None = None
    sandbox: str | None = None
    memory: int = 1024


class RolloutConfig(_Section, frozen=True):
    """How rollouts are made.

    Attributes:
        problems: of one step.
        n: rollouts of each.
        temperature: of sampling.
        top_p: of sampling.
        max_tokens: of one turn.
        steps: of a rollout.
        tokens: of a rollout, all that the model read and wrote.
        seconds: of a rollout.
        workers: sandboxes that work at the same time.
        at_once: rollouts that the model goes on with at once.
    """

    problems: int = 8
    n: int = 8
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 1024
    steps: int = 40
    tokens: int = 32_768
    seconds: float = 1800.0
    workers: int = 8
    at_once: int = 64


class CreditConfig(_Section, frozen=True):
    """How credit is assigned; see ``rtmc.Config``.

    Attributes:
        estimator: a name of ``rtmc.ESTIMATORS``.
        options: of the estimator.
        level: level of the signatures, or a chain of them.
        gamma: γ.
        beta: β, reward for the first validation after a change.
        max_bonuses: how often a rollout can earn it; ``"none"`` = for each change.
        normalize: ``problem`` divides by the deviation of the problem's step advantages, ``none``
            leaves them as the estimator has them; ``auto`` is ``problem`` for ``rtmc``, as in the
            paper, and ``none`` for the others, which scale as their authors want it.
        incomplete: rollouts that a limit stopped: ``fail``, ``exclude`` or ``mask``.
        hash_chars: compared hex digits of a digest.
    """

    estimator: str = "rtmc"
    options: dict[str, Any] = {}
    level: str = "paper"
    gamma: float = 0.99
    beta: float = 0.05
    max_bonuses: int | Literal["none"] = 1
    normalize: Literal["auto", "none", "problem"] = "auto"
    incomplete: Literal["fail", "exclude", "mask"] = "fail"
    hash_chars: int = 16

    def made(self) -> Config:
        """Make the settings of ``rtmc.credit``.

        Raises:
            OptionError: there is no such estimator, option or level.
        """
        given = msgspec.structs.asdict(self)
        options, bonuses = given.pop("options"), given.pop("max_bonuses")
        given["estimator"] = estimator_of(self.estimator, options)
        if self.normalize == "auto":
            given["normalize"] = "problem" if self.estimator == "rtmc" else "none"
        config = Config(**given, max_bonuses=None if bonuses == "none" else bonuses)
        config.signer()
        return config


class OptimizerConfig(_Section, frozen=True):
    """How the weights move.

    Attributes:
        steps: of training; one step is one batch of rollouts.
        learning_rate: the highest.
        schedule: as transformers names it.
        warmup: steps of warm-up.
        loss: a ``loss_type`` of TRL.
        epsilon: clip range below 1.
        epsilon_high: clip range above 1; None for the same.
        kl: weight of the KL term to the start policy.
        minibatches: optimizer steps that one batch of rollouts is split into.
        passes: how often it is gone through.
        micro_batch: rollouts of one forward and backward pass.
        max_grad_norm: the gradient is cut to it.
        gradient_checkpointing: spend time to save memory.
        extra: more of TRL's ``GRPOConfig``, by name.
    """

    steps: int = 150
    learning_rate: float = 1e-6
    schedule: str = "constant_with_warmup"
    warmup: int = 0
    loss: Literal["grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo"] = "dapo"
    epsilon: float = 0.2
    epsilon_high: float | None = None
    kl: float = 0.0
    minibatches: int = 1
    passes: int = 1
    micro_batch: int = 16
    max_grad_norm: float = 1.0
    gradient_checkpointing: bool = False
    extra: dict[str, Any] = {}


class EvaluationConfig(_Section, frozen=True):
    """Success on problems that are not trained on.

    Attributes:
        task: as of training; None for no evaluation.
        first: the first of its problems.
        problems: how many of them.
        n: rollouts of each.
        every: steps between two evaluations; there is one before the first and one after the last.
    """

    task: str | None = None
    first: int = 0
    problems: int = 64
    n: int = 1
    every: int = 10


class OutputConfig(_Section, frozen=True):
    """What is kept.

    Attributes:
        save_every: steps between two checkpoints that a killed run goes on from.
        checkpoints: how many of these are kept.
        rollouts: steps whose rollouts are kept, evenly spread, about so many; 0 for none.
        report_to: where TRL sends metrics besides ``metrics.jsonl``: tensorboard, wandb …
    """

    save_every: int = 5
    checkpoints: int = 2
    rollouts: int = 64
    report_to: tuple[str, ...] = ()


class TrainConfig(_Section, frozen=True):
    """A training run.

    Attributes:
        about: what it is for, and what was run.
        seed: of everything.
    """

    about: str = ""
    seed: int = 0
    model: ModelConfig = ModelConfig()
    task: TaskConfig = TaskConfig()
    rollouts: RolloutConfig = RolloutConfig()
    credit: CreditConfig = CreditConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    output: OutputConfig = OutputConfig()

    def __post_init__(self) -> None:
        """Refuse numbers that make no run.

        Raises:
            OptionError: one of them is out of its range.
        """
        batch = self.rollouts.problems * self.rollouts.n
        splits = self.optimizer.minibatches * self.optimizer.micro_batch
        for holds, says in (
            (self.rollouts.n >= 2, "rollouts.n must be at least 2: credit compares rollouts"),
            (self.rollouts.problems >= 1, "rollouts.problems must be at least 1"),
            (self.optimizer.steps >= 1, "optimizer.steps must be at least 1"),
            (self.optimizer.micro_batch >= 1, "optimizer.micro_batch must be at least 1"),
            (self.optimizer.minibatches >= 1, "optimizer.minibatches must be at least 1"),
            (self.optimizer.passes >= 1, "optimizer.passes must be at least 1"),
            (self.output.save_every >= 1, "output.save_every must be at least 1"),
            (self.evaluation.every >= 1, "evaluation.every must be at least 1"),
            (self.optimizer.learning_rate > 0, "optimizer.learning_rate must be above 0"),
            (self.rollouts.temperature > 0, "rollouts.temperature must be above 0"),
            (
                splits > 0 and batch % splits == 0,
                f"a step has {batch} rollouts (rollouts.problems × rollouts.n); expected a "
                f"multiple of optimizer.minibatches × optimizer.micro_batch = {splits}",
            ),
        ):
            if not holds:
                raise OptionError(says)


def presets() -> dict[str, Path]:
    """List the configurations that come with the package, by name."""
    folder = Path(str(resources.files("rtmc.train") / "presets"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load(name: str, sets: dict[str, str] | None = None) -> TrainConfig:
    """Read a configuration.

    Args:
        name: a TOML file, or a preset.
        sets: values that replace its own, as ``{"credit.estimator": "grpo"}``; read as TOML, or as
            text where they are none.

    Raises:
        OptionError: there is no such file, preset or key, or a value is out of its range.
        FormatError: it is no TOML, or a value is of the wrong kind.
    """
    path = presets().get(name) or Path(name)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(
            f"cannot read {name}: {error.strerror}; expected a TOML file, or one of "
            f"{', '.join(presets())}"
        ) from error
    except ValueError as error:
        raise FormatError(f"{path}: {error}; expected TOML") from error
    for key, value in (sets or {}).items():
        _set(table, key, value)
    try:
        return msgspec.convert(table, TrainConfig)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, OptionError):
            raise OptionError(f"{path}: {error.__cause__}") from None
        whole = f"{path} with --set {', '.join(sets)}" if sets else str(path)
        raise FormatError(f"{whole}: {error}") from error


def _set(table: dict[str, Any], key: str, value: str) -> None:
    """Set a value by its dotted name."""
    *sections, last = key.split(".")
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise OptionError(f"--set {key}: {section} is no section")
    try:
        table[last] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        table[last] = value
