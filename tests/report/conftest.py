"""One browser for all tests of the report, and pages of the groups that most of them look at."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Opened, chromium, write_page
from pages import EXAMPLE, kinds
from rtmc import read
from rtmc.rollouts import Group


@pytest.fixture(scope="session")
def chrome() -> Iterator[Opened]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def browser(chrome: Opened) -> Iterator[Opened]:
    """Lend the browser, which must have logged nothing and asked the network for nothing."""
    chrome.forget()
    yield chrome
    assert chrome.problems == []
    assert chrome.requests == []


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="session")
def example() -> Group:
    (group,) = read(str(EXAMPLE))
    return group


@pytest.fixture(scope="session")
def example_page(folder: Path, example: Group) -> Path:
    return write_page(folder / "example.html", [example])


@pytest.fixture(scope="session")
def kinds_page(folder: Path) -> Path:
    return write_page(folder / "kinds.html", kinds())


@pytest.fixture(scope="session")
def real_groups(real: Path) -> list[Group]:
    return read(str(real / "groups" / "terminal-bench.jsonl"))


@pytest.fixture(scope="session")
def real_page(folder: Path, real_groups: list[Group]) -> Path:
    return write_page(folder / "real.html", real_groups, title="real groups")
