"""The sandbox that this machine can have."""

import functools

from rtmc.agent.sandbox import Sandbox, open_sandbox
from rtmc.errors import SandboxError


@functools.cache
def warm_works() -> bool:
    try:
        open_sandbox("warm").close()
    except SandboxError:
        return False
    return True


def opener(**options) -> Sandbox:
    if warm_works():
        return open_sandbox("warm", **options)
    return open_sandbox("local", unsafe=True, **options)
