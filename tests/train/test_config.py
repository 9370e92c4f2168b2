"""What a run is: read, checked, shown."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from rtmc.cli import main
from rtmc.errors import FormatError, OptionError
from rtmc.train.config import CreditConfig
from rtmc.train.toml import dumps, load, presets


@pytest.mark.parametrize("name", presets())
def test_every_preset_says_what_was_run_and_is_taken_by_trl(name: str, tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="needs the extra train")
    from rtmc.train.arguments import arguments

    config = load(name)
    assert "tested so far: " in " ".join(config.about.lower().split())
    args = arguments(config, tmp_path)
    assert args.generation_batch_size == config.rollouts.problems * config.rollouts.n == 64


def test_several_gpus_of_one_process_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trl = pytest.importorskip("trl", reason="needs the extra train")
    from rtmc.train.arguments import arguments

    monkeypatch.setattr(trl.GRPOConfig, "n_gpu", 2)
    with pytest.raises(OptionError, match=r"sees 2 GPUs.* --num_processes 2 -m rtmc\.cli train"):
        arguments(load("tiny"), tmp_path)


def test_values_are_set_by_dotted_names() -> None:
    sets = {"credit.estimator": "chain_gae", "optimizer.steps": "3", "task.train": "tiny:depth=2",
            "credit.options.lam": "0.9"}  # fmt: skip
    config = load("tiny", sets)
    assert (config.credit.estimator, config.optimizer.steps) == ("chain_gae", 3)
    assert config.credit.options == {"lam": 0.9}
    assert config.task.train == "tiny:depth=2"


@pytest.mark.parametrize(
    ("estimator", "given", "made"),
    [
        ("rtmc", {}, "problem"),
        ("rtmc", {"credit.normalize": "none"}, "none"),
        ("chain_gae", {}, "none"),
        ("dr_grpo", {}, "none"),
        ("dr_grpo", {"credit.normalize": "problem"}, "problem"),
    ],
)
def test_an_estimator_that_scales_itself_is_left_alone(
    estimator: str, given: dict[str, str], made: str
) -> None:
    config = load("tiny", {"credit.estimator": estimator} | given)
    assert config.credit.made().normalize == made


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ({"optimizer.micro_batch": "7"}, "multiple of optimizer.minibatches"),
        ({"credit.estimator": "rtcm"}, "credit: no estimator 'rtcm'"),
        ({"about.x": "1"}, "about is no section"),
    ],
)
def test_what_makes_no_run_is_refused(sets: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        load("tiny", sets)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("rollouts.n", "1", "rollouts.n: Expected int >= 2"),
        ("rollouts.at_once", "0", "rollouts.at_once: Expected int >= 1"),
        ("optimizer.learning_rate", "0", "optimizer.learning_rate: Expected float > 0"),
        ("optimizer.learning_rate", "inf", "optimizer.learning_rate: Expected float <="),
        ("optimizer.learning_rate", "nan", "optimizer.learning_rate: Expected float"),
        ("optimizer.steps", "many", "optimizer.steps: Expected int, got str"),
        ("steps", "3", "there is no steps; did you mean rollouts.steps or optimizer.steps"),
        ("optimizer.learing_rate", "1", "did you mean optimizer.learning_rate"),
        ("optimizer.zzz", "1", r"there is no optimizer.zzz; .*\[optimizer\] has steps, "),
    ],
)
def test_values_and_keys_that_cannot_be_are_named(key: str, value: str, says: str) -> None:
    with pytest.raises(FormatError, match=f"^--set: .*{says}"):
        load("tiny", {key: value})


def test_none_takes_a_value_away() -> None:
    sets = {"evaluation.task": "none", "rollouts.tokens": "none", "credit.max_bonuses": "none"}
    with pytest.raises(FormatError, match=r"rollouts\.tokens: Expected int, got str"):
        load("tiny", sets)
    del sets["rollouts.tokens"]
    config = load("tiny", sets)
    assert config.evaluation.task is None
    assert config.credit.max_bonuses == "none"


def test_the_file_is_blamed_for_what_is_wrong_in_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[credit]\nestimater = 'grpo'\n")
    with pytest.raises(FormatError, match=r"mine\.toml: there is no credit\.estimater"):
        load(str(path), {"optimizer.steps": "3"})
    path.write_text("[rollouts]\nn = 7\n")  # no multiple of 16, but for --set
    with pytest.raises(OptionError, match=r"mine\.toml: a step has 56"):
        load(str(path))
    assert load(str(path), {"optimizer.micro_batch": "28"}).rollouts.n == 7


@pytest.mark.parametrize("name", presets())
def test_a_configuration_written_out_is_read_back(name: str, tmp_path: Path) -> None:
    config = load(name, {"model.lora": "{r = 3, target_modules = ['a', 'b\\\\c']}"})
    (tmp_path / "mine.toml").write_text(dumps(config))
    assert load(str(tmp_path / "mine.toml")) == config


def test_files_are_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    with pytest.raises(OptionError, match=r"expected a TOML file, or one of .*tiny"):
        load(str(path))
    path.write_text("[optimizer]\nstep = 3\n")
    with pytest.raises(FormatError, match=r"mine\.toml.*optimizer\.step;"):
        load(str(path))
    path.write_text("[optimizer\n")
    with pytest.raises(FormatError, match="expected TOML"):
        load(str(path))


@pytest.mark.parametrize(
    ("credit", "says"),
    [
        ({"estimator": "grop"}, "no estimator 'grop'"),
        ({"estimator": "grpo", "options": {"n_prior": 2}}, "does not apply to the estimator grpo"),
        ({"level": "papre"}, "papre"),
    ],
)
def test_credit_that_cannot_be(credit: dict, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        msgspec.convert(credit, CreditConfig).made()


def test_the_command_shows_a_configuration() -> None:
    told = CliRunner().invoke(main, ["train", "tiny", "--set", "optimizer.steps=7", "--show"])
    assert told.exit_code == 0
    assert "steps = 7" in told.output
    told = CliRunner().invoke(main, ["train", "tiny"])
    assert told.exit_code == 2
    assert "--output" in told.output


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ({"optimizer.extra": "{max_steps = 3}"}, "optimizer.extra.max_steps"),
        ({"optimizer.extra": "{mask_truncated_completions = true}"}, "optimizer.extra.mask_trunc"),
        ({"optimizer.extra": "{sync_ref_model = true}"}, "optimizer.extra.sync_ref_model"),
        ({"optimizer.extra": "{foo = 3}"}, "TRL does not take"),
        ({"optimizer.schedule": "foo"}, "TRL does not take"),
        ({"model.vllm": "{vllm_mode = 'server'}"}, "model.vllm.vllm_mode"),
        ({"model.vllm": "{vllm_enable_sleep_mode = true}"}, "model.vllm.vllm_enable_sleep"),
        ({"model.vllm": "{max_steps = 3}"}, "model.vllm.max_steps"),
        ({"optimizer.extra": "{use_vllm = true}"}, "optimizer.extra.use_vllm"),
        ({"model.vllm": "{vllm_tensor_parallel_size = 2}"}, "model.vllm.vllm_tensor_parallel"),
    ],
)
def test_what_trl_cannot_be_given_is_named(tmp_path: Path, sets: dict[str, str], says: str) -> None:
    pytest.importorskip("trl", reason="needs the extra train")
    from rtmc.train.arguments import arguments

    with pytest.raises(OptionError, match=says):
        arguments(load("tiny", sets), tmp_path)


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ({"task.train": "nope"}, "^task: .*nope"),
        ({"evaluation.task": "nope"}, "^evaluation: .*nope"),
        ({"task.problems": "3"}, "^task: tiny has 3 problems from .* with task.problems = 3; a st"),
        ({"output.report_to": "['nope']"}, "^output.report_to: nope is not"),
        ({"model.lora": "{target_modules = 'nope'}"}, "^model.lora.target_modules: .*nope.*q_proj"),
        ({"model.lora": "{target_modules = ['q_proj', 'x']}"}, "^model.lora.target_modules: .* x;"),
        ({"model.lora": "{nope = 3}"}, "^model.lora: .*nope"),
        (
            {"model.lora": "{target_modules = ['q_proj'], layers_pattern = 'layers'}"},
            "^model.lora: .*layers_to_transform",
        ),
    ],
)
def test_what_is_found_out_late_is_named_too(
    tmp_path: Path, sets: dict[str, str], says: str
) -> None:
    pytest.importorskip("trl", reason="needs the extra train")
    from rtmc.train.run import train

    with pytest.raises(OptionError, match=says):
        train(load("tiny", sets), tmp_path / "run", say=lambda line: None)
