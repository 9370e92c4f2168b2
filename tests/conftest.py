"""Let test modules import ``oracle``, make hypothesis repeat itself, begin with the longest."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile(
    "rtmc",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("rtmc")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes minutes: the last of it would keep one core busy alone."""
    items.sort(key=lambda item: "train" not in item.path.parts)


@pytest.fixture(scope="session")
def real() -> Path:
    """Real trajectories, which are kept beside the checkout on some machines only."""
    path = Path(__file__).parents[1].parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("the real trajectories are not on this machine")
    return path
