"""Translated tokens a second: kbert, CTranslate2 and transformers with the same weights.

    python benchmarks/translation_speed.py MULTI30K_DIRECTORY TRANSLATOR [--size base]

All of test_2016_flickr from raw strings to raw strings, beam 5, length penalty n^1; then 50
sentences one by one. With --size the weights are random, of that size and a vocabulary of 16,000
pieces of both languages, and every sentence gets 16 tokens: random models seldom end.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import sentencepiece
from side_by_side.contender import Contender, play, ratio
from side_by_side.multi30k_data import read_split
from side_by_side.results import parser, write

from kbert.models.transformer import Transformer
from kbert.pipelines.ctranslate2_folder import save_ctranslate2
from kbert.pipelines.translation import Translator
from kbert.text.subword_training import train_subwords

WORKS = ("translate", "single")
BEAM, BATCH, SINGLE, STEPS, VOCABULARY = 5, 64, 50, 16, 16_000


def prepare(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Writes sentences and model in all formats; returns what contenders must know."""
    split = read_split(arguments.directory, "test_2016_flickr")
    sentences = split.sources[: arguments.sentences]
    (folder / "texts.json").write_text(json.dumps(sentences))
    model = Translator.from_pretrained(arguments.translator)
    if arguments.size is not None:
        train = read_split(arguments.directory, "train")
        pieces = train_subwords(
            [train.sources, train.targets], folder / "pieces.model", vocabulary_size=VOCABULARY
        )
        model = Translator(Transformer.from_size(arguments.size, len(pieces)), pieces, pieces)
    model.save_pretrained(folder / "kbert")
    save_ctranslate2(model, folder / "ctranslate2")
    return {
        "data": str(folder / "texts.json"),
        "pieces": str(folder / "kbert" / "source.model"),
        "beam": BEAM,
        "steps": None if arguments.size is None else STEPS,
    }


def contenders(folder: Path, settings: dict[str, Any], python: str) -> list[Contender]:
    """kbert in both precisions and both stops, CTranslate2 and transformers."""
    made = []
    for dtype in ("float32", "mixed_bfloat16"):
        # Patience 1 stops where CTranslate2 does; None stops where nothing better can come.
        for name, patience in (("", 1.0), (" exact", None)):
            options = {**settings, "model": str(folder / "kbert"), "dtype": dtype}
            options["patience"] = patience
            module = "contenders.kbert_translation"
            made.append(Contender(f"kbert {dtype}{name}", module, WORKS, **options))
    for kind, inter in (("float32", 1), ("float32", 2), ("int8", 2)):
        options = {**settings, "model": str(folder / "ctranslate2"), "type": kind}
        options |= {"inter": inter, "batch": BATCH}
        name = f"CTranslate2 {kind}, {inter} at a time"
        made.append(Contender(name, "peers.ctranslate2_translation", WORKS, **options))
    options = {**settings, "model": str(folder / "kbert")}
    made.append(Contender("transformers", "peers.torch_translation", WORKS, python, **options))
    return made


def rows_of(played: list[Contender], pieces: str) -> dict[str, list[dict[str, Any]]]:
    """A row for each contender."""
    processor = sentencepiece.SentencePieceProcessor(model_file=pieces)
    run = {c.name: c for c in played if c.median("translate")}
    own = run.get("kbert float32")
    rows: list[dict[str, Any]] = []
    for name, contender in run.items():
        found = contender.facts["translations"]
        tokens = sum(len(ids) + 1 for ids in processor.encode(found))  # the end is a token too
        seconds = 1e-3 * (contender.median("translate") or 1e30)
        row: dict[str, Any] = {"contender": name, "tokens_per_second": round(tokens / seconds)}
        row["milliseconds_a_sentence"] = round((contender.median("single") or 0.0) / SINGLE, 1)
        if own is not None:
            same = sum(a == b for a, b in zip(found, own.facts["translations"], strict=True))
            row["same_as_kbert"] = round(same / len(found), 4)
            row["time_by_kbert_float32"] = ratio(contender, own, "translate")
        rows.append(row)
    return {"rows": rows}


def main() -> None:
    """Runs all contenders."""
    arguments_parser = parser("translation_speed", __doc__)
    arguments_parser.add_argument("directory", type=Path, help="folder with test_2016_flickr.en.gz")
    arguments_parser.add_argument("translator", type=Path, help="a translator saved by kbert")
    arguments_parser.add_argument("--size", help="random weights of this size instead")
    arguments_parser.add_argument("--sentences", type=int, help="only the first so many")
    arguments = arguments_parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        settings = prepare(Path(name), arguments)
        played = contenders(Path(name), settings, arguments.peer_python)
        requests = [{"work": work, "repeats": 1} for work in WORKS]
        play(played, requests, arguments.rounds)
        rows = rows_of(played, settings["pieces"])
    write(arguments.output, rows, played, {"beam": BEAM, "size": arguments.size or "as saved"})


if __name__ == "__main__":
    main()
