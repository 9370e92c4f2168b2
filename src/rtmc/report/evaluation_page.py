"""Write a finished evaluation, or two of them compared, as one self-contained page.

It has the style, the policy and the packed data of the report of rollouts, and a script of its own.
"""

from pathlib import Path
from typing import Any

import msgspec

from rtmc.atomic import open_atomic
from rtmc.evaluation import Comparison, Evaluation, compare
from rtmc.report.evaluation_text import conclusions, remarks
from rtmc.report.page.document import data_block, page_end, page_head, script_of

__all__ = ["write_evaluation_page"]

SCRIPTS = ("dom.js", "store.js", "evaluation.js")


def write_evaluation_page(
    path: str | Path, evaluation: Evaluation, before: Evaluation | None = None, title: str = ""
) -> None:
    """Write the page; the file appears at the end, whole.

    Args:
        path: where to write.
        evaluation: to show.
        before: to compare it against.
        title: what to call it.

    Raises:
        OptionError: the two cannot be compared.
        OutputError: the place cannot be written to.
    """
    found = None if before is None else compare(before, evaluation)
    script = script_of(SCRIPTS)
    values = {
        "title": title or evaluation.name,
        "settings": _settings(evaluation),
        "evaluations": msgspec.to_builtins(
            [evaluation] if before is None else [before, evaluation]
        ),
        "comparison": found and _values(found),
        "says": list(conclusions(found) if found else remarks(evaluation)),
    }
    with open_atomic(path) as file:
        file.write(page_head(script))
        file.write(data_block("evaluation", values))
        file.write(page_end(script))


def _settings(evaluation: Evaluation) -> str:
    settings = msgspec.structs.asdict(evaluation.settings)
    settings["k"] = ", ".join(map(str, settings["k"]))
    return "; ".join(f"{name} {value}" for name, value in settings.items())


def _values(found: Comparison) -> dict[str, Any]:
    values = msgspec.to_builtins(found)
    for row, change in zip(values["changes"], found.changes, strict=True):
        row["significant"] = change.significant
    return values
