"""Times the rungs of the ladder: training, translation of many sentences and of one; memory.

    python benchmarks/ladder_speed.py MULTI30K_DIRECTORY RUNS

Each rung is measured in a process of its own, on the model that ladder.py trained for a direction
(seed 1), in float32 on all cores: target pieces a second of training on the batches of the
ladder, target pieces a second of translating the first test set, the median time of one sentence
alone, and the most memory that the process had.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from side_by_side.ladder_rungs import RUNGS, made, run_folder
from side_by_side.machine import machine
from side_by_side.multi30k_data import TESTS, read_split, train_pieces
from side_by_side.results import table

from kbert.storage.files import write_atomically
from kbert.tasks.translation.model import Translator

RESULTS = Path(__file__).parent / "results" / "ladder_speed.json"


def training_speed(rung: str, arguments: argparse.Namespace, steps: int) -> float:
    """Target pieces a second, real ones, after the graph was made."""
    data, file = arguments.data, arguments.runs / "multi30k_bpe.model"
    pieces = train_pieces(read_split(data, "train", "en-de"), file)
    model = made(rung, pieces, RUNGS[rung].dropout, "float32")
    model.compile()
    train = read_split(data, "train", arguments.direction)
    packed = model.pack(train.sources[:4000], train.targets[:4000])
    batches = model.dataset(packed, batch_tokens=2048).take(steps)
    model.fit(batches, verbose=0)  # makes the graph
    begin = time.perf_counter()
    model.fit(batches, verbose=0)
    seconds = time.perf_counter() - begin
    return sum(int(np.count_nonzero(np.asarray(y) >= 0)) for _, y, *_ in batches) / seconds


def translation(run: Path, sources: list[str], beam: int) -> tuple[float, float]:
    """Target pieces a second of a test set, and the median milliseconds of one sentence."""
    model = Translator.from_pretrained(run / "model", dtype="float32", beam_size=beam)
    model.predict(sources[:64])
    begin = time.perf_counter()
    found = model.predict(sources)
    seconds = time.perf_counter() - begin
    pieces = sum(len(ids) for ids in model.target_subwords.tokenize(tf.constant(found)))
    alone = []
    for source in sources[:40]:
        begin = time.perf_counter()
        model.predict([source])
        alone.append(1000 * (time.perf_counter() - begin))
    return pieces / seconds, statistics.median(alone[10:])


def measured(rung: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """All numbers of a rung, by this process."""
    run = run_folder(arguments.runs, rung, arguments.direction, 1)
    sources = read_split(arguments.data, TESTS[0], arguments.direction).sources
    speed, one = translation(run, sources, 5)
    greedy, one_greedy = translation(run, sources, 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "rung": rung,
        "trained pieces/s": round(training_speed(rung, arguments, 30)),
        "beam 5, pieces/s": round(speed),
        "greedy, pieces/s": round(greedy),
        "one sentence, beam 5, ms": round(one, 1),
        "one sentence, greedy, ms": round(one_greedy, 1),
        "MiB to translate": round(memory),
    }


def main() -> None:
    """Measures each rung that is trained in a process of its own, and writes the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with train.en.gz and so on")
    parser.add_argument("runs", type=Path, help="folder of the runs of ladder.py")
    parser.add_argument("--direction", choices=("de-en", "en-de"), default="en-de")
    parser.add_argument("--only", choices=list(RUNGS), help="print one rung's numbers")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(measured(arguments.only, arguments)))
        return
    rows, given = [], [str(arguments.data), str(arguments.runs), "--direction", arguments.direction]
    # A rung that only learns longer costs what that of its architecture does.
    for rung in (name for name in RUNGS if "24" not in name):
        if not (run_folder(arguments.runs, rung, arguments.direction, 1) / "model").is_dir():
            continue
        own = [sys.executable, __file__, *given, "--only", rung]
        done = subprocess.run(own, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    found = {"machine": machine(), "settings": {"direction": arguments.direction}, "rows": rows}
    write_atomically(arguments.output, json.dumps(found, indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
