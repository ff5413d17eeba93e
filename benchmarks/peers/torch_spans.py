"""Answers by spans with transformers: windows of its tokenizer, the usual post-processing."""

from typing import Any

import numpy as np
import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

BATCH = 32  # windows
BEST = 20  # starts and ends that are paired
LONGEST = 30  # tokens of an answer
KEYS = ("input_ids", "token_type_ids", "attention_mask")


def best_span(
    start: np.ndarray, end: np.ndarray, places: list[Any], context: str
) -> tuple[float, str]:
    """The best pair of a start and an end in one window."""
    found = (-1e30, "")
    for first in np.argsort(-start)[:BEST]:
        for last in np.argsort(-end)[:BEST]:
            if not (places[first] and places[last] and first <= last < first + LONGEST):
                continue
            score = float(start[first] + end[last])
            if score > found[0]:
                found = (score, context[places[first][0] : places[last][1]])
    return found


class SpanReader:
    """A question answering model in one precision.

    Args:
        source: a Hugging Face folder.
        way: "float32", "autocast" or "bfloat16".
        length: tokens of a window.
        stride: tokens that windows share.
    """

    def __init__(self, source: str, way: str, length: int, stride: int) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(source)
        self.model = AutoModelForQuestionAnswering.from_pretrained(source).eval()
        self.model.to(torch.bfloat16 if way == "bfloat16" else torch.float32)
        self.autocast = way == "autocast"
        self.cut = {"max_length": length, "stride": stride}

    def answer(self, question: str, context: str) -> str:
        """The best answer over all windows."""
        cut = self.tokenizer(
            question,
            context,
            truncation="only_second",
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding=True,
            return_tensors="pt",
            **self.cut,
        )
        found = []
        for begin in range(0, len(cut["input_ids"]), BATCH):
            batch = {key: cut[key][begin : begin + BATCH] for key in KEYS}
            autocast = torch.autocast("cpu", torch.bfloat16, enabled=self.autocast)
            with torch.inference_mode(), autocast:
                out = self.model(**batch)
            starts, ends = out.start_logits.float().numpy(), out.end_logits.float().numpy()
            for row in range(len(starts)):
                which = cut.sequence_ids(begin + row)
                offsets = cut["offset_mapping"][begin + row].tolist()
                places = [o if s == 1 else None for o, s in zip(offsets, which)]
                found.append(best_span(starts[row], ends[row], places, context))
        return max(found)[1]
