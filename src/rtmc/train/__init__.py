"""Train an agent with step-level credit, on TRL's GRPO trainer. Needs the extra ``train``.

``config`` says what a run is, ``run`` sets it up and goes on with it, ``trainer`` is the training
itself: collect, credit, loss. ``tiny`` makes the start checkpoint of the embedded default.
"""

from rtmc.train.config import TrainConfig
from rtmc.train.toml import load, presets

__all__ = ["TrainConfig", "load", "presets"]
