"""Problems for the agent, one module for each kind, and the literal dict of their names.

A task is named as ``tiny``, ``tiny:depth=2,cue=function``, ``seeded:FOLDER,split=held-out``,
``swe-bench:rows.parquet``: its kind, and after the colon what it needs.
"""

import functools
from collections.abc import Callable

import msgspec

from rtmc.agent.sandbox import Limits, open_sandbox
from rtmc.agent.tasks.base import FilesTask, Judgement, Opener, Part, Problem, Task
from rtmc.agent.tasks.memory import Memory
from rtmc.errors import OptionError

__all__ = [
    "TASKS",
    "FilesTask",
    "Judgement",
    "Opener",
    "Part",
    "Problem",
    "Task",
    "open_problems",
    "open_task",
    "sandbox_for",
]

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
    # its programs are sums and products: the tests say the same every time
    return FilesTask("tiny", TinyProblems(knobs, split), opener, memory=Memory())


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


def sandbox_for(spec: str) -> str:
    """Name the kind of sandbox that a task runs in where none is given."""
    return "docker" if spec.partition(":")[0] in IN_IMAGES else "warm"


def open_problems(
    spec: str,
    sandbox: str | None = None,
    memory: int = 1024,
    first: int = 0,
    count: int | None = None,
) -> tuple[Task, Part]:
    """Open a task in a kind of sandbox that works here, and choose of its problems.

    Args:
        spec: as of ``open_task``.
        sandbox: as of ``open_sandbox``; by default ``docker`` for images, else ``warm``.
        memory: MiB that a sandbox may use.
        first: the first problem.
        count: how many, None for all; fewer where there are no more.

    Raises:
        OptionError: no such task or setting, not for that sandbox, or no problem is left.
        SandboxError: the sandbox cannot start here.
    """
    kind = spec.partition(":")[0]
    sandbox = sandbox or sandbox_for(spec)
    if kind in TASKS and (sandbox == "docker") != (kind in IN_IMAGES):
        raise OptionError(f"the task {kind} does not run in the sandbox {sandbox}")
    options = {"unsafe": True} if sandbox == "local" else {}
    opener = functools.partial(open_sandbox, sandbox, Limits(memory=memory << 20), **options)
    task = open_task(spec, opener)
    if sandbox != "docker":
        opener().close()  # what cannot start is said before anything is begun
    end = len(task.problems) if count is None else first + count
    problems = Part(task.problems, range(first, end))
    if not problems:
        skipped = f", and {first} are skipped" if first else ""
        raise OptionError(f"{spec} has {len(task.problems)} problems{skipped}")
    return task, problems
