"""Where an agent's commands run, one module for each kind, and the literal dict of their names.

``bwrap`` is the default; ``warm`` is the same for many short rollouts that run pytest. ``docker``
is for problems that come as an image. ``local`` is none.
"""

from typing import Any

from rtmc.agent.sandbox.base import Limits, Result, Sandbox
from rtmc.agent.sandbox.bwrap import BwrapSandbox
from rtmc.agent.sandbox.docker import DockerSandbox
from rtmc.agent.sandbox.local import LocalSandbox
from rtmc.agent.sandbox.warm import WarmSandbox
from rtmc.errors import OptionError

__all__ = [
    "SANDBOXES",
    "BwrapSandbox",
    "DockerSandbox",
    "Limits",
    "LocalSandbox",
    "Result",
    "Sandbox",
    "WarmSandbox",
    "open_sandbox",
]

Kind = type[BwrapSandbox] | type[WarmSandbox] | type[DockerSandbox] | type[LocalSandbox]

SANDBOXES: dict[str, Kind] = {
    "bwrap": BwrapSandbox,
    "warm": WarmSandbox,
    "docker": DockerSandbox,
    "local": LocalSandbox,
}


def open_sandbox(kind: str = "bwrap", limits: Limits = Limits(), **options: Any) -> Sandbox:
    """Open a sandbox; use it in a ``with``, or close it.

    Nothing is tried in place of a kind that does not work here: what holds is what was asked for.

    Args:
        kind: a name in ``SANDBOXES``.
        limits: what it may use.
        options: those of the class.

    Raises:
        OptionError: no such kind, or ``local`` without ``unsafe=True``.
        SandboxError: it cannot start here; the message says what to do.
        MissingExtraError: ``docker`` without its extra.
    """
    if kind not in SANDBOXES:
        raise OptionError(f"no sandbox {kind!r}; choose from {', '.join(SANDBOXES)}")
    return SANDBOXES[kind](limits, **options)
