"""The errands problem: fetch two things from a building of rooms and bring them to the desk.

Rooms form a random graph with three doors each, most of them two-way. A door's sign says that it
lies on a shortest way to what is needed next (true of such a door with probability 0.7, of another
with 0.25, drawn once a problem). ``take`` picks up what lies in the room, ``submit`` ends the
episode; its reward is 1 if both things are held at the desk, else 0. ``wait`` does nothing. After T
steps it ends with 0. Rooms are entered again and again, the order of the two things is free, and
there is nothing to test: a problem of another kind than the repair.

Actions: doors 0–2, take, submit, wait. A state is (room, room before, held): bits 0–1 what is held,
bits 2–5 the room, bits 6–9 the room before.
"""

import numpy as np
from numba import njit

from rtmc.bench.worlds.base import CHANGES, FAILED, SOLVED, World

__all__ = ["errands"]

DOORS, TAKE, SUBMIT = 3, 3, 4
TRUE_SIGN, FALSE_SIGN = 0.7, 0.25
# a problem's numbers: rooms of the two things and of the desk; doors; signs by what is held
THINGS, DESK, LEADS = 0, 2, 3
ROOMS = 12
SIGNS = LEADS + DOORS * ROOMS

FEATURES = (
    "door signed", "door plain", "door back", "door to self", "door with all",
    "take there", "take nothing", "submit none", "submit some", "submit all elsewhere",
    "submit all desk", "wait", "take middle", "take late", "submit middle", "submit late",
    "door signed late", "door back late",
)  # fmt: skip


@njit
def moves(problem, state, out):
    """List the legal actions: all."""
    for action in range(6):
        out[action] = action
    return 6


@njit
def describe(problem, state, phase, action, out):
    """List the features of an action: which of ``FEATURES`` hold."""
    held, room, before = state & 3, state >> 2 & 15, state >> 6 & 15
    n = 1
    if action < DOORS:
        door = room * DOORS + action
        to = problem[LEADS + door]
        signed = problem[SIGNS + held * DOORS * ROOMS + door] == 1
        out[0] = 0 if signed else 1
        if to == before and before != room:
            out[n] = 2
            n += 1
        if to == room:
            out[n] = 3
            n += 1
        if held == 3:
            out[n] = 4
            n += 1
        if phase == 2:
            if signed:
                out[n] = 16
                n += 1
            if to == before and before != room:
                out[n] = 17
                n += 1
    elif action == TAKE:
        here = (problem[THINGS] == room and held & 1 == 0) or (
            problem[THINGS + 1] == room and held & 2 == 0
        )
        out[0] = 5 if here else 6
        if phase > 0:
            out[n] = 11 + phase
            n += 1
    elif action == SUBMIT:
        out[0] = 7 if held == 0 else 8 if held < 3 else 10 if room == problem[DESK] else 9
        if phase > 0:
            out[n] = 13 + phase
            n += 1
    else:
        out[0] = 11
    return n


@njit
def follow(problem, state, action):
    """Give the probability of the first of two next states, and both."""
    held, room = state & 3, state >> 2 & 15
    if action < DOORS:
        state = held | problem[LEADS + room * DOORS + action] << 2 | room << 6
    elif action == TAKE:
        for thing in range(2):
            if problem[THINGS + thing] == room:
                state |= 1 << thing
    elif action == SUBMIT:
        ended = SOLVED if held == 3 and room == problem[DESK] else FAILED
        return 1.0, ended, ended
    return 1.0, state, state


@njit
def effect(problem, state, action):
    """Say that taking what lies there changes the work."""
    _, after, _ = follow(problem, state, action)
    return CHANGES if action == TAKE and after != state else 0


@njit
def coarse(problem, action):
    """Number the kinds of action: all that level ``coarse`` tells apart."""
    return max(action - DOORS + 1, 0)


@njit
def content(state):
    """Give what level ``content`` holds: room and what is held."""
    return state & 63


@njit
def progress(state):
    """Give what is seen of the progress: how many things are held."""
    held = state & 3
    return (held & 1) + (held >> 1)


def draw(rng: np.random.Generator) -> list[int]:
    """Draw a building, its things and its desk; the start is room 0."""
    leads = rng.integers(ROOMS, size=(ROOMS, DOORS))
    ring = rng.permutation(ROOMS)
    leads[ring, 0] = np.roll(ring, 1)  # every room can be reached from every other
    leads[ring, 1] = np.roll(ring, -1)
    first, second, desk = (int(room) for room in rng.choice(np.arange(1, ROOMS), 3, replace=False))
    steps = _distances(leads)
    signs = []
    for held in range(4):
        missing = [room for at, room in enumerate((first, second)) if not held >> at & 1]
        to = np.min([steps[:, room] for room in missing or [desk]], axis=0)
        nearer = to[leads] < to[:, None]
        signs.append(rng.random(nearer.shape) < np.where(nearer, TRUE_SIGN, FALSE_SIGN))
    said = np.array(signs, dtype=int)
    return [first, second, desk, *leads.ravel().tolist(), *said.ravel().tolist()]


def _distances(leads: np.ndarray) -> np.ndarray:
    """Count the doors on the shortest way between rooms."""
    far = np.full((ROOMS, ROOMS), ROOMS)
    np.fill_diagonal(far, 0)
    for _ in range(ROOMS):
        far = np.minimum(far, 1 + far[leads].min(axis=1))
    return far


def errands() -> World:
    """Make the problem family."""
    return World(
        actions=6,
        features=FEATURES,
        state_bits=10,
        draw=draw,
        functions=(moves, describe, follow, effect, content, progress, coarse),
    )
