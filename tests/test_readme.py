"""The examples of the README are what the program prints."""

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rtmc.agent.sandbox import open_sandbox
from rtmc.errors import SandboxError

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = TEXT + (ROOT / "docs" / "rollouts.md").read_text(encoding="utf-8")
COMMANDS = list(dict.fromkeys(re.findall(r"```console\n\$ (.*?)\n(.*?)```", SHOWN, re.DOTALL)))
PYTHON = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", TEXT, re.DOTALL)


def shell(command: str, folder: Path) -> str:
    (folder / "examples").symlink_to(ROOT / "examples")
    command = command.replace("rtmc ", f"'{sys.executable}' -m rtmc.cli ", 1)
    done = subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


@functools.cache
def has_sandbox() -> bool:
    try:
        open_sandbox("warm").close()
    except SandboxError:
        return False
    return True


def test_there_are_examples() -> None:
    assert len(COMMANDS) == 5
    assert len(PYTHON) == 2


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[c for c, _ in COMMANDS])
def test_command_prints_what_the_readme_shows(command: str, shown: str, tmp_path: Path) -> None:
    if command.startswith("rtmc rollout") and not has_sandbox():
        pytest.skip("no bubblewrap here")
    assert shell(command, tmp_path).rstrip() == shown.rstrip()


@pytest.mark.parametrize(("code", "shown"), PYTHON)
def test_python_prints_what_the_readme_shows(code: str, shown: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.rstrip() == shown.rstrip()


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_pages_name_only_files_that_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:docs|examples|tests|src)/[\w./-]+)`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []
