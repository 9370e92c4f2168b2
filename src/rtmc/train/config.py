"""Every choice of a training run."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from rtmc.config import Config, estimator_of
from rtmc.errors import OptionError

__all__ = [
    "CreditConfig",
    "EvaluationConfig",
    "ModelConfig",
    "OptimizerConfig",
    "OutputConfig",
    "RolloutConfig",
    "TaskConfig",
    "TrainConfig",
]

Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0, le=1e9)]
NotNegative = Annotated[float, Meta(ge=0, le=1e9)]


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
    context: Count | None = None
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
    first: Natural = 0
    problems: Count | None = None
    sandbox: str | None = None
    memory: Annotated[int, Meta(ge=64)] = 1024


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

    problems: Count = 8
    n: Annotated[int, Meta(ge=2)] = 8  # credit compares rollouts
    temperature: Positive = 1.0
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    max_tokens: Count = 1024
    steps: Count = 40
    tokens: Count = 32_768
    seconds: Positive = 1800.0
    workers: Count = 8
    at_once: Count = 64


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
        max_grad_norm: the gradient is cut to it; 0 for not at all.
        gradient_checkpointing: spend time to save memory.
        extra: more of TRL's ``GRPOConfig``, by name.
    """

    steps: Count = 150
    learning_rate: Positive = 1e-6
    schedule: str = "constant_with_warmup"
    warmup: Natural = 0
    loss: Literal["grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo"] = "dapo"
    epsilon: Positive = 0.2
    epsilon_high: Positive | None = None
    kl: NotNegative = 0.0
    minibatches: Count = 1
    passes: Count = 1
    micro_batch: Count = 16
    max_grad_norm: NotNegative = 1.0
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
    first: Natural = 0
    problems: Count = 64
    n: Count = 1
    every: Count = 10


class OutputConfig(_Section, frozen=True):
    """What is kept.

    Attributes:
        save_every: steps between two checkpoints that a killed run goes on from.
        checkpoints: how many of these are kept; two at least, as the last may be cut off.
        rollouts: steps whose rollouts are kept, evenly spread, about so many; 0 for none.
        report_to: where TRL sends metrics besides ``metrics.jsonl``: tensorboard, wandb …
    """

    save_every: Count = 5
    checkpoints: Annotated[int, Meta(ge=2)] = 2
    rollouts: Natural = 64
    report_to: tuple[str, ...] = ()


class TrainConfig(_Section, frozen=True):
    """A training run.

    Attributes:
        about: what it is for, and what was run.
        seed: of everything.
    """

    about: str = ""
    seed: Natural = 0
    model: ModelConfig = ModelConfig()
    task: TaskConfig = TaskConfig()
    rollouts: RolloutConfig = RolloutConfig()
    credit: CreditConfig = CreditConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    output: OutputConfig = OutputConfig()

    def __post_init__(self) -> None:
        """Refuse what makes no run.

        Raises:
            OptionError: a batch cannot be divided as it is to be; there is no such credit.
        """
        batch = self.rollouts.problems * self.rollouts.n
        splits = self.optimizer.minibatches * self.optimizer.micro_batch
        if batch % splits:
            raise OptionError(
                f"a step has {batch} rollouts (rollouts.problems × rollouts.n); expected a "
                f"multiple of optimizer.minibatches × optimizer.micro_batch = {splits}"
            )
        try:
            self.credit.made()
        except OptionError as error:
            raise OptionError(f"credit: {error}") from error
