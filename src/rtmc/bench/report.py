"""Print what a report costs: its size, the time to write it, and how the page answers.

size        the page against its input, gzipped
writing     ``rtmc report`` against ``rtmc credit`` on the same input, whole commands in turn
first paint from opening the file to the first paint, headless Chromium
opening     of a made-up group of 64 rollouts × 100 steps, until its tree is drawn
γ           a change of the discount there, until everything is drawn again
"""

import gzip
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from rtmc.bench.speed import machine
from rtmc.errors import MissingExtraError, OptionError

__all__ = ["large_group", "measure", "table"]

ROUNDS = 5
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def measure(path: str) -> dict[str, Any]:
    """Take all figures.

    Args:
        path: rollouts, in one file.

    Raises:
        MissingExtraError: playwright is not installed.
        OptionError: there is no Chromium.
    """
    with tempfile.TemporaryDirectory() as folder:
        page, large = Path(folder, "page.html"), Path(folder, "large.html")
        rollouts = Path(folder, "large.jsonl")
        rollouts.write_text("".join(large_group()))
        writing, crediting = [], []
        for _ in range(ROUNDS):
            crediting.append(_run("credit", path, "-o", str(Path(folder, "credit.jsonl"))))
            writing.append(_run("report", path, "-o", str(page)))
        _run("report", str(rollouts), "-o", str(large))
        raw = Path(path).read_bytes()
        size = page.stat().st_size
        packed = len(raw) if raw[:2] == b"\x1f\x8b" else len(gzip.compress(raw))
        return {
            "machine": machine(),
            "input_gzipped_bytes": packed,
            "page_bytes": size,
            "page_to_input": size / packed,
            "report_s": median(writing),
            "report_to_credit": median(r / c for r, c in zip(writing, crediting, strict=True)),
            **_in_chromium(page, large),
        }


def table(figures: dict[str, Any]) -> Iterator[str]:
    """Write the figures for people."""
    yield f"machine      {figures['machine']}"
    yield (
        f"size         {figures['page_bytes'] / 1e6:.2f} MB = {figures['page_to_input']:.1f} × the "
        f"input, gzipped ({figures['input_gzipped_bytes'] / 1e6:.2f} MB)"
    )
    yield (
        f"writing      {figures['report_s']:.2f} s = {figures['report_to_credit']:.1f} × the time "
        "of rtmc credit"
    )
    yield f"first paint  {figures['first_paint_ms']:.0f} ms"
    yield f"opening      {figures['open_large_ms']:.0f} ms for 64 rollouts × 100 steps"
    yield (
        f"γ            {figures['gamma_ms']:.0f} ms until drawn again, of which computing "
        f"{figures['gamma_compute_ms']:.0f} (64 × 100)"
    )


def large_group(rollouts: int = 64, steps: int = 100, seed: int = 0) -> Iterator[str]:
    """Make up chat messages of one problem whose rollouts begin alike and part one by one."""
    chance = random.Random(seed)
    for number in range(rollouts):
        messages: list[dict[str, Any]] = []
        for step in range(steps):
            choice = chance.randrange(1 + step // 12)
            command = (
                f"cat src/file_{step % 9}_{choice}.py",
                f"sed -i 's/{step}/{choice}/' src/file_{choice}.py",
                f"python -m pytest tests/test_{choice}.py",
            )[step % 3]
            call = {
                "id": f"c{step}",
                "type": "function",
                "function": {"name": "bash", "arguments": json.dumps({"command": command})},
            }
            messages.append({"role": "assistant", "content": "Next.", "tool_calls": [call]})
            output = f"{chance.randrange(9)} passed in 0.1s"
            messages.append({"role": "tool", "tool_call_id": f"c{step}", "content": output})
        row = {
            "problem_id": "large",
            "rollout_id": f"run-{number:02}",
            "reward": float(chance.random() < 0.4),
            "messages": messages,
        }
        yield json.dumps(row) + "\n"


def _run(*args: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "rtmc.cli", *args], check=True, capture_output=True)
    return time.perf_counter() - start


_READY = "document.documentElement.dataset.ready === 'true'"
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
_GAMMA = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const times = [], computing = [];
  for (const gamma of [0.98, 0.97, 0.96, 0.95, 0.94]) {
    const start = performance.now();
    change({ gamma });
    computing.push(performance.now() - start);
    await frame();
    await frame();
    times.push(performance.now() - start);
  }
  return [times.sort((a, b) => a - b)[2], computing.sort((a, b) => a - b)[2]];
}"""


def _in_chromium(page: Path, large: Path) -> dict[str, float]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise MissingExtraError("playwright", "bench") from error
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise OptionError(
            "no Chromium on this machine; install it (Debian: apt-get install chromium)"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        try:
            paints = []
            for _ in range(ROUNDS):
                tab = browser.new_context().new_page()
                tab.goto(page.as_uri())
                tab.wait_for_function(_READY)
                tab.wait_for_function(f"{_PAINT} !== undefined")
                paints.append(tab.evaluate(_PAINT))
            tab = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
            tab.goto(large.as_uri())
            tab.wait_for_function(_READY)
            start = time.perf_counter()
            tab.evaluate("window.location.hash = '#/group/0/tree'")
            tab.wait_for_selector("svg.tree .item")
            opening = time.perf_counter() - start
            total, computing = tab.evaluate(_GAMMA)
        finally:
            browser.close()
    return {
        "first_paint_ms": median(paints),
        "open_large_ms": opening * 1e3,
        "gamma_ms": total,
        "gamma_compute_ms": computing,
    }
