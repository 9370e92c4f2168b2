"""The repair problem: find and mend one fault in K files of B regions, C candidate patches each.

Hidden are the faulty region and its right patch. The issue text hints at a file (right with
probability 0.6); ``search(file)`` points at a region of it (at the faulty one with 0.8, if it is
there); ``view(region)`` shows whether the region looks suspicious (the faulty one always, another
with 0.12) and which patch seems indicated (the right one with 0.7). What hints, searches and views
say is drawn once a problem: the same file reads the same each time. ``edit(region, patch)`` needs a
view of the region first and starts from the original code, so that one patch is in place at a time.
``test(file)`` and ``run`` see the fault with probability 0.7, anew each time, and a wrong patch
always; ``test`` looks at its file only. ``think`` does nothing. ``finish`` ends the episode; its
reward is 1 if the right patch is in place, else 0. After T steps it ends with 0.

Actions are numbered search, view, edit, test, run, think, finish. A state is one integer:

    bits 0–1    test result since the last edit: 0 none, 1 passed, 2 failed
    bits 2–7    patch in place: 0 none, else 1 + region·C + patch
    bits 8–11   files searched
    bits 12–    regions viewed
"""

import numpy as np
from numba import njit

from rtmc.bench.worlds.base import CHANGES, FAILED, SOLVED, VALIDATES, World

__all__ = ["repair"]

HINT, POINT, LOOKS, SHOWS, SEES = 0.6, 0.8, 0.12, 0.7, 0.7
PASSED, FAILS = 1, 2
# a problem's numbers: sizes, what is hidden, the hint; then what searches and views say
K, B, C, FAULT, PATCH, HINTED, SAID = range(7)

FEATURES = (
    "search", "search hinted", "search again", "search after edit", "search after failure",
    "view", "view hinted", "view pointed", "view pointed elsewhere", "view again",
    "view after edit", "view after failure",
    "edit", "edit suspicious", "edit suspicious indicated", "edit indicated", "edit hinted",
    "edit over untested", "edit over passed", "edit over failed", "edit same",
    "test", "test patched", "test unpatched", "test again", "test failed",
    "run", "run unpatched", "run again", "run failed",
    "think", "think untested", "think failed",
    "finish unpatched", "finish untested", "finish passed", "finish failed",
    "search middle", "search late", "view middle", "view late", "edit middle", "edit late",
    "test middle", "test late", "finish middle", "finish late",
)  # fmt: skip
_AT = {name: at for at, name in enumerate(FEATURES)}
SEARCH, VIEW, EDIT, TEST, RUN, THINK, FINISH = (
    _AT[name] for name in ("search", "view", "edit", "test", "run", "think", "finish unpatched")
)
SEARCH_LATER, VIEW_LATER, EDIT_LATER, TEST_LATER, FINISH_LATER = (
    _AT[f"{name} middle"] for name in ("search", "view", "edit", "test", "finish")
)


@njit
def moves(problem, state, out):
    """List the legal actions."""
    files, regions, patches = problem[K], problem[K] * problem[B], problem[C]
    n = 0
    for action in range(files + regions):
        out[n] = action
        n += 1
    for region in range(regions):
        if state >> (12 + region) & 1:
            for patch in range(patches):
                out[n] = files + regions + region * patches + patch
                n += 1
    for action in range(files + 3):
        out[n] = files + regions + regions * patches + action
        n += 1
    return n


@njit
def describe(problem, state, phase, action, out):
    """List the features of an action: which of ``FEATURES`` hold."""
    files, regions, patches = problem[K], problem[K] * problem[B], problem[C]
    result, placed = state & 3, state >> 2 & 63
    failed = result == FAILS
    n = 1
    if action < files:
        out[0] = SEARCH
        for at, holds in enumerate(
            (action == problem[HINTED], state >> (8 + action) & 1 == 1, placed > 0, failed)
        ):
            if holds:
                out[n] = SEARCH + 1 + at
                n += 1
        later = SEARCH_LATER
    elif action < files + regions:
        region = action - files
        file = region // problem[B]
        searched = state >> (8 + file) & 1 == 1
        pointed = problem[SAID + file] == region
        out[0] = VIEW
        for at, holds in enumerate(
            (
                file == problem[HINTED], searched and pointed, searched and not pointed,
                state >> (12 + region) & 1 == 1, placed > 0, failed,
            )
        ):  # fmt: skip
            if holds:
                out[n] = VIEW + 1 + at
                n += 1
        later = VIEW_LATER
    elif action < files + regions + regions * patches:
        region, patch = divmod(action - files - regions, patches)
        said = SAID + files + 2 * region
        suspicious, indicated = problem[said] == 1, problem[said + 1] == patch
        out[0] = EDIT
        for at, holds in enumerate(
            (
                suspicious, suspicious and indicated, indicated,
                region // problem[B] == problem[HINTED], placed > 0 and result == 0,
                placed > 0 and result == PASSED, placed > 0 and failed,
                placed == 1 + region * patches + patch,
            )
        ):  # fmt: skip
            if holds:
                out[n] = EDIT + 1 + at
                n += 1
        later = EDIT_LATER
    else:
        other = action - files - regions - regions * patches
        if other < files:
            out[0] = TEST
            of_patch = placed > 0 and (placed - 1) // patches // problem[B] == other
            for at, holds in enumerate((of_patch, placed == 0, result > 0, failed)):
                if holds:
                    out[n] = TEST + 1 + at
                    n += 1
            later = TEST_LATER
        elif other == files:
            out[0] = RUN
            for at, holds in enumerate((placed == 0, result > 0, failed)):
                if holds:
                    out[n] = RUN + 1 + at
                    n += 1
            later = TEST_LATER
        elif other == files + 1:
            out[0] = THINK
            for at, holds in enumerate((placed > 0 and result == 0, failed)):
                if holds:
                    out[n] = THINK + 1 + at
                    n += 1
            return n
        else:
            out[0] = FINISH + (1 + result if placed > 0 else 0)
            later = FINISH_LATER
    if phase > 0:
        out[n] = later + phase - 1
        n += 1
    return n


@njit
def follow(problem, state, action):
    """Give the probability of the first of two next states, and both."""
    files, regions, patches = problem[K], problem[K] * problem[B], problem[C]
    placed = state >> 2 & 63
    right = 1 + problem[FAULT] * patches + problem[PATCH]
    if action < files:
        state |= 1 << (8 + action)
    elif action < files + regions:
        state |= 1 << (12 + action - files)
    elif action < files + regions + regions * patches:
        state = state & ~255 | (1 + action - files - regions) << 2
    else:
        other = action - files - regions - regions * patches
        if other == files + 2:
            ended = SOLVED if placed == right else FAILED
            return 1.0, ended, ended
        if other <= files:
            everywhere = other == files
            of_patch = everywhere or (placed - 1) // patches // problem[B] == other
            faulty = placed != right and (everywhere or problem[FAULT] // problem[B] == other)
            # tests that do not look at the patch say nothing of it when they pass
            silent = placed > 0 and not of_patch
            passed = state if silent else state & ~3 | PASSED
            failed = state & ~3 | FAILS
            if placed > 0 and of_patch and placed != right:
                return 0.0, failed, failed  # the second of the two: that is what is seen
            return (1.0 - SEES if faulty else 1.0), passed, failed
    return 1.0, state, state


@njit
def effect(problem, state, action):
    """Say whether an action changes the code, and whether it validates a change."""
    files, regions, patches = problem[K], problem[K] * problem[B], problem[C]
    first = files + regions
    if first <= action < first + regions * patches:
        return CHANGES
    other, placed = action - first - regions * patches, state >> 2 & 63
    if 0 <= other <= files and state & 3 == 0 and placed > 0:
        looks = other == files or (placed - 1) // patches // problem[B] == other
        return VALIDATES if looks else 0
    return 0


@njit
def coarse(problem, action):
    """Number the kinds of operation on each file: all that level ``coarse`` tells apart."""
    files, regions, patches = problem[K], problem[K] * problem[B], problem[C]
    if action < files:
        return action
    if action < files + regions:
        return files + (action - files) // problem[B]
    if action < files + regions + regions * patches:
        return 2 * files + (action - files - regions) // patches // problem[B]
    other = action - files - regions - regions * patches
    return 3 * files + max(other - files + 1, 0)  # all tests are one kind, a run another


@njit
def content(state):
    """Give what level ``content`` holds: the patch in place and the last test since."""
    return state & 255


@njit
def progress(state):
    """Give what is seen of the progress: 0 no edit yet, 1 untested, 2 passed, 3 failed."""
    return 0 if state >> 2 & 63 == 0 else 1 + (state & 3)


def draw(rng: np.random.Generator, files: int, regions: int, patches: int) -> list[int]:
    """Draw a problem of ``files`` × ``regions`` × ``patches``."""
    n = files * regions
    fault, patch = int(rng.integers(n)), int(rng.integers(patches))
    at = fault // regions

    def other(right: int, size: int, p: float) -> int:
        if rng.random() < p or size == 1:
            return right
        return (right + int(rng.integers(1, size))) % size

    problem = [files, regions, patches, fault, patch, other(at, files, HINT)]
    for file in range(files):
        told = other(fault % regions, regions, POINT) if file == at else int(rng.integers(regions))
        problem.append(file * regions + told)
    for region in range(n):
        own = region == fault
        problem.append(int(own or rng.random() < LOOKS))
        problem.append(other(patch, patches, SHOWS) if own else int(rng.integers(patches)))
    return problem


def repair(files: int, regions: int, patches: int) -> World:
    """Make the problem family of one size."""
    size = (files, regions, patches)
    return World(
        actions=files + files * regions * (1 + patches) + files + 3,
        features=FEATURES,
        state_bits=12 + files * regions,
        draw=lambda rng: draw(rng, *size),
        functions=(moves, describe, follow, effect, content, progress, coarse),
    )
