"""Progress flags: how the work stands before each step, and which estimators get to know."""

from typing import Any

import numpy as np
import pytest

import rtmc
from rtmc.advantages import RTMC, ChainGAE, GraphGAE
from rtmc.layout import lay_out, vote
from rtmc.outcomes import judge
from rtmc.rollouts import Group, Rollout, Step, ToolCall
from rtmc.signatures import CodingSigner, KeySigner, Signatures
from rtmc.signatures.states import STANDINGS, Progress

UNCHANGED, UNTESTED, PASSED, FAILED = range(4)


def bash(command: str, output: str = "", exit_code: int | None = None) -> Step:
    return Step((ToolCall("bash", {"command": command}, output=output, exit_code=exit_code),))


def editor(command: str, output: str = "", path: str = "/repo/core.py", **arguments: Any) -> Step:
    given = {"command": command, "path": path, **arguments}
    return Step((ToolCall("str_replace_editor", given, output=output),))


LOOK = bash("ls")
EDIT = editor("str_replace", "The file /repo/core.py has been edited.", old_str="a", new_str="b")
AGAIN = editor("str_replace", "The file /repo/core.py has been edited.", old_str="b", new_str="c")
REFUSED = editor(
    "str_replace",
    "No replacement was performed, old_str `x` did not appear verbatim in /repo/core.py.",
    old_str="x",
    new_str="y",
)
CREATE = editor(
    "create", "File created successfully at: /repo/new.py", "/repo/new.py", file_text="x"
)
UNDO = editor("undo_edit", "Last edit to /repo/core.py undone successfully.")
PASS = bash("python -m pytest -q", "== 3 passed in 0.1s ==", 0)
FAIL = bash("python -m pytest -q", "== 1 failed, 2 passed in 0.1s ==", 1)
ERROR = bash("python -m pytest -q", "ERROR: file or directory not found: x", 4)
UNSAID = bash("python -m pytest -q | head -3", "...")
REFUSED_BASH = bash("sed -i s/a/b/ nowhere.py", "sed: can't read nowhere.py: No such file", 2)


def standings(*steps: Step) -> list[int]:
    """Say how the work stands before each step, and after the last."""
    signed = CodingSigner().steps(Rollout("p", "r", (*steps, LOOK), root="/repo"))
    return [step.standing for step in signed]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((), []),
        ((LOOK, PASS, FAIL), [UNCHANGED, UNCHANGED, UNCHANGED]),  # of a test before any change
        ((EDIT,), [UNTESTED]),
        ((EDIT, LOOK), [UNTESTED, UNTESTED]),
        ((EDIT, PASS), [UNTESTED, PASSED]),
        ((EDIT, FAIL), [UNTESTED, FAILED]),
        ((EDIT, ERROR), [UNTESTED, FAILED]),
        ((EDIT, UNSAID), [UNTESTED, UNTESTED]),  # nobody knows what it said
        ((EDIT, PASS, UNSAID), [UNTESTED, PASSED, PASSED]),
        ((EDIT, FAIL, PASS), [UNTESTED, FAILED, PASSED]),
        ((EDIT, PASS, AGAIN), [UNTESTED, PASSED, UNTESTED]),
        ((EDIT, PASS, LOOK), [UNTESTED, PASSED, PASSED]),
        ((CREATE,), [UNTESTED]),
        ((CREATE, FAIL), [UNTESTED, FAILED]),
        ((REFUSED,), [UNCHANGED]),
        ((REFUSED_BASH,), [UNCHANGED]),
        ((EDIT, PASS, REFUSED), [UNTESTED, PASSED, PASSED]),
        ((EDIT, UNDO), [UNTESTED, UNCHANGED]),
        ((EDIT, FAIL, UNDO), [UNTESTED, FAILED, UNCHANGED]),
        ((EDIT, AGAIN, UNDO), [UNTESTED, UNTESTED, UNTESTED]),
        ((EDIT, PASS, bash("git checkout -- core.py", exit_code=0)), [UNTESTED, PASSED, UNCHANGED]),
        ((CREATE, bash("rm new.py", exit_code=0)), [UNTESTED, UNCHANGED]),
        ((bash("rm core.py", exit_code=0),), [UNTESTED]),
        ((EDIT, bash("echo x >> core.py && pytest", "== 1 passed in 0.1s ==", 0)),
         [UNTESTED, PASSED]),
    ],
)  # fmt: skip
def test_how_the_work_stands(steps: tuple[Step, ...], expected: list[int]) -> None:
    assert standings(*steps) == [UNCHANGED, *expected]


def test_of_a_restored_file_no_older_test_is_left() -> None:
    """The test was of the change that is gone: a new change is untested."""
    assert standings(EDIT, PASS, UNDO, AGAIN)[-2:] == [UNCHANGED, UNTESTED]


def test_one_of_the_standings_has_a_name() -> None:
    assert STANDINGS == ("unchanged", "untested", "passed", "failed")
    assert STANDINGS[Progress().standing] == "unchanged"


@pytest.mark.parametrize("level", ["root", "full", "content,coarse,paper"])
def test_a_step_has_one_flag_of_four_at_every_level(level: str) -> None:
    rollouts = [Rollout("p", "r", (EDIT, PASS, AGAIN, LOOK)), Rollout("p", "q"),
                Rollout("p", "s", (LOOK, CREATE, FAIL, LOOK))]  # fmt: skip
    progress = CodingSigner(tuple(level.split(","))).sign(rollouts).progress
    assert progress is not None
    assert progress.dtype == bool
    assert progress.tolist() == np.eye(4, dtype=bool)[[0, 1, 2, 1, 0, 0, 1, 3]].tolist()


def test_without_steps_there_are_four_flags_of_none() -> None:
    progress = CodingSigner().sign([Rollout("p", "r")]).progress
    assert progress is not None
    assert progress.shape == (0, 4)


# --- laid out ----------------------------------------------------------------------------------

KEYS = KeySigner(lambda rollout: [("s", "a")] * len(rollout.steps))
CODING = CodingSigner()


class Mixed:
    """Give flags to the problem p alone."""

    levels = ("custom",)

    def sign(self, rollouts: Any) -> Signatures:
        return (CODING if rollouts[0].problem_id == "p" else KEYS).sign(rollouts)


def groups() -> list[Group]:
    return [
        Group(
            name,
            (
                Rollout(name, "a", (EDIT, PASS, LOOK), 1.0),
                Rollout(name, "b", (LOOK, EDIT), None),  # has no vote
                Rollout(name, "c", (CREATE, FAIL, LOOK), 0.0),
            ),
        )
        for name in "pq"
    ]


def laid_out(signer: Any, estimator: Any) -> rtmc.batch.Batch:
    config, given = rtmc.Config(estimator=estimator), groups()
    signed = [signer.sign(group.rollouts) for group in given]
    verdicts = [judge(rollout) for group in given for rollout in group.rollouts]
    return vote(given, signed, verdicts, lay_out(given, signed), config)[0]


@pytest.mark.parametrize("estimator", [GraphGAE(), ChainGAE()])
def test_flags_are_laid_out_for_those_who_vote(estimator: Any) -> None:
    progress = laid_out(CODING, estimator).progress
    assert progress is not None
    assert progress.dtype == np.float64
    assert progress.tolist() == np.eye(4)[[0, 1, 2, 0, 1, 3] * 2].tolist()


def test_flags_that_nobody_reads_are_not_laid_out() -> None:
    assert laid_out(CODING, RTMC()).progress is None


@pytest.mark.parametrize("signer", [KEYS, Mixed()])
def test_where_a_problem_has_no_flags_there_are_none(signer: Any) -> None:
    assert KEYS.sign(groups()[0].rollouts).progress is None
    assert laid_out(signer, ChainGAE()).progress is None


@pytest.mark.parametrize("estimator", [GraphGAE(), ChainGAE()])
def test_without_flags_the_estimators_do_without(estimator: Any) -> None:
    config = rtmc.Config(estimator=estimator)
    with_keys, mixed = (rtmc.credit(groups(), config, signer) for signer in (KEYS, Mixed()))
    for one in (*with_keys.rollouts[::3], *mixed.rollouts[::3]):
        assert np.isfinite(one.advantages).all()
        assert one.advantages.any()


def test_no_group_has_no_flags() -> None:
    assert rtmc.credit([], rtmc.Config(estimator=ChainGAE())).batch.progress is None


class Own:
    """Give each problem in turn its flags."""

    levels = ("custom",)

    def __init__(self, *progress: np.ndarray | None) -> None:
        self.progress = list(progress)

    def sign(self, rollouts: Any) -> Signatures:
        of = KEYS.sign(rollouts)
        return Signatures(
            of.states, of.actions, of.validated, of.state_keys, of.action_keys,
            progress=self.progress.pop(0),
        )  # fmt: skip


def test_flags_of_a_signer_of_ones_own_are_read() -> None:
    """They may be any numbers, a row a step."""

    config = rtmc.Config(estimator=ChainGAE())
    numbers = np.arange(16.0).reshape(8, 2)
    told = rtmc.credit(groups(), config, Own(numbers, numbers))
    assert told.batch.progress is not None
    assert told.batch.progress.tolist() == numbers[[0, 1, 2, 5, 6, 7] * 2].tolist()
    untold = rtmc.credit(groups(), config, Own(None, None))
    assert any(
        not np.array_equal(one, other, equal_nan=True)
        for one, other in zip(told.advantages, untold.advantages, strict=True)
    )


SHAPE = "expected progress of shape (8, 2), a row a step, all finite numbers; the signer gave shape"


@pytest.mark.parametrize(
    ("progress", "message"),
    [
        ((np.zeros((7, 2)), np.zeros((8, 2))), f"problem p: {SHAPE} (7, 2)"),
        ((np.zeros((8, 2)), np.zeros((9, 2))), f"problem q: {SHAPE} (9, 2)"),
        ((np.zeros((8, 2)), np.zeros((8, 3))), f"problem q: {SHAPE} (8, 3)"),
        ((np.zeros((8, 2)), np.zeros(8)), f"problem q: {SHAPE} (8,)"),
        ((np.zeros((8, 2)), np.full((8, 2), np.nan)),
         f"problem q: {SHAPE} (8, 2), with some that are not finite"),
    ],
)  # fmt: skip
def test_flags_that_do_not_fit_are_refused(progress: Any, message: str) -> None:
    with pytest.raises(rtmc.RtmcError) as refused:
        rtmc.credit(groups(), rtmc.Config(estimator=ChainGAE()), Own(*progress))
    assert str(refused.value) == message


# --- cut off -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "incomplete", "expected"),
    [
        (GraphGAE(), "mask", [False, True]),
        (ChainGAE(), "mask", [False, True]),
        (ChainGAE(), "fail", [False, False]),
        (ChainGAE(), "exclude", [False]),
        (RTMC(), "mask", None),
    ],
)
def test_who_was_cut_off_is_laid_out_where_it_is_masked(
    estimator: Any, incomplete: Any, expected: list[bool] | None
) -> None:
    group = Group(
        "p",
        (
            Rollout("p", "a", (LOOK,), 1.0),
            Rollout("p", "b", (LOOK, EDIT), 0.4, "incomplete"),
            Rollout("p", "c", (LOOK,), None),
        ),
    )
    batch = rtmc.credit(group, rtmc.Config(estimator=estimator, incomplete=incomplete)).batch
    assert (None if batch.cut is None else batch.cut.tolist()) == expected
    assert batch.outcomes.tolist() == [1.0, 0.0][: len(batch.outcomes)]
