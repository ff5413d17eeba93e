"""CTranslate2 from raw strings to translations, with SentencePiece beside it."""

import json
from pathlib import Path

from side_by_side.turns import Turns, cores

turns = Turns()

import ctranslate2
import sentencepiece

SINGLE = 50


def main() -> None:
    """Answers with milliseconds of translating all sentences, and some one by one."""
    settings = turns.settings
    texts = json.loads(Path(settings["data"]).read_text())
    folder = Path(settings["model"])
    pieces = sentencepiece.SentencePieceProcessor(model_file=settings["pieces"])
    workers = {"inter_threads": settings["inter"], "intra_threads": cores() // settings["inter"]}
    translator = ctranslate2.Translator(
        str(folder), device="cpu", compute_type=settings["type"], **workers
    )

    def translate(some: list[str]) -> list[str]:
        found = translator.translate_batch(
            pieces.encode(some, out_type=str),  # the folder says that an end is added
            beam_size=settings["beam"],
            length_penalty=1.0,
            max_batch_size=settings["batch"],
            max_decoding_length=settings.get("steps") or 256,
        )
        return pieces.decode([one.hypotheses[0] for one in found])

    def single() -> None:
        for text in texts[:SINGLE]:
            translate([text])

    turns.ready("ctranslate2", "sentencepiece", translations=translate(texts))
    turns.serve({"translate": lambda: translate(texts), "single": single})


if __name__ == "__main__":
    main()
