"""A real Chromium that opens reports, and says what it logged and asked the network for."""

import re
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rtmc import Config
from rtmc.report.page import open_page
from rtmc.report.page.data import sign_group
from rtmc.rollouts import Group

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]
WIDE = {"width": 1400, "height": 900}


def write_page(
    path: Path, groups: Sequence[Group], config: Config = Config(), **options: Any
) -> Path:
    """Write a report of groups, as the command does."""
    with open_page(path, config, **options) as page:
        for group in groups:
            page.add(sign_group(group, config))
    return path


def number(text: str) -> float | None:
    """Read the first number of a text of the page, None where it shows a dash."""
    found = re.search(r"[+−-]?\d+(\.\d+)?(e[+-]?\d+)?", text)
    return float(found.group().replace("−", "-")) if found else None


@dataclass
class Opened:
    """A page, and what it did besides showing itself."""

    page: Any
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: Path, where: str = "") -> None:
        """Open a report at a place in it, and wait until it is drawn."""
        self.page.goto("about:blank")
        self.page.goto(f"file://{path}{where}")
        # a selector: the page's policy forbids the eval that waiting for a function needs
        self.page.wait_for_selector('html[data-ready="true"]', state="attached")

    def settled(self) -> None:
        """Let two frames pass."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def texts(self, selector: str) -> list[str]:
        """Give the text of every element that a selector finds."""
        return self.page.locator(selector).all_text_contents()

    def text(self, selector: str) -> str:
        """Give the text of the one element that a selector finds."""
        (found,) = self.texts(selector)
        return found

    def refuse(self, dialog: Any) -> None:
        """Close a dialog, which nothing in a report may open."""
        self.problems.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def forget(self) -> None:
        """Begin anew: in a wide and light window, without what an earlier test caused."""
        self.problems.clear()
        self.requests.clear()
        self.page.emulate_media(media="screen", color_scheme="light")
        self.page.set_viewport_size(WIDE)


@contextmanager
def chromium(**context: Any) -> Generator[Opened]:
    """Open a browser; skip the test where there is none."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")
    sync = pytest.importorskip("playwright.sync_api", reason="no playwright here (extra dev)")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        opened = Opened(browser.new_context(viewport=WIDE, **context).new_page())
        page = opened.page
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: opened.problems.append(str(error)))
        page.on("console", lambda said: opened.problems.append(said.text))
        page.on("dialog", opened.refuse)
        page.on(
            "request",
            lambda asked: (
                opened.requests.append(asked.url)
                if not asked.url.startswith(("file:", "about:"))
                else None
            ),
        )
        try:
            yield opened
        finally:
            browser.close()
