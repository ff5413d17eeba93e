"""Trains the question-answering head that kbert ships, through any number of interruptions.

    python benchmarks/shipped_question_answerer.py SQUAD_DIRECTORY RUN_DIRECTORY

Bottleneck adapters in all-MiniLM-L6-v2 and the span head learn from the whole of SQuAD 1.1's
training questions; an answer whose place was guessed counts wherever its text stands. The state of
the training is saved every five minutes; the same command goes on with it.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import keras

from kbert.data.batches.plans import batch_plan
from kbert.data.questions.answer_alignment import align_answers, all_occurrences
from kbert.data.questions.question_examples import QuestionExamples
from kbert.data.questions.squad import read_squad
from kbert.metrics.answers import squad_metrics
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.pipelines.saved_pipeline import save_adapters
from kbert.storage.files import write_atomically
from kbert.tasks.question_answering.model import QuestionAnswerer
from kbert.training.callbacks.state_saver import Saving, StateSaver, fit_from
from kbert.training.runs.train_state import Position, load_state

BASE = "all-MiniLM-L6-v2"
SEED = 1
BATCH = 32


def main() -> None:
    """Trains on, measures at the end, and writes model and scores."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with train-v1.1.json.gz and so on")
    parser.add_argument("run", type=Path, help="folder of the states and the result")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--adapter-dim", type=int, default=256)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--trial", type=int, help="learn from so many questions, ask others")
    arguments = parser.parse_args()
    keras.utils.set_random_seed(SEED)
    examples, report = align_answers(read_squad(arguments.data / "train-v1.1.json.gz"))
    print(report, flush=True)
    guessed = set((arguments.data / "train-v1.1.ambiguous_ids.txt").read_text().split())
    examples = all_occurrences(examples, guessed.intersection(examples.ids))
    measured = read_squad(arguments.data / "dev-v1.1.json.gz")
    if arguments.trial is not None:
        # The file is sorted by article: the last tenth has articles of its own.
        cut = len(examples) * 9 // 10
        measured = evenly(examples.select(range(cut, len(examples))), 1000)
        examples = evenly(examples.head(cut), arguments.trial)
    model = QuestionAnswerer.from_pretrained(
        BASE,
        adapter={"kind": "houlsby", "adapter_dim": arguments.adapter_dim},
        encoder_dropout=arguments.dropout,
        attention_dropout=arguments.dropout,
        dtype="mixed_bfloat16",
    )
    windows, targets = model.examples(model.read_inputs(examples), examples.answers)
    lengths = windows.packed.lengths
    steps = sum(
        len(batch_plan(lengths, BATCH, shuffle=True, seed=SEED, epoch=epoch))
        for epoch in range(arguments.epochs)
    )
    print(f"{len(windows)} windows, {windows.packed.tokens} tokens, {steps} steps", flush=True)
    model.compile(optimizer=AdamW(WarmupLinearDecay(arguments.rate, steps, steps // 10)))
    states = arguments.run / "states"
    position = load_state(states, model) or Position()
    print(f"begins at {position}", flush=True)

    def batches(epoch: int, batch: int) -> Any:
        options = {"batch_size": BATCH, "shuffle": True, "seed": SEED}
        return model.dataset(windows, targets, first_epoch=epoch, first_batch=batch, **options)

    log = keras.callbacks.LambdaCallback(on_train_batch_end=log_line(time.monotonic()))
    callbacks = [StateSaver(Saving(states), position), log]
    fit_from(model, position, arguments.epochs, batches, callbacks=callbacks, verbose=0)
    folder = arguments.run / "model"
    if not folder.exists():
        save_adapters(model, folder, BASE)
    # What is measured is what is shipped: half precision, read back.
    shipped = QuestionAnswerer.from_pretrained(folder)
    rows = shipped.predict(measured)
    found = {name: row["answer"].decode() for name, row in zip(measured.ids, rows)}
    scores = squad_metrics(measured.answer_texts, found)
    print(json.dumps(scores), flush=True)
    write_atomically(arguments.run / "scores.json", json.dumps(scores) + "\n")


def evenly(examples: QuestionExamples, count: int) -> QuestionExamples:
    """So many examples from all over."""
    return examples.select([row * len(examples) // count for row in range(count)])


def log_line(begin: float) -> object:
    """Prints the loss every hundred steps."""

    def line(batch: int, logs: dict[str, float]) -> None:
        if batch % 100 == 0:
            print(f"{time.monotonic() - begin:.0f} s, batch {batch}: {logs}", flush=True)

    return line


if __name__ == "__main__":
    main()
