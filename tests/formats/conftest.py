"""Where the test data are: small files of the project's own, and real ones if there are any."""

from pathlib import Path

import pytest


@pytest.fixture
def data() -> Path:
    """The project's own small files, one or more of each format."""
    return Path(__file__).parents[1] / "data" / "formats"
