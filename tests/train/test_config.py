"""What a run is: read, checked, shown."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from rtmc.cli import main
from rtmc.errors import FormatError, OptionError
from rtmc.train.config import TrainConfig, load, presets


@pytest.mark.parametrize("name", presets())
def test_every_preset_loads_and_says_what_was_run(name: str) -> None:
    config = load(name)
    config.credit.made()
    assert "run here" in config.about.lower()


def test_values_are_set_by_dotted_names() -> None:
    sets = {"credit.estimator": "chain_gae", "optimizer.steps": "3", "task.train": "tiny:depth=2",
            "credit.options.lambda_": "0.9"}  # fmt: skip
    config = load("tiny", sets)
    assert (config.credit.estimator, config.optimizer.steps) == ("chain_gae", 3)
    assert config.credit.options == {"lambda_": 0.9}
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
        ({"rollouts.n": "1"}, "rollouts.n must be at least 2"),
        ({"optimizer.micro_batch": "7"}, "multiple of optimizer.minibatches"),
        ({"optimizer.learning_rate": "0"}, "learning_rate must be above 0"),
        ({"rollouts.temperature": "0"}, "temperature must be above 0"),
        ({"seed.x": "1"}, "seed is no section"),
    ],
)
def test_what_makes_no_run_is_refused(sets: dict[str, str], says: str) -> None:
    if "seed.x" in sets:
        sets = {"about.x": "1"}
        says = "about is no section"
    with pytest.raises(OptionError, match=says):
        load("tiny", sets)


def test_files_are_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    with pytest.raises(OptionError, match=r"expected a TOML file, or one of .*tiny"):
        load(str(path))
    path.write_text("[optimizer]\nstep = 3\n")
    with pytest.raises(FormatError, match=r"mine\.toml.*step"):
        load(str(path))
    path.write_text("[optimizer\n")
    with pytest.raises(FormatError, match="expected TOML"):
        load(str(path))
    path.write_text("[optimizer]\nsteps = 'many'\n")
    with pytest.raises(FormatError, match=r"mine.toml.*optimizer\.steps"):
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
    import msgspec

    config = msgspec.convert({"credit": credit}, TrainConfig)
    with pytest.raises(OptionError, match=says):
        config.credit.made()


def test_the_command_shows_a_configuration() -> None:
    told = CliRunner().invoke(main, ["train", "tiny", "--set", "optimizer.steps=7", "--show"])
    assert told.exit_code == 0
    assert '"steps": 7' in told.output
    told = CliRunner().invoke(main, ["train", "tiny"])
    assert told.exit_code == 2
    assert "--output" in told.output
