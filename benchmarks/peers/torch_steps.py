"""What fine-tuning with PyTorch is made of: batches, AdamW with its schedule, slices of steps."""

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from side_by_side.turns import Turns, cores
from transformers import get_linear_schedule_with_warmup

BATCH = 32
NOT_DECAYED = ("bias", "LayerNorm.weight")


def begin(turns: Turns) -> Any:
    """Takes all cores and the seed 1; returns the data that the settings name."""
    torch.set_num_threads(cores())
    torch.manual_seed(1)
    random.seed(1)
    return json.loads(Path(turns.settings["data"]).read_text())


def batches(lengths: list[int], pool: int) -> Iterator[list[int]]:
    """Indices of batches, epoch after epoch; sorted by length inside pools of so many batches."""
    count, width = len(lengths), pool * BATCH
    while True:
        order = random.sample(range(count), count)
        if pool > 1:
            pools = [order[i : i + width] for i in range(0, count, width)]
            order = [i for rows in pools for i in sorted(rows, key=lambda row: lengths[row])]
        starts = list(range(0, count, BATCH))
        random.shuffle(starts)
        yield from (order[start : start + BATCH] for start in starts)


def updates(model: Any, steps: int) -> Callable[[Any], None]:
    """A function of the loss that updates the weights: clipped to norm 1, linear schedule.

    Biases and LayerNorms are not decayed.
    """
    groups: dict[float, list[Any]] = {0.01: [], 0.0: []}
    for name, weight in model.named_parameters():
        groups[0.0 if name.endswith(NOT_DECAYED) else 0.01].append(weight)
    parameters = [{"params": group, "weight_decay": decay} for decay, group in groups.items()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    schedule = get_linear_schedule_with_warmup(optimizer, steps // 10, steps)

    def update(loss: Any) -> None:
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()

    return update


def serve_steps(turns: Turns, step: Callable[[], Any]) -> None:
    """Runs as many steps as each request asks for; `step` returns the attention mask it used."""
    while (request := turns.wait()) is not None:
        start = time.perf_counter()
        masks = [step() for _ in range(request["steps"])]
        seconds = time.perf_counter() - start
        tokens, cells = (sum(int(mask.sum()) for mask in masks), sum(m.numel() for m in masks))
        turns.answer(steps=len(masks), seconds=seconds, tokens=tokens, cells=cells)
