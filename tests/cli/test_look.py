"""``rtmc show``, ``keys``, ``formats``, ``--help``: what a person sees."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rtmc.advantages import ESTIMATORS
from rtmc.cli import main
from rtmc.formats import FORMATS

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "group.jsonl")


def run(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def test_show_draws_the_only_group_without_being_told_which() -> None:
    out = run("show", EXAMPLE).output
    assert out.startswith("dayplan__back-to-back\n")
    assert "✔ refused_edit passed 1" in out
    assert "\x1b" not in out  # plain text where nobody looks


def test_show_names_the_problems_where_there_are_several(tmp_path: Path) -> None:
    text = Path(EXAMPLE).read_text()
    both = tmp_path / "both.jsonl"
    both.write_text(text + text.replace("dayplan__back-to-back", "other"))
    result = run("show", str(both))
    assert result.exit_code == 2
    assert result.stderr == (
        "rtmc: 2 problems in the input; say --problem with one of: "
        "dayplan__back-to-back (8), other (8)\n"
    )
    assert run("show", str(both), "--problem", "other").output.startswith("other\n")
    wrong = run("show", str(both), "--problem", "third")
    assert "no problem 'third' in the input; say --problem with one of:" in wrong.stderr


def test_keys_says_how_a_step_was_read() -> None:
    out = run("keys", EXAMPLE, "--rollout", "refused_edit").output
    assert "python -m pytest -q tests/test_schedule.py → test@tests/test_schedule.py" in out
    assert "exit 1; the runner said fail" in out
    assert re.search(r"modify:replace:[0-9a-f]{4}@dayplan/merge.py:err  \(refused\)", out)
    assert out.count("earns the bonus") == 2


def test_keys_of_nobody_is_an_error() -> None:
    result = run("keys", EXAMPLE, "--rollout", "nobody")
    assert result.exit_code == 2
    assert "no such rollout" in result.stderr


def test_formats_lists_every_format() -> None:
    out = run("formats").output
    for name, known in FORMATS.items():
        assert re.search(rf"^{re.escape(name)} +{re.escape(known.title)}$", out, re.MULTILINE)


@pytest.mark.parametrize("command", [[], ["credit"], ["show"], ["keys"], ["formats"], ["bench"]])
def test_help_has_examples(command: list[str]) -> None:
    out = run(*command, "--help").output
    assert out.startswith("Usage: ")
    assert "Example" in out or command in (["formats"], ["bench"])


def test_help_of_credit_names_every_estimator_and_default() -> None:
    out = run("credit", "--help").output
    for name in ESTIMATORS:
        assert name in out
    for default in ("default: rtmc", "default: paper", "default: 0.99", "rtmc: 2", "default: 0.05"):
        assert default in " ".join(out.split())
