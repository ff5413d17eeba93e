"""Fine-tunes all-MiniLM-L6-v2 on SQuAD 1.1 and measures it on the whole dev set.

    python benchmarks/question_answering.py SQUAD_DIRECTORY --questions 8000

The recipe: AdamW, peak rate 1e-4, warm-up over 10 % of the steps, linear decay to 0, clipping at 1,
batches of 32 windows of like length, float32, windows of 384 tokens that share 128. Without the
questions whose answer stands in several places, and of the rest a random choice.
"""

import argparse
import random
import time
from pathlib import Path
from typing import Any

import keras
from side_by_side.results import keep_row

from kbert.data.batches.plans import batch_plan, padding_share
from kbert.data.questions.question_examples import QuestionExamples
from kbert.data.questions.squad import read_squad
from kbert.metrics.answers import squad_metrics
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.question_answering.model import QuestionAnswerer

RESULTS = Path(__file__).parent / "results" / "question_answering.json"
KEY = ("precision", "questions", "epochs", "rate", "seed")


def chosen_questions(directory: Path, count: int) -> QuestionExamples:
    """Some questions whose answer stands in one place, always the same."""
    ambiguous = set((directory / "train-v1.1.ambiguous_ids.txt").read_text().split())
    examples = read_squad(directory / "train-v1.1.json.gz")
    rows = [row for row, name in enumerate(examples.ids) if name not in ambiguous]
    random.Random(1).shuffle(rows)
    return examples.select(rows[:count])


def train(arguments: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Trains once and returns scores and speed."""
    keras.utils.set_random_seed(seed)
    examples = chosen_questions(arguments.directory, arguments.questions)
    model = QuestionAnswerer.from_pretrained("all-MiniLM-L6-v2", dtype=arguments.precision)
    start = time.perf_counter()
    windows, targets = model.examples(model.read_inputs(examples), examples.answers)
    before = time.perf_counter() - start
    plan = batch_plan(windows.packed.lengths, 32, shuffle=True)
    steps = arguments.epochs * len(plan)
    model.compile(optimizer=AdamW(WarmupLinearDecay(arguments.rate, steps, steps // 10)))
    dataset = model.dataset(windows, targets, batch_size=32, shuffle=True, seed=seed)
    start = time.perf_counter()
    model.fit(dataset, epochs=arguments.epochs, verbose=2)
    seconds = time.perf_counter() - start + before
    if arguments.keep is not None:
        model.save_pretrained(arguments.keep / f"squad-{seed}")
    dev = read_squad(arguments.directory / "dev-v1.1.json.gz")
    start = time.perf_counter()
    predictions = [row["answer"].decode() for row in model.predict(dev)]
    answering = time.perf_counter() - start
    return {
        "questions": len(examples),
        "windows": len(windows),
        **squad_metrics(dev.answer_texts, dict(zip(dev.ids, predictions))),
        "training_seconds": round(seconds),
        "real_tokens_per_second": round(arguments.epochs * windows.packed.tokens / seconds),
        "padding_share": round(padding_share(windows.packed.lengths, plan), 4),
        "answering_seconds": round(answering),
        "questions_per_second": round(len(dev) / answering, 1),
    }


def main() -> None:
    """Trains with each seed; each result is written at once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path, help="folder with train-v1.1.json.gz and so on")
    parser.add_argument("--questions", type=int, default=8000)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--precision", default="float32", help="float32 or mixed_bfloat16")
    parser.add_argument("--keep", type=Path, help="new folder for the trained models")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True)
    for seed in range(1, arguments.seeds + 1):
        settings = {key: getattr(arguments, key) for key in KEY if key != "seed"}
        keep_row(arguments.output, {**settings, "seed": seed} | train(arguments, seed), KEY)


if __name__ == "__main__":
    main()
