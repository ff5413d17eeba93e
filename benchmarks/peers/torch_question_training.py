"""Learning to answer by spans with PyTorch and transformers, in slices of so many steps.

Windows of the fast tokenizer, made before the first step as is usual; batches of like length.
"""

import time
from typing import Any

from side_by_side.turns import Turns

turns = Turns()

import torch
from peers.torch_steps import batches, begin, serve_steps, updates
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

KEYS = ("input_ids", "token_type_ids", "attention_mask")


def place(cut: Any, window: int, start: int, end: int) -> tuple[int, int]:
    """The first and last token of an answer in a window, or [CLS] where it is not whole there."""
    kinds = cut.sequence_ids(window)
    tokens = [
        token
        for token, (first, last) in enumerate(cut["offset_mapping"][window])
        if kinds[token] == 1 and first < end and last > start
    ]
    offsets = cut["offset_mapping"][window]
    whole = tokens and offsets[tokens[0]][0] <= start and offsets[tokens[-1]][1] >= end
    return (tokens[0], tokens[-1]) if whole else (0, 0)


def main() -> None:
    """Trains until no request comes."""
    data = begin(turns)
    tokenizer = AutoTokenizer.from_pretrained(turns.settings["encoder"])
    model = AutoModelForQuestionAnswering.from_pretrained(turns.settings["encoder"]).train()
    start = time.perf_counter()
    cut = tokenizer(
        data["questions"],
        data["contexts"],
        truncation="only_second",
        max_length=turns.settings["length"],
        stride=turns.settings["stride"],
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    places = [
        place(cut, window, *data["answers"][row])
        for window, row in enumerate(cut["overflow_to_sample_mapping"])
    ]
    tokenization = time.perf_counter() - start
    update = updates(model, turns.settings["total_steps"])
    plan = batches([len(ids) for ids in cut["input_ids"]], turns.settings["pool"])
    autocast = turns.settings["precision"] != "float32"

    def step() -> Any:
        rows = next(plan)
        columns = {key: [cut[key][row] for row in rows] for key in KEYS}
        batch = tokenizer.pad(columns, return_tensors="pt")
        starts, ends = torch.tensor([places[row] for row in rows]).T
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = model(**batch, start_positions=starts, end_positions=ends).loss
        update(loss)
        return batch["attention_mask"]

    turns.ready("torch", "transformers", "tokenizers", tokenization=tokenization)
    serve_steps(turns, step)


if __name__ == "__main__":
    main()
