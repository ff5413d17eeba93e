"""transformers from questions and whole articles to answers, with the windows of its tokenizer."""

import json
from pathlib import Path

from side_by_side.turns import Turns, cores, memory

turns = Turns()

import torch
from peers.torch_spans import SpanReader


def main() -> None:
    """Answers with milliseconds of answering all questions."""
    torch.set_num_threads(cores())
    settings = turns.settings
    rows = json.loads(Path(settings["data"]).read_text())
    reader = SpanReader(
        settings["model"], settings["way"], settings["length"], settings["stride"]
    )

    loaded = memory()

    def answer() -> list[str]:
        return [reader.answer(question, context) for question, context in rows]

    packages = ("torch", "transformers", "tokenizers")
    turns.ready(*packages, loaded_mib=loaded, answers=answer())
    turns.serve({"answer": answer})


if __name__ == "__main__":
    main()
