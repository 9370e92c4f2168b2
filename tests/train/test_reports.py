"""Metrics go to TensorBoard as well, through transformers."""

from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the extra train")
pytest.importorskip("tensorboardX", reason="needs tensorboardX")

from scripted_training import config_of, trainer_of


def test_every_metric_of_a_step_reaches_tensorboard(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, config_of(output__report_to=["tensorboard"]))
    trainer.train()
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("events.out.tfevents.*"))
    logged = next(line for line in trainer.state.log_history if "success" in line)
    names = [name for name, value in logged.items() if isinstance(value, float)]
    assert {"success", "winners_negative", "overlap/paper", "credit_share", "loss"} <= {*names}
    assert [name for name in names if f"train/{name}".encode() not in written] == []
