"""Let the tests here import what they share, and leave torch one thread: there is little to do."""

import sys
import warnings
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "agent" / "tasks")]


@pytest.fixture(autouse=True)
def quietly() -> object:
    """Let TRL and transformers warn of what is theirs to change."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield None
    torch.set_num_threads(threads)
