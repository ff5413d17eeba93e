"""Fine-tuning with PyTorch and transformers, in slices of as many steps as it is asked for.

Batches are random, or of like length, and padded to their longest row.
"""

from typing import Any

from side_by_side.turns import Turns

turns = Turns()

import torch
from peers.torch_steps import batches, begin, serve_steps, updates
from transformers import AutoModelForSequenceClassification, AutoTokenizer


def main() -> None:
    """Trains until no request comes."""
    data = begin(turns)
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

    update = updates(model, turns.settings["total_steps"])
    lengths = [len(ids) for ids in encode(list(range(len(targets))))["input_ids"]]
    plan = batches(lengths, turns.settings["pool"])

    def step() -> Any:
        rows = next(plan)
        batch = encode(rows, padding=True, return_tensors="pt")
        update(model(**batch, labels=torch.tensor([targets[i] for i in rows])).loss)
        return batch["attention_mask"]

    turns.ready("torch", "transformers", "tokenizers")
    serve_steps(turns, step)


if __name__ == "__main__":
    main()
