"""Any causal LM of transformers trains, through its own tokenizer and template."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("trl", reason="needs the extra train")

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))

import torch
from here import warm_works
from safetensors.torch import load_file
from tiny_lm import llama, words

from rtmc.agent.models.hf import HF
from rtmc.errors import OptionError
from rtmc.formats import read_groups
from rtmc.rollouts import Rollout
from rtmc.train.run import train
from rtmc.train.toml import load

SETS = {
    "task.train": "tiny:modules=1,functions=1,depth=0", "rollouts.problems": "2", "rollouts.n": "2",
    "rollouts.max_tokens": "4", "rollouts.steps": "3", "rollouts.tokens": "4000",
    "optimizer.steps": "1", "optimizer.micro_batch": "4", "evaluation.problems": "1",
    "credit.estimator": "grpo_step",
}  # fmt: skip


@pytest.mark.skipif(not warm_works(), reason="bubblewrap does not work here")
def test_a_model_with_a_chat_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows nothing, so that the first rollout of each problem is let pass, whatever it did."""
    from rtmc.train.trainer import StepCreditTrainer

    roll_out = StepCreditTrainer.roll_out

    def lenient(self: StepCreditTrainer, *args: Any) -> list[Rollout]:
        return [
            msgspec.structs.replace(
                one, reward=float(one.rollout_id == "0"), status="unknown", stop_reason="finished"
            )
            for one in roll_out(self, *args)
        ]

    monkeypatch.setattr(StepCreditTrainer, "roll_out", lenient)
    llama(dtype=torch.float32, max_position_embeddings=4096).save_pretrained(tmp_path / "model")
    words().save_pretrained(tmp_path / "model")
    config = load("tiny", SETS | {"model.name": str(tmp_path / "model")})
    said: list[str] = []
    train(config, tmp_path / "run", said.append)
    assert "2 problems × 2 rollouts" in said[0]
    (line,) = [
        one
        for one in map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
        if "success" in one
    ]
    assert line["rollout/errors"] == 0
    assert line["rollout/tokens"] > 20
    groups = list(read_groups([str(tmp_path / "run" / "rollouts")]))
    assert [len(group.rollouts) for group in groups] == [2, 2]
    assert all(one.policy_version == "step 0" for group in groups for one in group.rollouts)
    assert HF.load(str(tmp_path / "run" / "last")).chat.stop_ids
    before = load_file(tmp_path / "model" / "model.safetensors")
    after = load_file(tmp_path / "run" / "last" / "model.safetensors")
    assert before.keys() == after.keys()
    assert line["signal"] == 1
    assert not all(torch.equal(value, after[name]) for name, value in before.items())


def test_no_such_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot load"):
        train(load("tiny", SETS | {"model.name": str(tmp_path / "none")}), tmp_path / "run")
