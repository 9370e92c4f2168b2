"""Write the page: markup, style and script, and every group as a compressed block.

Nothing of a rollout enters the markup: a block is base64 of deflated JSON, which the script unpacks
when the group is opened, and puts into the page as text only. A policy in the page forbids every
request and every script but the page's own.
"""

import base64
import hashlib
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import msgspec

from rtmc import __version__
from rtmc.config import Config
from rtmc.credit import credit
from rtmc.output import open_atomic
from rtmc.report.page.data import IN_PAGE, SignedGroup, group_values
from rtmc.report.page.overview import Overview

__all__ = ["PageWriter", "data_block", "open_page", "page_end", "page_head", "script_of"]

SCRIPTS = (
    "dom.js", "credit.js", "graph.js", "store.js", "overview.js", "tree.js", "detail.js",
    "compare.js", "quadrants.js", "keys.js", "app.js",
)  # fmt: skip
TEXT_LIMIT = 20_000


class PageWriter:
    """Takes groups one after another; memory holds one and the overview."""

    def __init__(self, file: IO[bytes], config: Config, shown_config: dict[str, Any], title: str,
                 text_limit: int = TEXT_LIMIT) -> None:  # fmt: skip
        self._file = file
        self._config = config
        self._shown = shown_config
        self._title = title
        self._text_limit = text_limit
        self._overview = Overview()
        self._groups = 0
        self._script = script_of(SCRIPTS)
        file.write(page_head(self._script))

    def add(self, signed: SignedGroup) -> None:
        """Credit a group and write it."""
        computed = credit(signed.group, signed.config or self._config, signed.signer)
        self._overview.add(signed, computed)
        values = group_values(signed, computed, self._text_limit)
        self._file.write(data_block(f"group-{self._groups}", values))
        self._groups += 1

    def close(self) -> None:
        """Write the overview and the script."""
        values = self._overview.values()
        values |= {"title": self._title, "config": self._shown, "inPage": IN_PAGE}
        self._file.write(data_block("overview", values))
        self._file.write(page_end(self._script))


@contextmanager
def open_page(
    path: str | Path,
    config: Config,
    *,
    shown_config: dict[str, Any] | None = None,
    title: str = "",
    text_limit: int = TEXT_LIMIT,
) -> Generator[PageWriter]:
    """Open a report; the file appears at the end, whole.

    Args:
        path: where to write.
        config: settings of the credit.
        shown_config: settings to print, if others than ``config`` made the numbers.
        title: what the report is of.
        text_limit: characters kept of each thought, argument and observation.

    Raises:
        OutputError: the place cannot be written to.
    """
    with open_atomic(path) as file:
        writer = PageWriter(file, config, shown_config or config.as_dict(), title, text_limit)
        yield writer
        writer.close()


def script_of(names: Sequence[str]) -> str:
    """Join the page's own scripts."""
    return "\n".join(["'use strict';", *map(_resource, names)])


def page_head(script: str) -> bytes:
    """Write what comes before the data: markup, style, and the policy that allows ``script``."""
    style = _resource("style.css")
    head = _resource("page.html")
    for mark, value in (
        ("@POLICY@", _policy(script, style)),
        ("@STYLE@", style),
        ("@VERSION@", __version__),
    ):
        head = head.replace(mark, value)
    return head.encode()


def data_block(name: str, values: dict[str, Any]) -> bytes:
    """Write values as a block that the script unpacks by its name."""
    packed = zlib.compressobj(6, wbits=-15)
    body = packed.compress(_json(values)) + packed.flush()
    return (
        f'<script type="application/x-rtmc" id="{name}">'.encode()
        + base64.b64encode(body)
        + b"</script>\n"
    )


def page_end(script: str) -> bytes:
    """Write what comes after the data."""
    return f"<script>{script}</script>\n</body>\n</html>\n".encode()


def _resource(name: str) -> str:
    return files("rtmc.report.page").joinpath(name).read_text(encoding="utf-8")


def _policy(script: str, style: str) -> str:
    """Allow this script and this style by their digests, and nothing else."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; script-src 'sha256-{digest(script)}'; "
        f"style-src 'sha256-{digest(style)}'; base-uri 'none'; form-action 'none'"
    )


def _json(values: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(values)
    except UnicodeEncodeError:  # half a surrogate pair, which Python holds and UTF-8 cannot
        return msgspec.json.encode(_encodable(values))


def _encodable(value: Any) -> Any:
    """Replace what UTF-8 cannot hold in all texts of a value."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value
