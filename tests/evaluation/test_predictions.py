"""What the SWE-bench harness is handed."""

import json
import shlex

import pytest

from rtmc.errors import OptionError
from rtmc.evaluation import encode_predictions, harness_command, predictions_of_runs

PATCHES = {
    ("django__django-11239", "r0"): "diff --git a/x b/x\n",
    ("sympy__sympy-1", "r0"): "",
    ("django__django-11239", "r1"): "diff --git a/y b/y\n",
}


def test_one_list_for_each_run_of_the_problems() -> None:
    first, second = predictions_of_runs(PATCHES, "org/model")
    assert [row.instance_id for row in first] == ["django__django-11239", "sympy__sympy-1"]
    assert [row.model_patch for row in second] == ["diff --git a/y b/y\n"]
    assert predictions_of_runs({}, "m") == []


def test_rows_are_json_lines_in_the_harness_s_words() -> None:
    lines = encode_predictions(predictions_of_runs(PATCHES, "org/model")[0]).splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "instance_id": "django__django-11239",
            "model_name_or_path": "org/model",
            "model_patch": "diff --git a/x b/x\n",
        },
        {"instance_id": "sympy__sympy-1", "model_name_or_path": "org/model", "model_patch": ""},
    ]


def test_command() -> None:
    command = harness_command("my runs/1.jsonl", "SWE-bench/SWE-bench_Verified", "base-1", 8)
    assert command == (
        "python -m swebench.harness.run_evaluation --dataset_name SWE-bench/SWE-bench_Verified "
        "--predictions_path 'my runs/1.jsonl' --max_workers 8 --run_id base-1"
    )
    assert shlex.split(command)[6] == "my runs/1.jsonl"
    with pytest.raises(OptionError, match=r"reads \.json and \.jsonl"):
        harness_command("predictions.txt", "d", "r")
