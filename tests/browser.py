"""A real Chromium that opens reports, and says what it logged and asked the network for."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

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
        self.page.wait_for_function("document.documentElement.dataset.ready === 'true'")

    def settled(self) -> None:
        """Let two frames pass."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )


@contextmanager
def chromium(**context: Any) -> Iterator[Opened]:
    """Open a browser; skip the test where there is none."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")
    sync = pytest.importorskip("playwright.sync_api", reason="no playwright here (extra dev)")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        opened = Opened(
            browser.new_context(viewport={"width": 1400, "height": 900}, **context).new_page()
        )
        page = opened.page
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: opened.problems.append(str(error)))
        page.on("console", lambda said: opened.problems.append(said.text))
        page.on("dialog", lambda dialog: opened.problems.append(f"dialog {dialog.message}"))
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
