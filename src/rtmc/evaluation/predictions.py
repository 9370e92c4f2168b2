"""Hand patches to the SWE-bench harness: predictions as it reads them, and the command."""

import shlex
from collections.abc import Mapping, Sequence

import msgspec

from rtmc.errors import OptionError

__all__ = ["Prediction", "encode_predictions", "harness_command", "predictions_of_runs"]


class Prediction(msgspec.Struct, frozen=True):
    """One row of a predictions file, in the harness's words.

    Attributes:
        instance_id: the problem.
        model_name_or_path: names the harness's folders and report.
        model_patch: a unified diff against the problem's base commit; the harness does not run an
            empty one and reports it in ``empty_patch_ids``.
    """

    instance_id: str
    model_name_or_path: str
    model_patch: str


def predictions_of_runs(
    patches: Mapping[tuple[str, str], str], model: str
) -> list[list[Prediction]]:
    """Make predictions of patches, one list for each run of the problems.

    The harness keeps one prediction a problem, so that several rollouts of a problem need several
    files: the first rollout of every problem goes to the first list, and so on. A problem with
    fewer rollouts is missing in the later ones.

    Args:
        patches: by problem id and rollout id, the rollouts of a problem in their order.
        model: name of the model.
    """
    by_problem: dict[str, list[Prediction]] = {}
    for (problem, _), patch in patches.items():
        by_problem.setdefault(problem, []).append(Prediction(problem, model, patch))
    most = max(map(len, by_problem.values()), default=0)
    return [[rows[run] for rows in by_problem.values() if run < len(rows)] for run in range(most)]


def encode_predictions(rows: Sequence[Prediction]) -> bytes:
    """Write predictions as JSON lines, for a file whose name ends in ``.jsonl``."""
    return msgspec.json.Encoder().encode_lines(rows)


def harness_command(path: str, dataset: str, run_id: str, workers: int = 4) -> str:
    """Write the command that judges a predictions file.

    It leaves ``MODEL.RUN_ID.json`` in the working folder, which ``--outcomes`` reads. What was
    judged under the same run id and model is not judged again: give every run its own.

    Args:
        path: of the predictions, ``.json`` or ``.jsonl``.
        dataset: its name, or the path of a JSON file.
        run_id: of this run.
        workers: containers at a time.

    Raises:
        OptionError: the harness does not read such a file.
    """
    if not path.endswith((".json", ".jsonl")):
        raise OptionError(f"{path}: the harness reads .json and .jsonl; name the file so")
    return shlex.join(
        ["python", "-m", "swebench.harness.run_evaluation", "--dataset_name", dataset,
         "--predictions_path", path, "--max_workers", str(workers), "--run_id", run_id]
    )  # fmt: skip
