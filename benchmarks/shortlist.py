"""Shortlists of several sizes for a translator of `ladder.py`: BLEU, candidates and time.

    python benchmarks/shortlist.py MULTI30K runs/ladder/transformer-de-en-2/model

From German to English: they are learned from the training set, and the test set of 2016 is
translated with beam 5, stopping at five finished translations; then 50 sentences one by one, all
with each shortlist in turn.
"""

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from side_by_side.multi30k_data import TESTS, read_split
from side_by_side.results import parser, write
from side_by_side.translation_scores import tokenized_bleu

import kbert
from kbert.tasks.translation.shortlist import candidates_of

# Translations of a piece, pieces allowed everywhere; None for the whole vocabulary.
SIZES = ((None, None), (200, 200), (100, 100), (30, 100), (10, 50))
SINGLE = 50


def measured(model: Any, test: Any, rounds: int) -> tuple[dict[str, Any], list[str]]:
    """Numbers and translations with the present shortlist."""
    model.translations(test.sources[:2])
    whole, single = [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        found = model.translations(test.sources)
        whole.append(time.perf_counter() - begin)
        for text in test.sources[:SINGLE]:
            begin = time.perf_counter()
            model.translations([text])
            single.append(time.perf_counter() - begin)
    numbers = {
        "bleu": tokenized_bleu(found, test.targets)["tokenized_lowercase_bleu"],
        "seconds": round(statistics.median(whole), 2),
        "milliseconds_a_sentence": round(1e3 * statistics.median(single), 1),
    }
    return numbers, found


def candidates(model: Any, sources: list[str]) -> float:
    """The median number of pieces that a sentence may be translated with."""
    inputs, _, _ = model.source_inputs(tf.constant(sources))
    end, size = model.target_subwords.end_id, model.transformer.vocabulary_size
    hidden = candidates_of(model.shortlist, inputs, end, size, 1).hidden.numpy()
    return float(np.median((hidden == 0).sum(axis=1)))


def main() -> None:
    """Measures, prints and writes."""
    arguments = parser("shortlist", __doc__)
    arguments.add_argument("data", type=Path, help="folder with train.en.gz and so on")
    arguments.add_argument("model", help="a translator from German to English")
    options = arguments.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    train = read_split(options.data, "train", "de-en")
    test = read_split(options.data, TESTS[0], "de-en")
    model = kbert.load(options.model, patience=1.0)
    rows: list[dict[str, Any]] = []
    first: list[str] = []
    for translations, everywhere in SIZES:
        model.shortlist = None
        row: dict[str, Any] = {"translations": translations, "everywhere": everywhere}
        row["candidates"] = len(model.target_subwords)
        if translations is not None:
            begin = time.perf_counter()
            sizes = {"translations": translations, "everywhere": everywhere}
            model.learn_shortlist(train.sources, train.targets, **sizes)
            row["seconds_to_learn"] = round(time.perf_counter() - begin, 1)
            row["candidates"] = candidates(model, test.sources)
        numbers, found = measured(model, test, options.rounds)
        first = first or found
        same = sum(a == b for a, b in zip(found, first, strict=True))
        rows.append({**row, **numbers, "same": round(same / len(found), 3)})
    about = {"rounds": options.rounds, "model": Path(options.model).parent.name}
    write(options.output, {"rows": rows}, [], about)


if __name__ == "__main__":
    main()
