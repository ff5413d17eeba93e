"""A network in ONNX Runtime with `tokenizers`, from raw strings to a class, an answer, entities."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from side_by_side.turns import cores
from tokenizers import Tokenizer

COLUMNS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}


class Network:
    """A folder with model.onnx and tokenizer.json, as docs/export.md has it.

    Args:
        folder: the folder.
        threads: threads of an operation; 0 means one for each core.
    """

    def __init__(self, folder: Path, threads: int = 0) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or cores()
        path = str(folder / "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        self.names = [one.name for one in self.session.get_inputs()]
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.config = json.loads((folder / "config.json").read_text())
        self.labels = list(self.config.get("id2label", {}).values())

    def run(self, encoded: list[Any]) -> list[np.ndarray]:
        """The outputs of rows of tokens."""
        columns = {name: [getattr(e, COLUMNS[name]) for e in encoded] for name in self.names}
        rows = {name: np.array(column, "int64") for name, column in columns.items()}
        return list(self.session.run(None, rows))

    def classes(self, texts: list[str]) -> list[str]:
        """The class of each text, by probabilities, as kbert gives them."""
        (logits,) = self.run(self.tokenizer.encode_batch(texts))
        scores = np.exp(logits - logits.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        return [self.labels[best] for best in scores.argmax(-1)]

    def answer(self, question: str, context: str) -> str:
        """The best span of all windows."""
        (first,) = self.tokenizer.encode_batch([(question, context)])
        windows, found = [first, *first.overflowing], []
        longest = self.config["kbert"]["max_answer_length"]
        for window, start, end in zip(windows, *self.run(windows)):
            inside = np.array([part == 1 for part in window.sequence_ids])
            allowed = np.tril(np.triu(np.outer(inside, inside)), longest - 1)
            scores = np.where(allowed, start[:, None] + end, -np.inf)
            i, j = np.unravel_index(scores.argmax(), scores.shape)
            found.append((scores[i, j], window.offsets[i][0], window.offsets[j][1]))
        _, begin, stop = max(found)
        return context[begin:stop]

    def entities(self, text: str) -> list[list[str]]:
        """The entities of a text of one window: words by their first tokens, tags by B- and I-."""
        (encoded,) = self.tokenizer.encode_batch([text])
        (logits,) = self.run([encoded])
        found: list[tuple[str, int, int]] = []
        words, before = set(), "O"
        for place, best in enumerate(logits[0].argmax(-1)):
            word = encoded.word_ids[place]
            if word is None:
                continue
            begin, end = encoded.offsets[place]
            if word in words:  # a further part of a word of the last entity, or of none
                if before != "O":
                    found[-1] = (*found[-1][:2], end)
                continue
            words.add(word)
            tag = self.labels[best]
            if tag != "O" and tag.startswith("I-") and before[2:] == tag[2:]:
                found[-1] = (*found[-1][:2], end)
            elif tag != "O":
                found.append((tag[2:], begin, end))
            before = tag
        return [[one[0] for one in found], [text[one[1] : one[2]] for one in found]]
