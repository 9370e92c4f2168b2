"""Independent, slow oracle of the benchmark: readable rules, and every trajectory enumerated.

Nothing from rtmc. A world tells the legal actions of a state, what may come of one, and which
features hold; a policy turns features into scores; ``trajectories`` lists everything that can
happen, and ``Truth`` averages over it.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import exp, tanh

WON, LOST = "won", "lost"
NONE, PASSED, FAILED = "none", "passed", "failed"


# --- the repair problem ------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """A state: the last test since the edit, the patch in place, what was searched and viewed."""

    result: str = NONE
    patch: tuple[int, int] | None = None
    searched: frozenset = frozenset()
    viewed: frozenset = frozenset()


class Repair:
    def __init__(self, problem):
        numbers = [int(x) for x in problem]
        self.files, self.size, self.patches, self.fault, self.right, self.hinted = numbers[:6]
        self.regions = self.files * self.size
        said = numbers[6 : 6 + self.files + 2 * self.regions]
        self.pointed = said[: self.files]
        self.suspicious = [bool(x) for x in said[self.files :: 2]]
        self.indicated = said[self.files + 1 :: 2]
        self.actions = [
            *(("search", f) for f in range(self.files)),
            *(("view", r) for r in range(self.regions)),
            *(("edit", r, p) for r in range(self.regions) for p in range(self.patches)),
            *(("test", f) for f in range(self.files)),
            ("run",), ("think",), ("finish",),
        ]  # fmt: skip
        self.start = Work()

    def file_of(self, region):
        return region // self.size

    def decode(self, state):
        result = [NONE, PASSED, FAILED][state % 4]
        placed = state // 4 % 64
        return Work(
            result,
            divmod(placed - 1, self.patches) if placed else None,
            frozenset(f for f in range(4) if state >> (8 + f) & 1),
            frozenset(r for r in range(self.regions) if state >> (12 + r) & 1),
        )

    def encode(self, work):
        placed = 0 if work.patch is None else 1 + work.patch[0] * self.patches + work.patch[1]
        bits = [NONE, PASSED, FAILED].index(work.result) + 4 * placed
        return bits + sum(2 ** (8 + f) for f in work.searched) + sum(
            2 ** (12 + r) for r in work.viewed
        )  # fmt: skip

    def legal(self, work):
        return [a for a in self.actions if a[0] != "edit" or a[1] in work.viewed]

    def mended(self, work):
        return work.patch == (self.fault, self.right)

    def follow(self, work, action):
        """List what may come of an action: (probability, state or end)."""
        kind = action[0]
        if kind == "search":
            return [(1.0, replace(work, searched=work.searched | {action[1]}))]
        if kind == "view":
            return [(1.0, replace(work, viewed=work.viewed | {action[1]}))]
        if kind == "edit":
            return [(1.0, replace(work, patch=action[1:], result=NONE))]
        if kind == "think":
            return [(1.0, work)]
        if kind == "finish":
            return [(1.0, WON if self.mended(work) else LOST)]
        files = range(self.files) if kind == "run" else [action[1]]
        sees_patch = work.patch is not None and self.file_of(work.patch[0]) in files
        sees_fault = not self.mended(work) and self.file_of(self.fault) in files
        fails = replace(work, result=FAILED)
        # a pass that did not look at the patch says nothing of it
        passes = work if work.patch and not sees_patch else replace(work, result=PASSED)
        if sees_patch and not self.mended(work):
            return [(1.0, fails)]
        return [(0.3, passes), (0.7, fails)] if sees_fault else [(1.0, passes)]

    def features(self, work, action, third):
        kind, *where = action
        untested = work.patch is not None and work.result == NONE
        failed = work.result == FAILED
        named = {"think untested": untested, "think failed": failed}
        later = kind
        if kind == "search":
            named = {
                "search hinted": where[0] == self.hinted,
                "search again": where[0] in work.searched,
                "search after edit": work.patch is not None,
                "search after failure": failed,
            }
        elif kind == "view":
            file = self.file_of(where[0])
            told = self.pointed[file] if file in work.searched else None
            named = {
                "view hinted": file == self.hinted,
                "view pointed": told == where[0],
                "view pointed elsewhere": told not in (None, where[0]),
                "view again": where[0] in work.viewed,
                "view after edit": work.patch is not None,
                "view after failure": failed,
            }
        elif kind == "edit":
            region, patch = where
            suspicious, indicated = self.suspicious[region], self.indicated[region] == patch
            named = {
                "edit suspicious": suspicious,
                "edit suspicious indicated": suspicious and indicated,
                "edit indicated": indicated,
                "edit hinted": self.file_of(region) == self.hinted,
                "edit over untested": untested,
                "edit over passed": work.patch is not None and work.result == PASSED,
                "edit over failed": work.patch is not None and failed,
                "edit same": work.patch == (region, patch),
            }
        elif kind == "test":
            named = {
                "test patched": work.patch and self.file_of(work.patch[0]) == where[0],
                "test unpatched": work.patch is None,
                "test again": work.result != NONE,
                "test failed": failed,
            }
        elif kind == "run":
            named = {
                "run unpatched": work.patch is None,
                "run again": work.result != NONE,
                "run failed": failed,
            }
            later = "test"
        elif kind == "finish":
            how = {NONE: "untested", PASSED: "passed", FAILED: "failed"}[work.result]
            kind, named = f"finish {how if work.patch else 'unpatched'}", {}
        holds = {kind, *(name for name, true in named.items() if true)}
        if third and kind != "think":
            holds.add(f"{later} {'middle' if third == 1 else 'late'}")
        return holds

    def changes(self, work, action):
        return action[0] == "edit"

    def validates(self, work, action):
        if work.patch is None or work.result != NONE:
            return False
        return action in (("run",), ("test", self.file_of(work.patch[0])))

    def seen(self, work):
        """What the key of level content holds."""
        return work.result, work.patch

    def progress(self, work):
        return 0 if work.patch is None else 1 + [NONE, PASSED, FAILED].index(work.result)

    def kind(self, action):
        """What the key of level coarse tells apart."""
        if action[0] in ("view", "edit"):
            return action[0], self.file_of(action[1])
        return action if action[0] == "search" else action[:1]


# --- the errands -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A state: the room, the room before, and which of the two things are held."""

    room: int = 0
    before: int = 0
    held: frozenset = frozenset()


class Errands:
    rooms = 12
    actions = [*(("door", d) for d in range(3)), ("take",), ("submit",), ("wait",)]  # noqa: RUF012

    def __init__(self, problem):
        numbers = [int(x) for x in problem]
        self.things, self.desk = numbers[:2], numbers[2]
        doors = numbers[3 : 3 + 36]
        self.leads = [doors[3 * room : 3 * room + 3] for room in range(12)]
        signs = numbers[39 : 39 + 144]
        self.signs = [
            [signs[36 * held + 3 * room :][:3] for room in range(12)] for held in range(4)
        ]
        self.start = Place()

    def decode(self, state):
        held = frozenset(thing for thing in range(2) if state >> thing & 1)
        return Place(state // 4 % 16, state // 64, held)

    def encode(self, place):
        return sum(2**thing for thing in place.held) + 4 * place.room + 64 * place.before

    def legal(self, place):
        return self.actions

    def here(self, place):
        return {thing for thing in range(2) if self.things[thing] == place.room}

    def follow(self, place, action):
        if action[0] == "door":
            return [(1.0, Place(self.leads[place.room][action[1]], place.room, place.held))]
        if action[0] == "take":
            return [(1.0, replace(place, held=place.held | self.here(place)))]
        if action[0] == "submit":
            done = len(place.held) == 2 and place.room == self.desk
            return [(1.0, WON if done else LOST)]
        return [(1.0, place)]

    def features(self, place, action, third):
        kind = action[0]
        everything = len(place.held) == 2
        if kind == "door":
            to = self.leads[place.room][action[1]]
            number = sum(2**thing for thing in place.held)
            signed = self.signs[number][place.room][action[1]] == 1
            named = {
                "door signed": signed,
                "door plain": not signed,
                "door back": to == place.before != place.room,
                "door to self": to == place.room,
                "door with all": everything,
                "door signed late": third == 2 and signed,
                "door back late": third == 2 and to == place.before != place.room,
            }
        elif kind == "take":
            there = bool(self.here(place) - place.held)
            named = {"take there": there, "take nothing": not there}
        elif kind == "submit":
            named = {
                "submit none": not place.held,
                "submit some": len(place.held) == 1,
                "submit all elsewhere": everything and place.room != self.desk,
                "submit all desk": everything and place.room == self.desk,
            }
        else:
            named = {"wait": True}
        if kind in ("take", "submit"):
            named |= {f"{kind} middle": third == 1, f"{kind} late": third == 2}
        return {name for name, true in named.items() if true}

    def changes(self, place, action):
        return action == ("take",) and bool(self.here(place) - place.held)

    def validates(self, place, action):
        return False

    def seen(self, place):
        return place.room, place.held

    def progress(self, place):
        return len(place.held)

    def kind(self, action):
        return action[:1]

    def distance(self, start, end):
        """Count the doors on the shortest way, room by room."""
        found, steps = {start}, 0
        while end not in found:
            found |= {to for room in found for to in self.leads[room]}
            steps += 1
            assert steps <= 12, "every room can be reached"
        return steps


def reachable(world):
    """List every state that any policy can reach."""
    found, left = {world.start}, [world.start]
    while left:
        state = left.pop()
        for action in world.legal(state):
            for _, after in world.follow(state, action):
                if after not in (WON, LOST) and after not in found:
                    found.add(after)
                    left.append(after)
    return found


# --- policies ----------------------------------------------------------------------------------


@dataclass
class Policy:
    """Softmax of scores; ``names`` are the features in the order of the parameters."""

    world: object
    names: tuple
    theta: object

    def score(self, state, action, third):
        return sum(self.theta[k] for k in self.where(state, action, third))

    def slope(self, state, action, third):
        """∂score/∂θ as {parameter: number}."""
        return dict.fromkeys(self.where(state, action, third), 1.0)

    def where(self, state, action, third):
        return [self.names.index(name) for name in self.world.features(state, action, third)]

    def chances(self, state, third):
        legal = self.world.legal(state)
        powers = [exp(self.score(state, action, third)) for action in legal]
        return {action: power / sum(powers) for action, power in zip(legal, powers, strict=True)}

    def log_slope(self, state, action, third):
        """∂log π(a|s)/∂θ = ∂score(a)/∂θ − Σ_b π(b) ∂score(b)/∂θ."""
        total = dict(self.slope(state, action, third))
        for other, chance in self.chances(state, third).items():
            for k, slope in self.slope(state, other, third).items():
                total[k] = total.get(k, 0.0) - chance * slope
        return total


class Network(Policy):
    """Score = Σ_u w_u tanh(Σ_k U_ku x_k), 8 units; w first, then U feature by feature."""

    def hidden(self, state, action, third):
        where = self.where(state, action, third)
        return [tanh(sum(self.theta[8 + 8 * k + unit] for k in where)) for unit in range(8)]

    def score(self, state, action, third):
        hidden = self.hidden(state, action, third)
        return sum(self.theta[unit] * hidden[unit] for unit in range(8))

    def slope(self, state, action, third):
        hidden = self.hidden(state, action, third)
        slopes = dict(enumerate(hidden))
        for k in self.where(state, action, third):
            for unit in range(8):
                slopes[8 + 8 * k + unit] = self.theta[unit] * (1 - hidden[unit] ** 2)
        return slopes


class Table(Policy):
    """One number for each reachable state, in the order of their integers, and each action."""

    @cached_property
    def rows(self):
        return {s: at for at, s in enumerate(sorted(reachable(self.world), key=self.world.encode))}

    def where(self, state, action, third):
        actions = self.world.actions
        return [self.rows[state] * len(actions) + actions.index(action)]


# --- everything that can happen ----------------------------------------------------------------


def third_of(t, horizon):
    """Count the thirds of the episode that are over."""
    return sum(3 * t >= k * horizon for k in (1, 2))


def trajectories(world, policy, horizon):
    """Give (probability, reward, [(t, state, action) …]) of every possible trajectory."""
    known = {}

    def chances(state, third):
        if (state, third) not in known:
            known[state, third] = policy.chances(state, third)
        return known[state, third]

    def after(t, state, p, steps):
        if t == horizon:
            yield p, 0.0, steps
            return
        for action, chance in chances(state, third_of(t, horizon)).items():
            taken = [*steps, (t, state, action)]
            for odds, then in world.follow(state, action):
                if then in (WON, LOST):
                    yield p * chance * odds, float(then == WON), taken
                else:
                    yield from after(t + 1, then, p * chance * odds, taken)

    return after(0, world.start, 1.0, [])


@dataclass
class Truth:
    """J, V, A and ∇J as averages over all trajectories."""

    world: object
    policy: object
    horizon: int
    discount: float
    success: float = 0.0
    gradient: dict = field(default_factory=dict)
    ahead: dict = field(default_factory=dict)

    def __post_init__(self):
        slopes = {}
        total = 0.0
        for p, reward, steps in trajectories(self.world, self.policy, self.horizon):
            total += p
            self.success += p * reward
            for t, state, action in steps:
                worth = self.discount ** (len(steps) - 1 - t) * reward
                for key in ((t, state), (t, state, action)):
                    at = self.ahead.setdefault(key, [0.0, 0.0])
                    at[0] += p
                    at[1] += p * worth
                if reward:
                    key = state, action, third_of(t, self.horizon)
                    if key not in slopes:
                        slopes[key] = self.policy.log_slope(*key)
                    for k, slope in slopes[key].items():
                        self.gradient[k] = self.gradient.get(k, 0.0) + p * reward * slope
        assert abs(total - 1) < 1e-12

    def mean(self, *key):
        """V_t(s) of (t, s), Q_t(s, a) of (t, s, a)."""
        chance, worth = self.ahead[key]
        return worth / chance
