"""Evaluate a model from its rollouts: figures with intervals, comparisons, checkpoints.

    rates        pass@k, majority over runs, the 95 % interval
    record       counts of every problem and the figures made of them: ``rtmc.evaluation/1``
    changes      two evaluations on the same problems: difference, gained, lost
    checkpoints  the best of several, and by how much its figure flatters it
    predictions  patches for the SWE-bench harness

Pure: no files, no clock; the one generator of random numbers is handed in. ``docs/evaluation.md``
says what each figure means.
"""

from rtmc.evaluation.changes import Change, Comparison, Flips, compare
from rtmc.evaluation.checkpoints import Best, best_checkpoint
from rtmc.evaluation.predictions import (
    Prediction,
    encode_predictions,
    harness_command,
    predictions_of_runs,
)
from rtmc.evaluation.rates import Figure, majority, pass_at_k
from rtmc.evaluation.record import (
    SCHEMA,
    Evaluation,
    Problem,
    Settings,
    decode_evaluation,
    encode_evaluation,
    evaluate,
    with_figures,
)

__all__ = [
    "SCHEMA",
    "Best",
    "Change",
    "Comparison",
    "Evaluation",
    "Figure",
    "Flips",
    "Prediction",
    "Problem",
    "Settings",
    "best_checkpoint",
    "compare",
    "decode_evaluation",
    "encode_evaluation",
    "encode_predictions",
    "evaluate",
    "harness_command",
    "majority",
    "pass_at_k",
    "predictions_of_runs",
    "with_figures",
]
