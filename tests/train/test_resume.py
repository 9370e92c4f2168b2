"""A run that is killed goes on as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the extra train")

import torch
from here import warm_works
from safetensors.torch import load_file

pytestmark = pytest.mark.skipif(not warm_works(), reason="bubblewrap does not work here")

SMALL = {
    "rollouts.problems": 3, "rollouts.n": 4, "optimizer.micro_batch": 4, "optimizer.steps": 5,
    "optimizer.minibatches": 3, "optimizer.learning_rate": "1e-3",
    "evaluation.problems": 4, "evaluation.every": 2, "output.save_every": 2,
}  # fmt: skip


def command(folder: Path) -> list[str]:
    sets = [f"--set={key}={value}" for key, value in SMALL.items()]
    return [sys.executable, "-m", "rtmc.cli", "train", "tiny", *sets, "-o", str(folder)]


def curve(folder: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [
        {k: v for k, v in line.items() if not k.startswith(("seconds", "eval_seconds", "step_time",
                                                            "credit_share"))}
        for line in lines
    ]  # fmt: skip


def test_killed_and_given_again(tmp_path: Path) -> None:
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(whole), env=env, check=True, capture_output=True, timeout=300)
    running = subprocess.Popen(command(killed), env=env, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    steps = 0
    for line in running.stdout:
        steps += "success" in line
        if steps == 3:
            time.sleep(0.3)  # in the middle of what comes next
            running.send_signal(signal.SIGKILL)
            break
    running.wait()
    assert len(curve(killed)) < len(curve(whole))
    ran = subprocess.run(
        command(killed), env=env, check=True, capture_output=True, text=True, timeout=300
    )
    assert "going on after step 2" in ran.stdout or "going on after step 4" in ran.stdout
    assert curve(killed) == curve(whole)
    assert any(line.get("signal", 0) > 0 for line in curve(whole))
    for line in map(json.loads, (killed / "metrics.jsonl").read_text().splitlines()):
        if "success" in line:
            phases = [line[f"seconds/{phase}"] for phase in ("rollouts", "credit", "update")]
            assert min(phases) > 0
            assert line["seconds/step"] == pytest.approx(sum(phases))
            assert line["credit_share"] == pytest.approx(phases[1] / sum(phases))
    again = subprocess.run(
        command(killed), env=env, check=True, capture_output=True, text=True, timeout=300
    )
    assert "all 5 steps are done" in again.stdout
    assert curve(killed) == curve(whole)
    for name, value in load_file(whole / "last" / "model.safetensors").items():
        assert torch.equal(load_file(killed / "last" / "model.safetensors")[name], value), name


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from rtmc.cli import main

    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    told = CliRunner().invoke(main, ["train", "tiny", "-o", str(folder)])
    assert told.exit_code == 2
    assert "is not empty and holds no run" in told.output
    assert (folder / "notes.txt").read_text() == "mine"
