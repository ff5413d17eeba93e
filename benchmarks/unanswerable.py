"""SQuAD 2.0 without its training data: questions that their text cannot answer are made.

    python benchmarks/unanswerable.py SQUAD_DIRECTORY RUN_DIRECTORY --model minilm-squad

A question of SQuAD 1.1's training data with another paragraph of the same article, in which its
answer does not stand, has no answer there. A model that answers learns from both kinds. The
threshold of the null score is found on one half of SQuAD 2.0's dev set, by article; measured is the
other half.
"""

import argparse
import random
import time
from pathlib import Path
from typing import Any

import keras
from side_by_side.question_splits import split_by_title, with_non_answers
from side_by_side.results import keep_row

from kbert.data.batches.plans import batch_plan
from kbert.data.questions.squad import read_squad
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.question_answering.model import QuestionAnswerer
from kbert.tasks.question_answering.task import measure_answers

RESULTS = Path(__file__).parent / "results" / "unanswerable.json"
KEY = ("model", "answerable", "share", "rate")
SEED = 1


def train(arguments: argparse.Namespace) -> dict[str, Any]:
    """Trains, finds the threshold, and measures; the model is kept."""
    keras.utils.set_random_seed(SEED)
    guessed = set((arguments.data / "train-v1.1.ambiguous_ids.txt").read_text().split())
    every = read_squad(arguments.data / "train-v1.1.json.gz")
    rows = [row for row, name in enumerate(every.ids) if name not in guessed]
    chosen = every.select(random.Random(SEED).sample(rows, arguments.questions))
    learned = with_non_answers(chosen, arguments.share, SEED)
    model = QuestionAnswerer.from_pretrained(arguments.model, dtype="mixed_bfloat16")
    windows, targets = model.examples(model.read_inputs(learned), learned.answers)
    steps = len(batch_plan(windows.packed.lengths, 32, shuffle=True))
    model.compile(optimizer=AdamW(WarmupLinearDecay(arguments.rate, steps, steps // 10)))
    start = time.perf_counter()
    model.fit(model.dataset(windows, targets, batch_size=32, shuffle=True, seed=SEED), verbose=2)
    seconds = time.perf_counter() - start
    model.save_pretrained(arguments.run)
    dev = read_squad(arguments.data / "dev-v2.0.json.gz")
    tuned, measured = split_by_title(dev, (0.5, 0.5), SEED)
    shipped = QuestionAnswerer.from_pretrained(arguments.run)
    found, _ = measure_answers(shipped, tuned, find_threshold=True)
    scores, _ = measure_answers(shipped, measured)
    return {
        "questions": len(learned),
        "made": len(learned) - len(chosen),
        "threshold": round(float(found["null_threshold"]), 4),
        "tuned_on": len(tuned),
        "f1_there": round(found["f1"], 2),
        "measured_on": len(measured),
        **{k: round(v, 2) for k, v in scores.items() if isinstance(v, float) and "thresh" not in k},
        "training_seconds": round(seconds),
    }


def main() -> None:
    """Trains once; the scores are kept beside those of other settings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with train-v1.1.json.gz and so on")
    parser.add_argument("run", type=Path, help="new folder for the model")
    parser.add_argument("--model", default="minilm-squad", help="what training begins with")
    parser.add_argument("--questions", type=int, default=16000, help="with an answer")
    parser.add_argument("--share", type=float, default=0.5, help="made ones for each of these")
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    row: dict[str, Any] = {"model": arguments.model, "answerable": arguments.questions}
    row |= {"share": arguments.share, "rate": arguments.rate}
    keep_row(arguments.output, row | train(arguments), KEY)


if __name__ == "__main__":
    main()
