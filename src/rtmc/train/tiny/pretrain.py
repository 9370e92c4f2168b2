"""Make the start checkpoint of ``tiny``: a small Llama that imitates made-up rollouts.

    python -m rtmc.train.tiny.pretrain -o FOLDER

First repositories of one function of three lines, so that it learns to copy a line and to see where
code and remark part; then files of two functions; then whole problems; last, habits that are not
good, which reinforcement learning is to break. The same command goes on from the end of the last
stage that it finished.
"""

import copy
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import click
import msgspec
import torch
from torch.utils.data import DataLoader, IterableDataset
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

from rtmc.agent.models.shorthand import END, PAD, Shorthand
from rtmc.agent.tasks.tiny import Knobs, TinyProblems
from rtmc.agent.tasks.tiny.program import MODULES, NAMES
from rtmc.atomic import open_atomic
from rtmc.errors import OptionError
from rtmc.train.tiny.lessons import Habits, lesson

__all__ = ["STAGES", "Stage", "new_model", "pretrain"]

GOOD = Habits(search=1, follow=1, patience=1, place=1, fix=1, test=0.6, retry=1, give_up=0)
LONGEST = 448
KEPT = "stage.pt"
SHOWN, SAID = 1, 2
OBSERVED = 1.0
"""Weight of what tools say: to foresee a remark is to see where it parts from the code."""
WARM_UP = 80
PROBED = 3
"""Layer after which a linear probe is to see where code and remark part."""


class Stage(msgspec.Struct, frozen=True):
    """What is imitated for a while.

    Attributes:
        until: share of the steps at which it ends.
        knobs: of the problems.
        habits: of the pupil.
    """

    until: float
    knobs: Knobs
    habits: Habits


STAGES = (
    Stage(0.48, Knobs(modules=1, functions=1, depth=0), GOOD),
    Stage(0.74, Knobs(modules=1, functions=2, depth=0), GOOD),
    Stage(0.95, Knobs(), GOOD),
    Stage(1.0, Knobs(), Habits()),
)


def new_model(
    chat: Shorthand, hidden: int = 128, layers: int = 6, heads: int = 4
) -> LlamaForCausalLM:
    """Make a model with random weights for the words of a chat."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(chat.words),
            hidden_size=hidden,
            intermediate_size=3 * hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            max_position_embeddings=1024,
            tie_word_embeddings=True,
            pad_token_id=chat.ids[PAD],
            bos_token_id=None,
            eos_token_id=chat.ids[END],
        )
    )


class _Lessons(IterableDataset):
    """Batches without end: tokens, and the weight of each."""

    def __init__(self, stage: Stage, chat: Shorthand, batch: int, first: int) -> None:
        self.stage, self.chat, self.batch, self.first = stage, chat, batch, first

    def __iter__(self) -> Iterator[tuple[torch.Tensor, ...]]:
        problems = TinyProblems(self.stage.knobs)
        number = self.first
        while True:
            rows = []
            for _ in range(self.batch):
                problem = problems[number % len(problems)]
                rows.append(lesson(problem, self.stage.habits, self.chat, Random(number)))
                number += 1
            width = min(max(len(row.ids) for row in rows), LONGEST)
            ids = torch.full((self.batch, width), self.chat.ids[PAD])
            kinds = torch.zeros(self.batch, width, dtype=torch.long)
            parts = torch.full((self.batch, width), -1.0)
            for at, row in enumerate(rows):
                length = min(len(row.ids), width)
                ids[at, :length] = torch.tensor(row.ids[:length])
                kinds[at, :length] = torch.where(torch.tensor(row.said[:length]), SAID, SHOWN)
                marks = [-1.0 if part is None else float(part) for part in row.parts[:length]]
                parts[at, :length] = torch.tensor(marks)
            yield ids, kinds, parts


def pretrain(
    folder: Path,
    *,
    steps: int = 4200,
    batch: int = 16,
    learning_rate: float = 1.5e-3,
    seed: int = 0,
    stages: tuple[Stage, ...] = STAGES,
) -> None:
    """Train a model from random weights and save it.

    Args:
        folder: where it goes, as a transformers checkpoint with its words.
        steps: of training.
        batch: rollouts of a step.
        learning_rate: the highest; warm-up over ``WARM_UP`` steps, a cosine to a tenth.
        seed: of weights and rollouts.
        stages: what is imitated.

    Raises:
        OptionError: the folder holds an unfinished run of other options.
    """
    torch.manual_seed(seed)
    chat = Shorthand.of([*MODULES, *NAMES])
    model = new_model(chat)
    probe = torch.nn.Linear(model.config.hidden_size, 1)
    optimizer = torch.optim.AdamW(
        [*model.parameters(), *probe.parameters()], betas=(0.9, 0.98), weight_decay=0.01
    )
    parts = {"model": model, "probe": probe, "optimizer": optimizer}
    options = [steps, batch, learning_rate, seed, repr(stages)]
    kept = folder / KEPT
    done = _go_on(parts, kept, options)
    began = time.monotonic()
    shown: deque[tuple[float, ...]] = deque(maxlen=100)
    ends = {round(stage.until * steps) for stage in stages}
    for step, number, rows in _batches(stages, steps, batch, seed, chat, done):
        falling = 0.55 + 0.45 * math.cos(math.pi * step / steps)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * min(1.0, (step + 1) / WARM_UP) * falling
        losses, told = _losses(model, probe, rows, chat)
        torch.stack(losses).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        shown.append(told)
        if (step + 1) % 100 == 0:
            said, parting, line, fix = (sum(c) / len(shown) for c in zip(*shown, strict=True))
            click.echo(
                f"step {step + 1}, {(time.monotonic() - began) / 60:.1f} min, stage {number}: loss "
                f"of what is said {said:.3f}, of where they part {parting:.3f}, line exact "
                f"{line:.2f}, fix exact {fix:.2f}"
            )
        if step + 1 in ends:
            folder.mkdir(parents=True, exist_ok=True)
            states = {name: part.state_dict() for name, part in parts.items()}
            with open_atomic(kept) as file:
                torch.save({"step": step + 1, "options": options} | states, file)
    _save(model, chat, folder)
    kept.unlink()


def _go_on(parts: dict[str, Any], kept: Path, options: list[Any]) -> int:
    """Take up the end of the last stage that was finished; give the steps done.

    Raises:
        OptionError: it is of another run.
    """
    if not kept.exists():
        return 0
    states = torch.load(kept)
    if states["options"] != options:
        raise OptionError(f"{kept} comes from other options; remove it, or choose another -o")
    for name, part in parts.items():
        part.load_state_dict(states[name])
    click.echo(f"going on after step {states['step']} ({kept})")
    return states["step"]


Rows = tuple[torch.Tensor, ...]


def _batches(
    stages: Sequence[Stage], steps: int, batch: int, seed: int, chat: Shorthand, done: int
) -> Iterator[tuple[int, int, Rows]]:
    """Give the batches after those done: each with its step, and the number of its stage."""
    for number, stage in enumerate(stages):
        first = 20_000_003 * (1 + seed) + number * 5_000_011
        lessons = _Lessons(stage, chat, batch, first)
        until = round(stage.until * steps)
        if until <= done:
            continue
        coming = iter(DataLoader(lessons, None, num_workers=1, prefetch_factor=8))
        for step in range(done, until):
            yield step, number, next(coming)
        done = until


def _losses(
    model: LlamaForCausalLM, probe: torch.nn.Linear, rows: Rows, chat: Shorthand
) -> tuple[list[torch.Tensor], tuple[float, ...]]:
    """Compute what is to be made small, and what is to be shown."""
    ids, kinds, parts = rows
    output = model(input_ids=ids, attention_mask=(kinds > 0).long(), output_hidden_states=True)
    logits = output.logits[:, :-1]
    losses = -logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
    said, foreseen = (losses[kinds[:, 1:] == kind].mean() for kind in (SAID, SHOWN))
    marked = parts >= 0
    seen = probe(output.hidden_states[PROBED][marked]).squeeze(-1)
    parting = torch.nn.functional.binary_cross_entropy_with_logits(seen, parts[marked])
    exact = _exact(logits.argmax(-1) == ids[:, 1:], ids, kinds, chat)
    told = (float(said.detach()), float(parting.detach()), *exact)
    return [said, OBSERVED * foreseen, parting], told


def _save(model: LlamaForCausalLM, chat: Shorthand, folder: Path) -> None:
    """Write the checkpoint in half precision."""
    folder.mkdir(parents=True, exist_ok=True)
    copy.deepcopy(model).half().save_pretrained(folder)
    chat.save(folder)


def _exact(
    hits: torch.Tensor, ids: torch.Tensor, kinds: torch.Tensor, chat: Shorthand
) -> tuple[float, float]:
    """Give the share of changes whose line, and whose fix, would be written without an error."""
    replace, by, end = (chat.ids[word] for word in ("replace", "by", "end"))
    lines, fixes = [], []
    for at, row in enumerate(ids[:, 1:].tolist()):
        for start in (n for n, id in enumerate(row) if id == replace and kinds[at, n + 1] == SAID):
            try:
                middle = row.index(by, start)
                stop = row.index(end, middle)
            except ValueError:
                continue
            lines.append(bool(hits[at, start + 1 : middle].all()))
            fixes.append(bool(hits[at, middle:stop].all()))
    return sum(lines) / max(len(lines), 1), sum(fixes) / max(len(fixes), 1)


@click.command()
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path))
@click.option("--steps", default=4200, show_default=True)
@click.option("--batch", default=16, show_default=True)
@click.option("--learning-rate", default=1.5e-3, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(output: Path, **options: float) -> None:
    """Make the start checkpoint of tiny."""
    logging.disable_progress_bar()
    pretrain(output, **options)  # ty: ignore


if __name__ == "__main__":
    main()
