"""The errors that rtmc raises on purpose.

    RtmcError
    ├── FormatError       a file or record is not what its format promises (also ValueError)
    ├── OptionError       options that contradict each other or the data (also ValueError)
    ├── AlignmentError    spans, steps and tokens do not fit together (also ValueError)
    ├── OutputError       the result cannot be written (also OSError)
    ├── RolloutError      rollouts ended with errors that are not the agent's (also RuntimeError)
    ├── SandboxError      a sandbox cannot be started, or has ended (also RuntimeError)
    ├── WorkspaceError    a file in a sandbox cannot be read or written (also OSError)
    ├── ModelError        a model refuses all that is asked of it (also RuntimeError)
    └── MissingExtraError an optional package is not installed (also ImportError)

Anything else that escapes from rtmc is a bug.
"""

__all__ = [
    "AlignmentError",
    "FormatError",
    "MissingExtraError",
    "ModelError",
    "OptionError",
    "OutputError",
    "RolloutError",
    "RtmcError",
    "SandboxError",
    "WorkspaceError",
]


class RtmcError(Exception):
    """Base of all errors that rtmc raises on purpose; the message says what to do."""


class FormatError(RtmcError, ValueError):
    """A file or a record cannot be read; the message names file, line and what was expected."""


class OptionError(RtmcError, ValueError):
    """Options contradict each other, or an option does not apply."""


class AlignmentError(RtmcError, ValueError):
    """Spans, steps and tokens do not fit together."""


class OutputError(RtmcError, OSError):
    """The result cannot be written where it was asked for."""


class RolloutError(RtmcError, RuntimeError):
    """Rollouts ended with errors that are not the agent's; the message says what to do."""


class SandboxError(RtmcError, RuntimeError):
    """A sandbox cannot be started, or has ended; the message says why."""


class WorkspaceError(RtmcError, OSError):
    """A file in a sandbox's workspace cannot be read or written."""


class ModelError(RtmcError, RuntimeError):
    """A model refuses all that is asked of it; the message says what its endpoint said."""


class MissingExtraError(RtmcError, ImportError):
    """A feature needs a package of an extra that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed; this needs the extra '{extra}': "
            f"pip install 'rtmc[{extra}]'"
        )
