import pytest

from rtmc import errors
from rtmc.errors import (
    AlignmentError,
    FormatError,
    MissingExtraError,
    ModelError,
    OptionError,
    OutputError,
    RolloutError,
    RtmcError,
    SandboxError,
    WorkspaceError,
)

BUILTIN = {
    FormatError: ValueError,
    OptionError: ValueError,
    AlignmentError: ValueError,
    OutputError: OSError,
    RolloutError: RuntimeError,
    SandboxError: RuntimeError,
    WorkspaceError: OSError,
    ModelError: RuntimeError,
    MissingExtraError: ImportError,
}


@pytest.mark.parametrize(("kind", "builtin"), BUILTIN.items())
def test_every_error_is_one_of_ours_and_a_builtin(kind, builtin):
    assert issubclass(kind, RtmcError)
    assert issubclass(kind, builtin)


def test_the_base_is_no_builtin_error_itself():
    """Who catches ValueError does not catch them all by accident."""
    assert RtmcError.__bases__ == (Exception,)


def test_the_list_is_complete():
    public = {getattr(errors, name) for name in errors.__all__}
    assert public == {RtmcError, *BUILTIN}
    drawn = [line.split()[1] for line in errors.__doc__.splitlines() if "──" in line]
    assert set(drawn) == {kind.__name__ for kind in BUILTIN}


def test_a_missing_extra_says_what_to_install():
    assert str(MissingExtraError("pyarrow", "parquet")) == (
        "pyarrow is not installed; this needs the extra 'parquet': pip install 'rtmc[parquet]'"
    )


@pytest.mark.parametrize("kind", [FormatError, OptionError, AlignmentError, OutputError])
def test_messages_are_kept_whole(kind):
    assert str(kind("a sentence; what to do")) == "a sentence; what to do"
