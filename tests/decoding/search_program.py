"""Searches some random tables on whatever backend Keras runs; run on two of them.

Nothing here needs TensorFlow.
"""

import keras
import numpy as np
from keras import ops

from kbert.decoding.search import greedy_search
from tests.decoding.searching import END, LONGEST, run
from tests.decoding.spelling import START, Speller, normalized, random_tables

FIELDS = ("token_ids", "lengths", "scores", "log_probabilities")
MAX_LENGTHS = [4, 7, 1, 2, 7]
# name -> (options of the search, rows, share of -inf, added to the end)
PROBLEMS = {
    "one": ({"beam_size": 1}, 5, 0.0, 0.0),
    "three": ({"beam_size": 3, "nbest": 2, "penalty": "gnmt"}, 5, 0.2, -1.0),
    "five": ({"beam_size": 5, "nbest": 5, "penalty": "power", "min_length": 1}, 5, 0.0, -3.0),
    "long": ({"beam_size": 2, "min_length": 1, "penalty": "root"}, 2, 0.0, -5.0),
    "nothing": ({"beam_size": 2}, 0, 0.0, 0.0),
}


def tables_of(holes: float, added: float) -> np.ndarray:
    """The tables of a problem, five whether its rows are fewer or not."""
    tables = random_tables(5, 97, 5, seed=11, holes=holes)
    tables[:, :, END] += added
    return normalized(tables)


def outputs() -> dict[str, np.ndarray]:
    """Every problem's arrays, by "problem/field"; and greedy search on the first tables."""
    found = {}
    for name, (options, rows, holes, added) in PROBLEMS.items():
        limits = np.array(MAX_LENGTHS[:rows], "int32")
        found[name], _ = run(tables_of(holes, added), limits, **options)
    step = Speller(tables_of(0.0, 0.0), 1, LONGEST)
    found["greedy"] = greedy_search(
        step,
        step.state(np.arange(5, dtype="int32")),
        5,
        start_id=START,
        end_id=END,
        max_lengths=np.array(MAX_LENGTHS, "int32"),
    )
    return {
        f"{name}/{field}": ops.convert_to_numpy(getattr(hypotheses, field))
        for name, hypotheses in found.items()
        for field in FIELDS
    }


def main(path: str) -> None:
    """Writes everything, and the backend's name, to an npz file."""
    np.savez(path, backend=np.array(keras.backend.backend()), **outputs())
