"""Problems for the agent, one module for each kind, and the literal dict of their names.

A task is named as ``tiny``, ``tiny:depth=2,cue=function``, ``seeded:FOLDER,split=held-out``,
``swe-bench:rows.parquet``: its kind, and after the colon what it needs.
"""

from collections.abc import Callable

import msgspec

from rtmc.agent.tasks.base import FilesTask, Judgement, Opener, Part, Problem, Task
from rtmc.errors import OptionError

__all__ = ["TASKS", "FilesTask", "Judgement", "Opener", "Part", "Problem", "Task", "open_task"]

Settings = dict[str, str]
"""What follows the colon: values by key; what has no key is under ``""``."""


def _tiny(settings: Settings, opener: Opener) -> Task:
    from rtmc.agent.tasks.tiny import Knobs, TinyProblems

    split = settings.pop("split", "train")
    if split not in ("train", "test"):
        raise OptionError(f"tiny: split is {split!r}; expected train or test")
    try:
        knobs = msgspec.convert(settings, Knobs, strict=False)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, OptionError):
            raise error.__cause__ from None
        raise OptionError(
            f"tiny: {error}; expected split or one of {', '.join(Knobs.__struct_fields__)}, as in "
            "tiny:depth=2,cue=function"
        ) from error
    return FilesTask("tiny", TinyProblems(knobs, split), opener)


def _seeded(settings: Settings, opener: Opener) -> Task:
    from rtmc.agent.tasks.seeded import SeededTask

    folder = _path(settings, "seeded", "the folder of rtmc tasks build, as in seeded:FOLDER")
    split = settings.pop("split", "all")
    if split not in ("train", "held-out", "all"):
        raise OptionError(f"seeded: split is {split!r}; expected train, held-out or all")
    _nothing_else(settings, "seeded", "split")
    return SeededTask(folder, opener, split)


def _r2e_gym(settings: Settings, opener: Opener) -> Task:
    from rtmc.agent.tasks.images import R2EGym

    path = _path(settings, "r2e-gym", "a file of rows, as in r2e-gym:rows.parquet")
    without = settings.pop("without-swe-bench", "no")
    if without not in ("yes", "no"):
        raise OptionError(f"r2e-gym: without-swe-bench is {without!r}; expected yes or no")
    _nothing_else(settings, "r2e-gym", "without-swe-bench")
    return R2EGym([path], opener, without_swe_bench_repos=without == "yes")


def _swe_bench(settings: Settings, opener: Opener) -> Task:
    from rtmc.agent.tasks.images import SweBench

    path = _path(settings, "swe-bench", "a file of rows, as in swe-bench:rows.parquet")
    _nothing_else(settings, "swe-bench")
    return SweBench([path], opener)


def _path(settings: Settings, kind: str, expected: str) -> str:
    if not settings.get(""):
        raise OptionError(f"{kind} needs {expected}")
    return settings.pop("")


def _nothing_else(settings: Settings, kind: str, *known: str) -> None:
    if settings:
        says = f"it takes {', '.join(known)}" if known else "it takes nothing but a path"
        raise OptionError(f"{kind}: there is no {next(iter(settings))!r}; {says}")


TASKS: dict[str, Callable[[Settings, Opener], Task]] = {
    "tiny": _tiny,
    "seeded": _seeded,
    "r2e-gym": _r2e_gym,
    "swe-bench": _swe_bench,
}
IN_IMAGES = frozenset({"r2e-gym", "swe-bench"})
"""Tasks whose problems come as images, for the sandbox ``docker``."""


def open_task(spec: str, opener: Opener) -> Task:
    """Make a task of its name and settings.

    Args:
        spec: ``KIND`` or ``KIND:SETTINGS``; see above.
        opener: of sandboxes.

    Raises:
        OptionError: no such task, or a setting that it does not take.
    """
    kind, _, rest = spec.partition(":")
    if kind not in TASKS:
        raise OptionError(f"no task {kind!r}; choose from {', '.join(TASKS)}")
    settings: Settings = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        settings |= {key.strip(): value.strip()} if equals else {"": part}
    return TASKS[kind](settings, opener)
