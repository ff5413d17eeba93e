"""transformers from raw strings to translations: `generate` of a Marian model."""

import json
from pathlib import Path

from side_by_side.turns import Turns, cores

turns = Turns()

import sentencepiece
import torch
from peers.marian_weights import converted

SINGLE, BATCH = 50, 64


def main() -> None:
    """Answers with milliseconds of translating all sentences, and some one by one."""
    settings = turns.settings
    torch.set_num_threads(cores())
    texts = json.loads(Path(settings["data"]).read_text())
    pieces = sentencepiece.SentencePieceProcessor(model_file=settings["pieces"])
    model = converted(Path(settings["model"]))

    def translate(some: list[str]) -> list[str]:
        ids = [[*line, 3] for line in pieces.encode(some)]
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        found: dict[int, list[int]] = {}
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            most = len(ids[rows[0]])
            batch = torch.tensor([ids[i] + [0] * (most - len(ids[i])) for i in rows])
            with torch.inference_mode():
                output = model.generate(
                    input_ids=batch,
                    attention_mask=(batch != 0).long(),
                    num_beams=settings["beam"],
                    max_new_tokens=settings.get("steps") or 2 * most + 10,
                    length_penalty=1.0,
                    early_stopping=True,
                )
            found |= dict(zip(rows, output.tolist()))
        return pieces.decode([[t for t in found[i] if t > 3] for i in range(len(some))])

    def single() -> None:
        for text in texts[:SINGLE]:
            translate([text])

    turns.ready("torch", "transformers", "sentencepiece", translations=translate(texts))
    turns.serve({"translate": lambda: translate(texts), "single": single})


if __name__ == "__main__":
    main()
