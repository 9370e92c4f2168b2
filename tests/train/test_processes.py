"""Two processes with a group split between them learn what one does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the extra train")

import torch
from scripted_training import saved_model
from transformers import LlamaForCausalLM

SCRIPT = str(Path(__file__).with_name("two_processes.py"))


@pytest.mark.parametrize("loss", ["dapo", "grpo"])
def test_a_group_split_across_two_processes_equals_one(tmp_path: Path, loss: str) -> None:
    env = os.environ | {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    states = []
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        saved_model(folder / "model")
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone",
                  f"--nproc_per_node={processes}", SCRIPT, str(folder), loss]  # fmt: skip
        ran = subprocess.run(launch, env=env, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr[-3000:]
        states.append(torch.load(folder / f"after-{processes}.pt"))
    start = LlamaForCausalLM.from_pretrained(tmp_path / "1" / "model").state_dict()
    assert any(not torch.equal(states[0][name], value) for name, value in start.items())
    for name, value in states[0].items():
        torch.testing.assert_close(states[1][name], value, msg=name)
    one, two = (json.loads((tmp_path / n / "logged.json").read_text()) for n in ("1", "2"))
    for name in ("entropy", "kl", "grad_norm"):  # of the two steps with signal
        assert [line[name] for line in two[:2]] == pytest.approx(
            [line[name] for line in one[:2]], rel=1e-4
        )
