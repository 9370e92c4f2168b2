"""Nothing an agent can write breaks a signature, and signatures depend on nothing else."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rtmc.rollouts import Rollout, Step, ToolCall
from rtmc.signatures import LEVELS, CodingSigner
from rtmc.signatures.tools import _HANDLERS

TEXT = st.text(max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 500) | TEXT | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
NAMES = (
    "command path file_path view_range old_str new_str old_string new_string insert_line text line "
    "edits content file_text pattern query offset limit input code is_input"
).split()
WORDS = st.sampled_from(
    "cd cat sed -n -i 1,5p 's/a/b/' head tail -20 grep -rn x find . -name '*.py' -exec {} \\; | || "
    "&& ; & > >> < 2>&1 <<EOF \nEOF\n python -m pytest a.py::b -c 'x' pip install git checkout -- "
    'rm mv cp tee xargs timeout 5 sudo env A=b bash -lc "ls" ( ) for f in do done if then fi $x $( '
    "` ' \" # \n echo submit awk 'NR>=2' make test ./run ~ - .. / //".split(" ")
)
COMMANDS = st.lists(WORDS, max_size=14).map(" ".join) | TEXT
TOOLS = st.sampled_from([*sorted(_HANDLERS), "bash", "execute_bash", "Bash", "mcp__x__y", ""])
OUTPUTS = (
    st.none()
    | TEXT
    | st.sampled_from(
        [
            "== 1 failed, 2 passed in 0.1s ==",
            "ERROR: no",
            "cat: a.py: No such file or directory",
            "1:x",
        ]
    )
)
CALLS = st.builds(
    ToolCall,
    TOOLS,
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4)
    | st.builds(lambda command: {"command": command}, COMMANDS)
    | TEXT,
    OUTPUTS,
    st.none() | st.integers(-2, 130),
    st.none() | st.booleans(),
    st.booleans(),
    st.none() | st.sampled_from(["/testbed", "/testbed/src", "src", ""]),
)
STEPS = st.builds(Step, st.lists(CALLS, max_size=2).map(tuple))
ROLLOUTS = st.builds(
    lambda steps, root, stays: Rollout("p", "r", tuple(steps), root=root, persistent_shell=stays),
    st.lists(STEPS, max_size=6),
    st.none() | st.sampled_from(["/testbed", "/", "/a/b/"]),
    st.booleans(),
)


@settings(max_examples=400)
@given(ROLLOUTS)
def test_every_step_gets_a_key_at_every_level_and_always_the_same(rollout: Rollout) -> None:
    signer = CodingSigner(LEVELS)
    signed = signer.steps(rollout)
    assert len(signed) == len(rollout.steps)
    for step in signed:
        assert len(step.states) == len(step.actions) == len(LEVELS)
        assert all(step.states)
        assert all(step.actions)
    again = CodingSigner(LEVELS).steps(rollout)
    assert [(s.states, s.actions, s.validated) for s in again] == [
        (s.states, s.actions, s.validated) for s in signed
    ]


@given(ROLLOUTS)
def test_a_chain_refines_every_level_in_it(rollout: Rollout) -> None:
    chain = CodingSigner(("work", "content", "paper")).sign([rollout]).states
    for column in range(1, chain.shape[1]):
        coarser: dict[int, int] = {}
        for fine, coarse in zip(chain[:, column], chain[:, column - 1], strict=True):
            assert coarser.setdefault(int(fine), int(coarse)) == coarse


@given(ROLLOUTS)
def test_what_comes_later_changes_no_earlier_key(rollout: Rollout) -> None:
    whole = CodingSigner(LEVELS).steps(rollout)
    for cut in range(len(rollout.steps)):
        part = Rollout(
            "p",
            "r",
            rollout.steps[: cut + 1],
            root=rollout.root,
            persistent_shell=rollout.persistent_shell,
        )
        last = CodingSigner(LEVELS).steps(part)[-1]
        assert (last.states, last.actions) == (whole[cut].states, whole[cut].actions)
