"""Fine-tuning with PyTorch and transformers, in slices of as many steps as it is asked for.

AdamW without decay on biases and LayerNorms, gradients clipped to norm 1, linear schedule; batches
are random, or of like length, and padded to their longest row.
"""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from side_by_side.turns import Turns, cores

turns = Turns()

import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    get_linear_schedule_with_warmup,
)

BATCH = 32
NOT_DECAYED = ("bias", "LayerNorm.weight")


def optimizer_of(model: Any) -> Any:
    """AdamW with its two groups of weights."""
    groups: dict[float, list[Any]] = {0.01: [], 0.0: []}
    for name, weight in model.named_parameters():
        groups[0.0 if name.endswith(NOT_DECAYED) else 0.01].append(weight)
    parameters = [{"params": group, "weight_decay": decay} for decay, group in groups.items()]
    return torch.optim.AdamW(parameters, lr=1e-4)


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


def main() -> None:
    """Trains until no request comes."""
    torch.set_num_threads(cores())
    torch.manual_seed(1)
    random.seed(1)
    data = json.loads(Path(turns.settings["data"]).read_text())
    tokenizer = AutoTokenizer.from_pretrained(turns.settings["encoder"])
    classes = data["labels"] or ["score"]
    model = AutoModelForSequenceClassification.from_pretrained(
        turns.settings["encoder"], num_labels=len(classes)
    ).train()
    targets = [classes.index(y) for y in data["targets"]] if data["labels"] else data["targets"]

    def encode(rows: list[int], **options: Any) -> Any:
        texts = [[data["text_a"][i] for i in rows]]
        if data["text_b"] is not None:
            texts.append([data["text_b"][i] for i in rows])
        return tokenizer(*texts, truncation=True, max_length=turns.settings["length"], **options)

    optimizer, steps = optimizer_of(model), turns.settings["total_steps"]
    schedule = get_linear_schedule_with_warmup(optimizer, steps // 10, steps)
    lengths = [len(ids) for ids in encode(list(range(len(targets))))["input_ids"]]
    plan = batches(lengths, turns.settings["pool"])

    def step() -> tuple[int, int]:
        rows = next(plan)
        batch = encode(rows, padding=True, return_tensors="pt")
        loss = model(**batch, labels=torch.tensor([targets[i] for i in rows])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        return int(batch["attention_mask"].sum()), batch["attention_mask"].numel()

    turns.ready("torch", "transformers", "tokenizers")
    while (request := turns.wait()) is not None:
        start = time.perf_counter()
        counts = [step() for _ in range(request["steps"])]
        seconds = time.perf_counter() - start
        tokens, cells = (sum(column) for column in zip(*counts))
        turns.answer(steps=len(counts), seconds=seconds, tokens=tokens, cells=cells)


if __name__ == "__main__":
    main()
