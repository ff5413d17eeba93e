"""Translated tokens a second: kbert, CTranslate2 and transformers with the same weights.

    python benchmarks/translation_speed.py MULTI30K_DIRECTORY TRANSLATOR FUSED
    python benchmarks/translation_speed.py MULTI30K_DIRECTORY --size base

All of test_2016_flickr from raw strings to raw strings, beam 5, length penalty n^1; then 50
sentences one by one. The fused translator, which has other weights, is timed beside the others.
With --size the weights are random, of that size and a vocabulary of 16,000 pieces of both
languages, and every sentence gets 16 tokens: random models seldom end.
"""

import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import sentencepiece
from side_by_side.contender import Contender, play, ratio
from side_by_side.results import parser, write
from side_by_side.translation_models import prepare

WORKS = ("translate", "single")
FUSED = ", fused"
# An op has one thread and two batches go side by side, as in "CTranslate2, 2 at a time". Patience 1
# stops where CTranslate2 does; None stops where nothing better can come.
WAYS: dict[str, dict[str, Any]] = {
    "": {},
    ", exact": {"patience": None},
    ", TensorFlow's threads": {"intra": 0},
    ", shortlist": {"model": "shortlist"},
    ", frozen": {"frozen": True},
    ", frozen, shortlist": {"frozen": True, "model": "shortlist"},
    FUSED: {"model": "fused"},
}
BEAM, BATCH, SINGLE, STEPS = 5, 64, 50, 16


def contenders(folder: Path, settings: dict[str, Any], python: str) -> list[Contender]:
    """kbert in three precisions, seven ways each; CTranslate2, transformers."""
    made = []
    for kind, (name, changes) in product(("int8", "float32", "mixed_bfloat16"), WAYS.items()):
        options = {**settings, "model": "kbert", "patience": 1.0, "intra": 1, **changes}
        options |= {"dtype": "float32", "precision": kind} if kind == "int8" else {"dtype": kind}
        options["model"] = str(folder / options["model"])
        module = "contenders.kbert_translation"
        made.append(Contender(f"kbert {kind}{name}", module, WORKS, **options))
    for kind, inter in product(("float32", "int8"), (1, 2)):
        options = {**settings, "model": str(folder / "ctranslate2"), "type": kind}
        options |= {"inter": inter, "batch": BATCH}
        name = f"CTranslate2 {kind}, {inter} at a time"
        made.append(Contender(name, "peers.ctranslate2_translation", WORKS, **options))
    options = {**settings, "model": str(folder / "kbert")}
    made.append(Contender("transformers", "peers.torch_translation", WORKS, python, **options))
    return made


def rows_of(
    played: list[Contender], pieces: str, steps: int | None
) -> dict[str, list[dict[str, Any]]]:
    """A row for each contender, of translations that have `steps` tokens each, if not None."""
    processor = sentencepiece.SentencePieceProcessor(model_file=pieces)
    run = {c.name: c for c in played if c.median("translate")}
    own = run.get("kbert float32")
    rows: list[dict[str, Any]] = []
    for name, contender in run.items():
        found = contender.facts["translations"]
        # The end is a token too; of a fixed number of steps some make it the last, others a word.
        tokens = sum(steps or len(ids) + 1 for ids in processor.encode(found))
        seconds = 1e-3 * (contender.median("translate") or 1e30)
        row: dict[str, Any] = {"contender": name, "tokens_per_second": round(tokens / seconds)}
        row["milliseconds_a_sentence"] = round((contender.median("single") or 0.0) / SINGLE, 1)
        if name.endswith(FUSED):
            vanilla = run.get(name.removesuffix(FUSED))
            if vanilla is not None:
                row["time_by_vanilla"] = ratio(contender, vanilla, "translate")
        elif own is not None:
            same = sum(a == b for a, b in zip(found, own.facts["translations"], strict=True))
            row["same_as_kbert"] = round(same / len(found), 4)
            row["time_by_kbert_float32"] = ratio(contender, own, "translate")
        rows.append(row)
    return {"rows": rows}


def main() -> None:
    """Runs all contenders."""
    arguments_parser = parser("translation_speed", __doc__)
    arguments_parser.add_argument("directory", type=Path, help="folder with test_2016_flickr.en.gz")
    arguments_parser.add_argument("translator", nargs="?", help="a translator saved by kbert")
    arguments_parser.add_argument("fused", nargs="?", help="a fused translator")
    arguments_parser.add_argument("--size", help="random weights of this size instead")
    arguments_parser.add_argument("--sentences", type=int, help="only the first so many")
    arguments_parser.add_argument("--only", nargs="+", help="names of contenders; by default all")
    arguments = arguments_parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        prepared = prepare(Path(name), arguments)
        steps = None if arguments.size is None else STEPS
        settings: dict[str, Any] = {**prepared, "beam": BEAM, "steps": steps}
        played = contenders(Path(name), settings, arguments.peer_python)
        played = [one for one in played if one.name in (arguments.only or [one.name])]
        requests = [{"work": work, "repeats": 1} for work in WORKS]
        play(played, requests, arguments.rounds)
        rows = rows_of(played, settings["pieces"], steps)
    about = {"beam": BEAM, "size": arguments.size or "as saved", "rounds": arguments.rounds}
    write(arguments.output, rows, played, about | {"sentences": arguments.sentences or "all"})


if __name__ == "__main__":
    main()
