"""transformers from raw strings to class names: batches in order, padded to their longest row."""

import json
from pathlib import Path

from side_by_side.turns import Turns, cores

turns = Turns()

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

BATCH = 32


def main() -> None:
    """Answers with milliseconds of classifying all texts."""
    torch.set_num_threads(cores())
    texts = json.loads(Path(turns.settings["data"]).read_text())
    source, way = turns.settings["model"], turns.settings["way"]
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = AutoModelForSequenceClassification.from_pretrained(source).eval()
    model.to(torch.bfloat16 if way == "bfloat16" else torch.float32)

    def classify() -> list[str]:
        labels: list[str] = []
        for start in range(0, len(texts), BATCH):
            batch = tokenizer(
                texts[start : start + BATCH],
                padding=True,
                truncation=True,
                max_length=turns.settings["length"],
                return_tensors="pt",
            )
            autocast = torch.autocast("cpu", torch.bfloat16, enabled=way == "autocast")
            with torch.inference_mode(), autocast:
                best = model(**batch).logits.argmax(dim=-1).tolist()
            labels.extend(model.config.id2label[i] for i in best)
        return labels

    turns.ready("torch", "transformers", "tokenizers", labels=classify())
    turns.serve({"classify": classify})


if __name__ == "__main__":
    main()
