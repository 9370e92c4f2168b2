"""Advantages of steps reach the loss, token by token; groups without signal do not."""

import copy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra train")

import msgspec
import numpy as np
import torch
from scripted_training import LIVE, Scripted, config_of, rollout_of, trainer_of

from rtmc.credit import credit
from rtmc.rollouts import Group, Rollout


def batch_of(trainer: Scripted) -> dict[str, Any]:
    trainer.model.train()
    size = trainer._config.rollouts.problems * trainer._config.rollouts.n
    return trainer._generate_and_score_completions([{"prompt": "0"}] * size)


def test_every_token_of_a_step_gets_its_advantage_and_observations_get_0(tmp_path: Path) -> None:
    config = config_of()
    out = batch_of(trainer_of(tmp_path, config))
    advantages, mask = out["advantages"], out["tool_mask"]
    assert advantages.shape == out["completion_ids"].shape == (8, 6)
    order = [row for row in range(8) if mask[row].any()]
    made = [rollout_of("p0", k, LIVE[k], float(k in (0, 3))) for k in range(4)]
    expected = credit(Group("p0", tuple(made)), config.credit.made()).advantages
    for row, of_steps in zip(order, expected, strict=True):
        by_hand = [*[of_steps[0]] * 2, 0, *[of_steps[1]] * 2, 0]
        np.testing.assert_allclose(advantages[row].numpy(), by_hand, atol=1e-6)
        assert mask[row].tolist() == [1, 1, 0, 1, 1, 0]
    assert len({float(a) for a in advantages.flatten()}) > 4  # not one number a rollout
    assert out["num_items_in_batch"] == 16


class EndsAtOnce(Scripted):
    """The sandbox of a rollout ends during its first call: it was shown much, and did nothing."""

    def roll_out(self, task: Any, places: Any, seed: int) -> list[Rollout]:
        made = super().roll_out(task, places, seed)
        made[5] = msgspec.structs.replace(
            made[5], steps=(), reward=None, stop_reason="error: the sandbox ended",
            sequence_lengths=(300,), token_ids=((1,) * 300,), logprobs=((0.0,) * 300,),
        )  # fmt: skip
        return made


def test_a_rollout_without_a_step_is_masked(tmp_path: Path) -> None:
    out = batch_of(trainer_of(tmp_path, config_of(), EndsAtOnce))
    assert out["tool_mask"].any(1).tolist() == [False] * 4 + [True, False, True, True]
    assert out["advantages"].shape == (8, 6)


def gradient(trainer: Scripted, loss: torch.Tensor) -> torch.Tensor:
    trainer.model.zero_grad()
    loss.backward()
    return torch.cat([p.grad.flatten() for p in trainer.model.parameters()])


def by_hand(trainer: Scripted, out: dict[str, Any], advantages: torch.Tensor) -> torch.Tensor:
    """Take Σ A log π over the sampled tokens of groups with signal, divided by their number."""
    ids = torch.cat([out["prompt_ids"], out["completion_ids"]], 1)
    seen = torch.cat([out["prompt_mask"], out["completion_mask"]], 1)
    logits = trainer.model(input_ids=ids, attention_mask=seen).logits[:, :-1]
    logprobs = logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)[:, -6:]
    return -(advantages * logprobs * out["tool_mask"]).sum() / 16


def test_the_gradient_is_that_of_a_hand_calculation_and_not_that_of_scalar_grpo(
    tmp_path: Path,
) -> None:
    trainer = trainer_of(tmp_path, config_of())
    out = batch_of(trainer)
    trainer.current_gradient_accumulation_steps = 1
    got = gradient(trainer, trainer.compute_loss(trainer.model, out))
    torch.testing.assert_close(got, gradient(trainer, by_hand(trainer, out, out["advantages"])))
    live = out["tool_mask"].any(1)
    scalar = torch.zeros(8, 1)
    scalar[live] = torch.tensor([[1.0], [-1.0], [-1.0], [1.0]])
    of_grpo = gradient(trainer, by_hand(trainer, out, scalar))
    assert torch.nn.functional.cosine_similarity(got, of_grpo, dim=0) < 0.99


class OneLives(Scripted):
    live = frozenset(["p0"])


@pytest.mark.parametrize("loss", ["grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo"])
@pytest.mark.parametrize("kl", [0.0, 0.1])
def test_a_group_without_signal_makes_no_difference(tmp_path: Path, loss: str, kl: float) -> None:
    """The gradient with a uniform group beside it is that without: in no loss, KL included."""

    def of(problems: int, micro: int) -> torch.Tensor:
        config = config_of(
            rollouts__problems=problems, optimizer__loss=loss, optimizer__kl=kl,
            optimizer__micro_batch=micro,
        )  # fmt: skip
        trainer = trainer_of(tmp_path / f"{problems}-{micro}", config, OneLives)
        if kl:
            with torch.no_grad():
                for one in trainer.model.parameters():
                    one.mul_(1.1)  # away from the reference
        out = batch_of(trainer)
        trainer.current_gradient_accumulation_steps = problems * 4 // micro
        trainer.model.zero_grad()
        for start in range(0, problems * 4, micro):
            part = {
                name: value[start : start + micro]
                if isinstance(value, torch.Tensor) and value.dim()
                else value
                for name, value in out.items()
            }
            trainer.compute_loss(trainer.model, part).backward()
        return torch.cat([p.grad.flatten() for p in trainer.model.parameters()])

    alone = of(1, 4)
    assert alone.norm() > 1e-4
    torch.testing.assert_close(of(2, 8), alone)
    if loss != "bnpo":  # which is a mean of means
        torch.testing.assert_close(of(2, 4), alone)
        torch.testing.assert_close(of(7, 2), alone)  # a share of live rollouts below one of a pair


def test_what_stands_behind_the_last_trained_token_is_not_fed(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, config_of())
    out = batch_of(trainer)
    trainer.current_gradient_accumulation_steps = 1
    expected = gradient(trainer, trainer.compute_loss(trainer.model, out))
    width = out["tool_mask"].shape[1]
    longer = {
        name: torch.nn.functional.pad(value, (0, 50))
        if isinstance(value, torch.Tensor) and value.shape[1:] == (width,)
        else value
        for name, value in out.items()
    }
    fed = []
    trainer.model.model.register_forward_pre_hook(
        lambda module, args, kwargs: fed.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    got = gradient(trainer, trainer.compute_loss(trainer.model, longer))
    torch.testing.assert_close(got, expected)
    # two turns of two tokens, an observation between them; the one at the end is cut as well
    assert fed == [out["prompt_ids"].shape[1] + 5]


class AllFail(Scripted):
    live = frozenset()


def test_where_no_group_has_signal_the_weights_do_not_move(tmp_path: Path) -> None:
    config = config_of(optimizer__kl=0.5, optimizer__micro_batch=4)
    trainer = trainer_of(tmp_path, config, AllFail)
    with torch.no_grad():
        for one in trainer.model.parameters():
            one.mul_(1.1)
    before = copy.deepcopy(trainer.model.state_dict())
    trainer.train()
    for name, value in trainer.model.state_dict().items():
        assert torch.equal(value, before[name]), name


class FirstOnly(Scripted):
    """Only the first batch has signal."""

    def roll_out(self, task: Any, places: Any, seed: int) -> list[Rollout]:
        self.live = frozenset(["p0"] if seed == 0 else [])
        return super().roll_out(task, places, seed)


@pytest.mark.parametrize("micro", [4, 8])
def test_momentum_does_not_move_them_either(tmp_path: Path, micro: int) -> None:
    ends = {}
    for steps in (1, 3):
        config = config_of(optimizer__micro_batch=micro, optimizer__steps=steps)
        trainer = trainer_of(tmp_path / str(steps), config, FirstOnly)
        trainer.train()
        ends[steps] = trainer.model.state_dict()
        logged = [line for line in trainer.state.log_history if "loss" in line]
        assert ["entropy" in line for line in logged] == [True, False, False][:steps]
    assert all(torch.equal(value, ends[3][name]) for name, value in ends[1].items())


def test_where_some_have_they_do(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, config_of())
    before = copy.deepcopy(trainer.model.state_dict())
    trainer.train()
    assert any(not torch.equal(v, before[n]) for n, v in trainer.model.state_dict().items())
