"""ONNX Runtime and tokenizers from raw strings to class ids: one text, and batches of 32."""

import json
from pathlib import Path
from typing import Any

from side_by_side.turns import Turns, cores

turns = Turns()

import numpy as np
import onnxruntime
from tokenizers import BertWordPieceTokenizer

BATCH = 32


def main() -> None:
    """Answers with milliseconds of a pass over the short texts one by one, or of all in batches."""
    texts = json.loads(Path(turns.settings["data"]).read_text())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = cores()
    path = turns.settings["onnx"]
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    tokenizer = BertWordPieceTokenizer(turns.settings["vocabulary"], lowercase=True)
    tokenizer.enable_truncation(turns.settings["length"])
    tokenizer.enable_padding()

    def classify(some: list[str]) -> list[int]:
        encoded = tokenizer.encode_batch(some)
        ids = np.array([one.ids for one in encoded], "int64")
        mask = np.array([one.attention_mask for one in encoded], "int64")
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids * 0}
        logits = session.run(None, inputs)[0]
        scores = np.exp(logits - logits.max(-1, keepdims=True))
        return list((scores / scores.sum(-1, keepdims=True)).argmax(-1))

    singles = texts[: turns.settings["singles"]]

    def single() -> list[Any]:
        return [classify([text]) for text in singles]

    def batches() -> list[Any]:
        starts = range(0, len(texts), BATCH)
        return [classify(texts[start : start + BATCH]) for start in starts]

    labels = [turns.settings["labels"][i] for found in batches() for i in found]
    turns.ready("onnxruntime", "tokenizers", labels=labels)
    turns.serve({"one text": single, "batches of 32": batches})


if __name__ == "__main__":
    main()
