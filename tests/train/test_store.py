"""What a run leaves on disk, and how it finds its way back."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("trl", reason="needs the extra train")

from scripted_training import LIVE, config_of, rollout_of, trainer_of

from rtmc.credit import credit
from rtmc.errors import FormatError, OptionError, OutputError
from rtmc.formats import read_groups
from rtmc.rollouts import Group
from rtmc.train.metrics import metrics_of
from rtmc.train.signal import signal_of
from rtmc.train.store import Store


def group(problem: str, passing: tuple[int, ...]) -> Group:
    made = [rollout_of(problem, k, LIVE[k], float(k in passing)) for k in range(4)]
    return Group(problem, tuple(made))


def test_metrics_of_two_groups_by_hand() -> None:
    config = config_of().credit.made()
    credited = credit([group("p0", (0, 3)), group("p1", ())], config)
    found = metrics_of(credited, signal_of(credited), {"credit": 0.5})
    assert found["success"] == 2 / 8
    assert found["groups/mixed"] == found["groups/none_passed"] == 1 / 2
    assert found["signal"] == 1 / 2
    assert (found["groups/all_passed"], found["groups/none_passed"]) == (0, 1 / 2)
    assert found["rollout/steps"] == 2
    assert found["rollout/tokens"] == 9
    assert found["calls/malformed"] == found["calls/none"] == found["rollout/errors"] == 0
    assert found["seconds/credit"] == 0.5
    # of each group's later steps (one a rollout), the two after ls that end in cat a meet no more
    # than the one that ends in pytest: three rollouts came by "after ls", one by "after pwd"
    assert found["overlap/paper"] == 6 / 8
    own = credited.advantages[:4]
    winners = [a for k in (0, 3) for a in own[k]]
    assert found["winners_negative"] == sum(a < 0 for a in winners) / 4
    assert found["advantage/mean"] == pytest.approx(sum(map(sum, own)) / 8)
    # GRPO gives ±1 to every token; each of a rollout's two steps has as many tokens as the other's
    signed = sum(a if k in (0, 3) else -a for k in range(4) for a in own[k])
    squares = sum(a * a for of in own for a in of)
    assert found["advantage/cosine_to_grpo"] == pytest.approx(signed / (8 * squares) ** 0.5)
    assert 0 < found["advantage/cosine_to_grpo"] < 0.999


def test_grpo_is_like_itself_and_nothing_is_like_nothing() -> None:
    config = config_of(credit__estimator="grpo").credit.made()
    passing = group("p0", (0, 1, 3))
    cut = msgspec.structs.replace(passing.rollouts[3], reward=None, status="unknown")
    groups = [Group("p0", (*passing.rollouts[:3], cut)), group("p1", (2,)), group("p2", ())]
    credited = credit(groups, config)
    found = metrics_of(credited, signal_of(credited), {})
    assert found["advantage/cosine_to_grpo"] == pytest.approx(1)
    credited = credit([group("p2", ())], config)
    assert "advantage/cosine_to_grpo" not in metrics_of(credited, signal_of(credited), {})


def test_a_run_keeps_the_first_steps_the_last_and_some_between(tmp_path: Path) -> None:
    store = Store(tmp_path, config_of(output__rollouts=3, optimizer__steps=8))
    for step in range(1, 9):
        store.keep(step, group("p0", (0,)).rollouts)
    kept = sorted(path.name for path in (tmp_path / "rollouts").iterdir())
    assert kept == [f"step-0000{step}.jsonl.gz" for step in (1, 4, 7, 8)]
    (read,) = read_groups([str(tmp_path / "rollouts" / kept[0])])
    assert [one.rollout_id for one in read.rollouts] == ["0", "1", "2", "3"]


def test_going_on_drops_what_came_after_the_last_whole_checkpoint(tmp_path: Path) -> None:
    config = config_of(optimizer__steps=8)
    store = Store(tmp_path, config)
    for step in range(1, 6):
        store.log({"step": step, "success": 0.5})
        store.keep(step, group("p0", (0,)).rollouts)
    for step in (2, 4):
        (tmp_path / f"checkpoint-{step}").mkdir()
    store.complete(2)
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 6, "succ')  # killed while writing
    again = Store(tmp_path, config)
    assert again.go_on() == tmp_path / "checkpoint-2"
    assert not (tmp_path / "checkpoint-4").exists()
    assert [line["step"] for line in again.metrics()] == [1, 2]
    kept = sorted(path.name for path in (tmp_path / "rollouts").iterdir())
    assert kept == ["step-00001.jsonl.gz", "step-00002.jsonl.gz"]


def test_a_run_without_a_checkpoint_begins_anew(tmp_path: Path) -> None:
    store = Store(tmp_path, config_of())
    store.log({"step": 0, "eval_success": 0.5})
    assert Store(tmp_path, config_of()).go_on() is None
    assert store.metrics() == []


def test_other_settings_are_refused_by_name_but_for_those_that_may_change(tmp_path: Path) -> None:
    Store(tmp_path, config_of(credit__estimator="grpo"))
    store = Store(tmp_path, config_of())  # the one before has not begun
    store.log({"step": 1, "success": 0.5})
    Store(tmp_path, config_of(optimizer__steps=5, output__rollouts=1))
    with pytest.raises(OptionError, match=r"another optimizer\.learning_rate;"):
        Store(tmp_path, config_of(optimizer__learning_rate=0.5))


def crowned(store: Store, success: float, step: int) -> None:
    store.coming.mkdir()
    (store.coming / "policy").write_text(str(step))
    store.crown(success, step)


def test_the_best_is_the_first_of_the_highest(tmp_path: Path) -> None:
    store = Store(tmp_path, config_of())
    for step, success in enumerate((0.1, 0.3, 0.3, 0.2)):
        if store.is_best(success):
            crowned(store, success, step)
    again = Store(tmp_path, config_of())
    assert again.best_step == 1
    assert (again.best / "policy").read_text() == "1"
    assert not again.is_best(0.3)
    assert sorted(path.name for path in tmp_path.glob("best*")) == ["best", "best.json"]


@pytest.mark.parametrize("moment", range(5))
def test_a_kill_while_a_better_policy_takes_its_place_loses_none(
    tmp_path: Path, moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After saving, after each of two renames, after the numbers are written, at the end."""
    store = Store(tmp_path, config_of())
    crowned(store, 0.1, 1)
    if moment == 0:
        store.coming.mkdir()
    else:
        done = iter(range(1, 5))

        def then(do: Any) -> Any:
            def doing(*args: Any, **options: Any) -> Any:
                out = do(*args, **options)
                if next(done) == moment:
                    raise KeyboardInterrupt
                return out

            return doing

        monkeypatch.setattr(Path, "replace", then(Path.replace))
        monkeypatch.setattr(shutil, "rmtree", then(lambda *_, **__: None))
        with pytest.raises(KeyboardInterrupt):
            crowned(store, 0.2, 2)
        monkeypatch.undo()
    again = Store(tmp_path, config_of())
    assert (again.best / "policy").read_text() == ("1" if moment < 2 else "2")
    assert again.best_step == (1 if moment < 3 else 2)
    if moment < 3:
        assert again.is_best(0.2)  # is evaluated again, and takes its place then
        crowned(again, 0.2, 2)
    assert (again.best / "policy").read_text() == "2"


@pytest.mark.parametrize(
    ("name", "content"),
    [("config.json", "{"), ("metrics.jsonl", "[1]\n"), ("best.json", "x")],
)
def test_what_is_damaged_is_named(tmp_path: Path, name: str, content: str) -> None:
    Store(tmp_path, config_of()).log({"step": 1})
    (tmp_path / name).write_text(content)
    with pytest.raises(FormatError, match=name):
        Store(tmp_path, config_of())


def test_the_best_of_a_run_is_not_taken_up_by_another(tmp_path: Path) -> None:
    """Killed after the first evaluation, when no metrics are kept yet."""
    crowned(Store(tmp_path, config_of()), 0.5, 0)
    with pytest.raises(OptionError, match="another"):
        Store(tmp_path, config_of(credit__estimator="grpo"))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(OptionError, match="is a file"):
        Store(tmp_path / "run", config_of())


def test_what_is_no_run_is_left_alone(tmp_path: Path) -> None:
    """A folder of a model has a config.json of its own; -o run/best is a slip that happens."""
    model = b'{"architectures": ["LlamaForCausalLM"], "hidden_size": 128}'
    (tmp_path / "config.json").write_bytes(model)
    with pytest.raises(OptionError, match="holds no run"):
        Store(tmp_path, config_of())
    assert (tmp_path / "config.json").read_bytes() == model
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("left", [(), (".lock",), (".lock", ".config.json.17.tmp")])
def test_killed_before_the_settings_are_written(tmp_path: Path, left: tuple[str, ...]) -> None:
    for name in left:
        (tmp_path / name).touch()
    Store(tmp_path, config_of())
    assert (tmp_path / "config.json").exists()


def test_settings_that_cannot_be_written_are_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / f".config.json.{os.getpid()}.tmp").mkdir()
    with pytest.raises(OutputError, match=r"config\.json: Is a directory; choose another -o"):
        Store(tmp_path, config_of())
    (tmp_path / "config.json").mkdir()
    with pytest.raises(OptionError, match="holds no run"):
        Store(tmp_path, config_of())


HOLDING = """
import sys, time
from pathlib import Path
import msgspec
from rtmc.train.config import TrainConfig
from rtmc.train.store import Store

folder = Path(sys.argv[1])
config = msgspec.json.decode(sys.argv[2], type=TrainConfig)
store = Store(folder, config)
print("there", flush=True)
time.sleep(60)
"""


def test_two_processes_do_not_train_in_one_folder(tmp_path: Path) -> None:
    config = msgspec.json.encode(config_of()).decode()
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path), config], stdout=subprocess.PIPE
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"there\n"
        with pytest.raises(OptionError, match="another process is training in"):
            Store(tmp_path, config_of())
        Store(tmp_path, config_of(), writes=False)  # the other processes of one training
        other.kill()
    Store(tmp_path, config_of())


def test_lora_moves_the_adapter_alone_and_is_loaded_again(tmp_path: Path) -> None:
    import torch

    from rtmc.agent.models.hf import HF

    config = config_of(model__lora={"r": 4, "target_modules": "all-linear"})
    trainer = trainer_of(tmp_path, config)
    base = {n: p.clone() for n, p in trainer.model.named_parameters() if not p.requires_grad}
    assert base
    trainer.train()
    for name, value in trainer.model.named_parameters():
        if name in base:
            assert torch.equal(value, base[name])
    assert any(p.abs().sum() > 0 for n, p in trainer.model.named_parameters() if "lora_B" in n)
    trainer.save_model(str(tmp_path / "last"))
    assert json.loads((tmp_path / "last" / "adapter_config.json").read_text())["r"] == 4
    loaded = HF.load(str(tmp_path / "last"))
    ids = torch.tensor([[5, 6, 7]])
    trainer.model.eval()
    torch.testing.assert_close(loaded.model(ids).logits, trainer.model(ids).logits)
