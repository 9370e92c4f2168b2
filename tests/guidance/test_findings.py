"""All figures together: what is refused, what the order may not change, and the advice."""

from random import Random

import msgspec
import pytest

import rtmc
from planted import PLAIN, findings, group
from rtmc.errors import FormatError, OptionError
from rtmc.guidance import Findings, sample_of
from rtmc.rollouts import Group, Rollout, Step, ToolCall


def shell(name: str, reward: float | None, *commands: str, problem: str = "p") -> Rollout:
    steps = tuple(Step((ToolCall("bash", {"command": command}),)) for command in commands)
    return Rollout(problem, name, steps, reward)


def many(seed: int = 3, groups: int = 7) -> list[Group]:
    """Make groups of real commands with outcomes by chance."""
    random = Random(seed)
    commands = ["cat a.py", "cat b.py", "sed -i s/x/y/ a.py", "pytest", "ls", "echo x > b.py"]
    return [
        Group(
            f"p{at}",
            tuple(
                shell(
                    f"r{r}",
                    random.choice([0.0, 1.0]),
                    *random.choices(commands, k=random.randint(1, 9)),
                    problem=f"p{at}",
                )
                for r in range(5)
            ),
        )
        for at in range(groups)
    ]


def guidance(groups: list[Group], config: rtmc.Config = rtmc.Config()):
    found = Findings()
    for one in groups:
        found.add(sample_of(one, config))
    return found.guidance()


def refused(*groups: Group) -> str:
    with pytest.raises(FormatError) as error:
        guidance(list(groups))
    return str(error.value)


def test_nothing_known_is_refused_in_words() -> None:
    assert refused().startswith("no rollout in the input; `rtmc formats` lists what is read")
    unknown = Group("p", (shell("a", None, "ls"), shell("b", None, "ls")))
    assert refused(unknown) == (
        "none of the 2 rollouts has a known outcome, and credit starts from outcomes; give them "
        "with --outcomes, or count unknown ones as failed with --unknown fail"
    )
    assert refused(Group("p", (shell("a", 1.0, "ls"),))) == (
        "every one of the 1 problems with a known outcome has one rollout, and credit comes from "
        "comparing rollouts of one problem; record several, or say with --group-by what belongs "
        "together"
    )
    even = Group("p", (shell("a", 1.0, "ls"), shell("b", 1.0, "ls")))
    assert refused(even, Group("q", (shell("a", 0.0, "ls"),)), unknown) == (
        "in none of the 3 groups do the outcomes differ (1 of one outcome, 1 of one rollout, 1 "
        "without a known outcome), so every advantage is 0; take problems that some rollouts solve "
        "and some do not, or more rollouts of each"
    )


def test_other_estimators_are_refused() -> None:
    with pytest.raises(OptionError, match="the estimator is grpo; expected rtmc: what is measured"):
        guidance(many(), rtmc.Config(estimator=rtmc.GRPO()))


def test_what_there_is() -> None:
    extra = [
        Group("even", (shell("a", 1.0, "ls"), shell("b", 1.0, "ls"))),
        Group("one", (shell("a", 1.0, "ls"),)),
        Group("nobody", (shell("a", None, "ls"),)),
        Group("mixed", (shell("a", 1.0, "ls"), shell("b", 0.0, "ls"), shell("c", None, "ls"))),
    ]
    found = guidance(extra).signal
    assert (found.groups, found.live) == (4, 1)
    assert (found.uniform, found.singletons, found.empty) == (1, 1, 1)
    assert (found.rollouts, found.voting, found.live_rollouts) == (7, 5, 2)
    assert found.per_group == (1, 2.0, 2)
    assert found.share.value == pytest.approx(2 / 5)


@pytest.mark.parametrize("level", ["paper", "content,paper", "root"])
def test_order_and_names_of_the_input_change_nothing(level: str) -> None:
    config = rtmc.Config(level=level)
    groups = many()
    random = Random(9)
    shuffled = [
        Group(g.problem_id, tuple(random.sample(g.rollouts, len(g.rollouts))))
        for g in random.sample(groups, len(groups))
    ]
    one, other = guidance(groups, config), guidance(shuffled, config)
    assert msgspec.json.encode(one) == msgspec.json.encode(other)


@pytest.mark.parametrize(
    "config",
    [
        rtmc.Config(estimator=rtmc.RTMC(prior="none", leave_one_out=True)),
        rtmc.Config(estimator=rtmc.RTMC(n_prior=0.0)),
        rtmc.Config(beta=0.0, gamma=1.0, normalize="problem"),
        rtmc.Config(max_bonuses=None, hash_chars=4, incomplete="mask"),
        rtmc.Config.paper(),
    ],
)
def test_every_setting_gives_figures(config: rtmc.Config) -> None:
    found = guidance(many(), config)
    assert found.levels.by_level["paper"].error.known
    assert 0 <= found.noise.total.signal.value <= 1
    assert found.advice


def test_normalisation_is_left_out() -> None:
    plain, scaled = (guidance(many(), rtmc.Config(normalize=n)) for n in ("none", "problem"))
    assert msgspec.json.encode(plain) == msgspec.json.encode(scaled)


def test_rollouts_without_steps() -> None:
    bare = Group("p", (shell("a", 1.0), shell("b", 0.0)))
    found = guidance([bare])
    assert not found.support.shared.known
    assert not found.noise.total.error.known
    assert found.noise.total.steps == 0
    mixed = Group("q", (shell("a", 1.0, "ls", "pytest"), shell("b", 0.0), shell("c", 0.0, "ls")))
    assert guidance([bare, mixed]).noise.total.steps == 3


# --- advice ------------------------------------------------------------------------------------


def test_few_groups_come_first() -> None:
    found = findings([group("p", ("s.x a.x", 1.0), ("s.x a.x", 0.0))]).guidance()
    assert found.advice[0] == (
        "Collect more groups of mixed outcome before changing settings: there is one, and with "
        "fewer than 5 no level or λ is recommended here."
    )


def test_luck_asks_for_more_rollouts() -> None:
    random = Random(6)
    coins = [
        group(f"p{g}", *[(f"s.{random.choice('xy')}", float(r % 2)) for r in range(6)])
        for g in range(8)
    ]
    (line,) = findings(coins).guidance().advice
    assert line.startswith("Take more rollouts a problem: ")
    assert line.endswith("is luck. Till then trust averages over groups, not single steps.")


def test_a_level_is_advised_where_it_is_better() -> None:
    rows = [("s.a a1.x", 1.0), ("s.a a2.x", 1.0), ("s.b b1.x", 0.0), ("s.b b2.x", 0.0)]
    groups = [group(f"p{g}", *rows, *rows[: g % 3]) for g in range(9)]
    found = findings(groups, keys={"coarse": lambda state: state[0]}).guidance()
    assert any(line.startswith("Take --level coarse: its states save 0.") for line in found.advice)


def test_mostly_uniform_groups_ask_for_other_problems() -> None:
    even = [group(f"e{g}", ("s.x", 1.0), ("s.y", 1.0)) for g in range(20)]
    mixed = [group(f"m{g}", ("s.x", 1.0), ("s.y", 0.0)) for g in range(6)]
    lines = findings(even + mixed).guidance().advice
    assert any("only 0.23 of the rollouts are in groups of mixed outcome" in one for one in lines)


def test_nothing_to_change_is_said() -> None:
    rows = [("s.x", 1.0)] * 4 + [("s.y", 0.0)] * 4
    groups = [group(f"p{g}", *rows) for g in range(6)]
    assert findings(groups, PLAIN).guidance().advice == (
        "Keep the settings: no figure asks for a change.",
    )
