"""transformers on PyTorch learns to tag words; prints its tags as JSON.

    python -m peers.torch_ner SENTENCES.json MODEL_DIRECTORY SEED EPOCHS

The recipe is that of `ner.py` but for the batches: random ones, padded to their longest, as in the
usual loop. The file holds {"labels": [...], "train": {"words", "tags"}, "test": {"words"}}.
"""

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import torch
from peers.torch_steps import BATCH, updates
from transformers import AutoModelForTokenClassification, AutoTokenizer

LENGTH = 128


def encoded(tokenizer: Any, words: list[list[str]]) -> Any:
    """A padded batch."""
    options = {"truncation": True, "max_length": LENGTH, "padding": True, "return_tensors": "pt"}
    return tokenizer(words, is_split_into_words=True, **options)


def first_tokens(batch: Any, row: int) -> dict[int, int]:
    """Word -> its first token, for the words that are left after cutting."""
    places: dict[int, int] = {}
    for place, word in enumerate(batch.word_ids(row)):
        if word is not None:
            places.setdefault(word, place)
    return places


def trained(
    model: Any, tokenizer: Any, labels: list[str], train: dict[str, Any], epochs: int
) -> tuple[float, float]:
    """Trains; returns seconds and real tokens a second."""
    ids = {label: number for number, label in enumerate(labels)}
    rows = list(range(len(train["words"])))
    update = updates(model, epochs * -(-len(rows) // BATCH))
    start, tokens = time.perf_counter(), 0
    model.train()
    for _ in range(epochs):
        random.shuffle(rows)
        for begin in range(0, len(rows), BATCH):
            chosen = rows[begin : begin + BATCH]
            batch = encoded(tokenizer, [train["words"][i] for i in chosen])
            targets = torch.full(batch["input_ids"].shape, -100)
            for row, i in enumerate(chosen):
                for word, place in first_tokens(batch, row).items():
                    targets[row, place] = ids[train["tags"][i][word]]
            update(model(**batch, labels=targets).loss)
            tokens += int(batch["attention_mask"].sum())
    seconds = time.perf_counter() - start
    return seconds, tokens / seconds


def tags_of(
    model: Any, tokenizer: Any, labels: list[str], sentences: list[list[str]]
) -> list[list[str]]:
    """The tags of the words; "O" for what was cut off."""
    model.eval()
    found = []
    with torch.no_grad():
        for begin in range(0, len(sentences), BATCH):
            words = sentences[begin : begin + BATCH]
            batch = encoded(tokenizer, words)
            best = model(**batch).logits.argmax(-1)
            for row, sentence in enumerate(words):
                places = first_tokens(batch, row)
                found.append(
                    [
                        labels[best[row, places[i]]] if i in places else "O"
                        for i in range(len(sentence))
                    ]
                )
    return found


def main() -> None:
    """Trains and tags."""
    file, directory, seed, epochs = sys.argv[1:]
    data = json.loads(Path(file).read_text())
    random.seed(int(seed))
    torch.manual_seed(int(seed))
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForTokenClassification.from_pretrained(
        directory, num_labels=len(data["labels"])
    )
    seconds, speed = trained(model, tokenizer, data["labels"], data["train"], int(epochs))
    tags = tags_of(model, tokenizer, data["labels"], data["test"]["words"])
    print(json.dumps({"tags": tags, "seconds": seconds, "real_tokens_per_second": speed}))


if __name__ == "__main__":
    main()
