"""Greedy decoding without attention, with Bahdanau's and by convolutions: kbert beside PyTorch.

    python benchmarks/greedy_decoding_speed.py MULTI30K_DIRECTORY --peer-python PYTHON

Models of the sizes of `ladder.py` with random weights decode 20 tokens of each of 64 sources, and
of one alone. PyTorch runs a loop in Python over steps that keep what is known between them
(`peers/torch_greedy_decoding.py`).
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side.contender import Contender, play, ratio
from side_by_side.ladder_rungs import SIZES
from side_by_side.multi30k_data import read_split, train_pieces
from side_by_side.results import parser, write

WORKS = ("batch", "single")
ROWS, STEPS = 64, 20


def prepare(folder: Path, directory: Path) -> dict[str, Any]:
    """Writes the sources; returns what contenders must know."""
    train = read_split(directory, "train")
    pieces = train_pieces(train, folder / "pieces.model")
    texts = read_split(directory, "test_2016_flickr").sources[:ROWS]
    ids = pieces.tokenize(texts).to_list()
    width = max(len(row) for row in ids) + 1
    rows = [[*row, pieces.end_id] for row in ids]
    mask = np.array([[place < len(row) for place in range(width)] for row in rows])
    padded = np.array([[*row, *[pieces.padding_id] * (width - len(row))] for row in rows], "int32")
    np.savez(folder / "sources.npz", ids=padded, mask=mask)
    sizes = {"vocabulary_size": len(pieces), "start": pieces.start_id, "end": pieces.end_id}
    return {"data": str(folder / "sources.npz"), "steps": STEPS, **sizes}


def main() -> None:
    """Runs both on each architecture."""
    arguments_parser = parser("greedy_decoding_speed", __doc__)
    arguments_parser.add_argument("directory", type=Path, help="folder with train.en.gz and so on")
    arguments: argparse.Namespace = arguments_parser.parse_args()
    rows, everyone = [], []
    with tempfile.TemporaryDirectory() as name:
        settings = prepare(Path(name), arguments.directory)
        vocabulary = settings.pop("vocabulary_size")
        for architecture in ("rnn", "bahdanau", "convs2s"):
            size = SIZES[architecture] | {"dropout": 0.0, "vocabulary_size": vocabulary}
            cell = {} if architecture == "convs2s" else {"cell": "gru_reset_after"}
            given = {**settings, "architecture": architecture, "size": size | cell}
            kbert = Contender("kbert", "contenders.kbert_greedy_decoding", WORKS, **given)
            module, python = "peers.torch_greedy_decoding", arguments.peer_python
            torch = Contender("torch", module, WORKS, python, **given)
            play([kbert, torch], [{"work": w, "repeats": 5} for w in WORKS], arguments.rounds)
            for contender in (kbert, torch):
                row = {"architecture": architecture, "contender": contender.name}
                batch, single = (contender.median(work) or 1e30 for work in WORKS)
                row["tokens_per_second"] = round(1e3 * ROWS * STEPS / batch)
                row["ms_of_one_sentence"] = round(single, 1)
                if contender is kbert:
                    row["times_as_fast_in_batches"] = ratio(torch, kbert, "batch")
                    row["times_as_fast_alone"] = ratio(torch, kbert, "single")
                rows.append(row)
            everyone += [kbert, torch]
    facts = {"rounds": arguments.rounds, "sentences": ROWS, "steps": STEPS}
    write(arguments.output, {"rows": rows}, everyone, facts)


if __name__ == "__main__":
    main()
