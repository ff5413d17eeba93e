"""kbert from raw strings to class names: by an export, by `predict`, or by ONNX Runtime."""

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from side_by_side.turns import Turns

turns = Turns()

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from kbert.serving.export.export import export
from kbert.serving.loading.exported import load_export
from kbert.serving.portable.onnx_export import export_onnx
from kbert.tasks.classification.model import Classifier

BATCH = 32


def network(folder: Path, labels: list[str]) -> Callable[[list[str]], list[str]]:
    """Returns a function from texts to labels, of `tokenizers` and ONNX Runtime."""
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def labels_of(texts: list[str]) -> list[str]:
        rows = tokenizer.encode_batch(texts)
        columns = {"input_ids": "ids", "attention_mask": "attention_mask"}
        columns["token_type_ids"] = "type_ids"
        given = {k: np.array([getattr(row, v) for row in rows]) for k, v in columns.items()}
        return [labels[best] for best in session.run(None, given)[0].argmax(axis=-1)]

    return labels_of


def main() -> None:
    """Answers with milliseconds of classifying all texts."""
    texts = json.loads(Path(turns.settings["data"]).read_text())
    model = Classifier.from_pretrained(turns.settings["model"], dtype=turns.settings["dtype"])

    def predict() -> list[str]:
        return [model.labels[i] for i in model.predict(texts).argmax(axis=-1)]

    def in_batches(labels_of: Callable[[list[str]], list[str]]) -> list[str]:
        starts = range(0, len(texts), BATCH)
        return [one for start in starts for one in labels_of(texts[start : start + BATCH])]

    way, classify = turns.settings["way"], predict
    with tempfile.TemporaryDirectory() as folder:
        if way == "SavedModel":
            exported = load_export(export(model, folder))
            run = exported.run
            classify = partial(
                in_batches, lambda some: [label.decode() for label in run({"text": some})["label"]]
            )
        elif way == "ONNX":
            classify = partial(in_batches, network(export_onnx(model, folder), model.labels))
    turns.ready("kbert-tf", "keras", "tensorflow", "tensorflow-text", labels=classify())
    turns.serve({"classify": classify})


if __name__ == "__main__":
    main()
