"""Train with rollouts that are written down, in as many processes as torchrun starts.

The group of ``p1``, the only one with signal, is split between two processes; in the third batch
none has any.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
warnings.simplefilter("ignore")
from scripted_training import Scripted, config_of, trainer_of  # noqa: E402

from rtmc.rollouts import Rollout  # noqa: E402


class Middle(Scripted):
    def roll_out(self, task: Any, places: Any, seed: int) -> list[Rollout]:
        self.live = frozenset(["p1"] if seed < 2 else [])
        return super().roll_out(task, places, seed)


torch.set_num_threads(1)
folder, processes = Path(sys.argv[1]), int(os.environ.get("WORLD_SIZE", "1"))
config = config_of(
    rollouts__problems=3,
    optimizer__steps=3,
    optimizer__micro_batch=12,
    optimizer__kl=0.1,
    optimizer__loss=sys.argv[2],
)
trainer = trainer_of(folder, config, Middle, processes)
trainer.train()
if trainer.accelerator.is_main_process:
    model = trainer.accelerator.unwrap_model(trainer.model)
    torch.save(model.state_dict(), folder / f"after-{processes}.pt")
    logged = [line for line in trainer.state.log_history if "loss" in line]
    (folder / "logged.json").write_text(json.dumps(logged))
