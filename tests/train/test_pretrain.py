"""The start checkpoint: how it is made, and what the one that ships is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the extra train")

import msgspec
import torch
from safetensors.torch import load_file

from rtmc.agent.models.hf import HF, find
from rtmc.agent.models.shorthand import FILE, Shorthand
from rtmc.agent.tasks.tiny import Knobs
from rtmc.agent.tasks.tiny.program import MODULES, NAMES
from rtmc.errors import OptionError
from rtmc.train.tiny import pretrain as pretraining
from rtmc.train.tiny.pretrain import GOOD, STAGES, Stage, pretrain

SIMPLE = Stage(1.0, Knobs(modules=1, functions=1, lines=1, depth=0), GOOD)


def test_it_learns_the_form_of_a_turn_and_repeats_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        pretrain(tmp_path / name, steps=100, batch=8, stages=(SIMPLE,))
    first, second = capsys.readouterr().out.splitlines()
    assert first.split("min")[1] == second.split("min")[1]
    assert float(first.split("what is said ")[1].split(",")[0]) < 4.0  # of a guess: 5.4
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert all(torch.equal(value, two[name]) for name, value in one.items())


def test_it_goes_on_from_the_end_of_a_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = (msgspec.structs.replace(SIMPLE, until=0.5), SIMPLE)
    given = {"steps": 8, "batch": 2, "stages": stages}
    pretrain(tmp_path / "whole", **given)
    batches = pretraining._batches

    def stopped(*args: Any) -> Iterator[Any]:
        for step, *rest in batches(*args):
            if step == 6:
                raise KeyboardInterrupt
            yield step, *rest

    monkeypatch.setattr(pretraining, "_batches", stopped)
    with pytest.raises(KeyboardInterrupt):
        pretrain(tmp_path / "two", **given)
    monkeypatch.undo()
    with pytest.raises(OptionError, match="other options"):
        pretrain(tmp_path / "two", **given | {"seed": 1})
    pretrain(tmp_path / "two", **given)
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "two"))
    assert all(torch.equal(value, two[name]) for name, value in one.items())
    assert not (tmp_path / "two" / pretraining.KEPT).exists()


def test_the_stages_end_at_the_last_step() -> None:
    assert STAGES[-1].until == 1.0
    assert [stage.until for stage in STAGES] == sorted(stage.until for stage in STAGES)


def test_the_shipped_one_is_small_and_has_the_words_of_the_task() -> None:
    folder = Path(find("tiny")[0])
    assert (folder / "model.safetensors").stat().st_size <= 4 << 20
    assert Shorthand.load(folder).words == Shorthand.of([*MODULES, *NAMES]).words
    assert (folder / FILE).exists()
    model = HF.load("tiny").model
    assert sum(value.numel() for value in model.parameters()) < 2_000_000
