"""transformers from questions and whole articles to answers, with the windows of its tokenizer."""

import json
from pathlib import Path
from typing import Any

from side_by_side.turns import Turns, cores

turns = Turns()

import numpy as np
import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

BATCH = 32  # windows
BEST = 20  # starts and ends that are paired
LONGEST = 30  # tokens of an answer


def best_span(
    start: np.ndarray, end: np.ndarray, places: list[Any], context: str
) -> tuple[float, str]:
    """The best pair of a start and an end in one window, as the usual post-processing finds it."""
    found = (-1e30, "")
    for first in np.argsort(-start)[:BEST]:
        for last in np.argsort(-end)[:BEST]:
            if not (places[first] and places[last] and first <= last < first + LONGEST):
                continue
            score = float(start[first] + end[last])
            if score > found[0]:
                found = (score, context[places[first][0] : places[last][1]])
    return found


def main() -> None:
    """Answers with milliseconds of answering all questions."""
    torch.set_num_threads(cores())
    rows = json.loads(Path(turns.settings["data"]).read_text())
    source, way = turns.settings["model"], turns.settings["way"]
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = AutoModelForQuestionAnswering.from_pretrained(source).eval()
    model.to(torch.bfloat16 if way == "bfloat16" else torch.float32)

    def answer_one(question: str, context: str) -> str:
        cut = tokenizer(
            question,
            context,
            truncation="only_second",
            max_length=turns.settings["length"],
            stride=turns.settings["stride"],
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding=True,
            return_tensors="pt",
        )
        found = []
        keys = ("input_ids", "token_type_ids", "attention_mask")
        for begin in range(0, len(cut["input_ids"]), BATCH):
            batch = {key: cut[key][begin : begin + BATCH] for key in keys}
            autocast = torch.autocast("cpu", torch.bfloat16, enabled=way == "autocast")
            with torch.inference_mode(), autocast:
                out = model(**batch)
            starts, ends = out.start_logits.float().numpy(), out.end_logits.float().numpy()
            for row in range(len(starts)):
                which = cut.sequence_ids(begin + row)
                offsets = cut["offset_mapping"][begin + row].tolist()
                places = [o if s == 1 else None for o, s in zip(offsets, which)]
                found.append(best_span(starts[row], ends[row], places, context))
        return max(found)[1]

    def answer() -> list[str]:
        return [answer_one(question, context) for question, context in rows]

    turns.ready("torch", "transformers", "tokenizers", answers=answer())
    turns.serve({"answer": answer})


if __name__ == "__main__":
    main()
