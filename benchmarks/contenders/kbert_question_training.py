"""kbert learns to answer by spans with `fit`, in slices of so many steps."""

import json
import time
from pathlib import Path

from side_by_side.turns import Turns

turns = Turns()

import keras
from side_by_side.fit_slices import FitSlices

from kbert.data.questions.question_examples import Answer
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.question_answering.model import QuestionAnswerer


def main() -> None:
    """Trains until no request comes."""
    keras.utils.set_random_seed(1)
    data = json.loads(Path(turns.settings["data"]).read_text())
    answers = [
        [Answer(context[start:end], start)]
        for context, (start, end) in zip(data["contexts"], data["answers"])
    ]
    model = QuestionAnswerer.from_pretrained(
        turns.settings["encoder"],
        dtype=turns.settings["precision"],
        max_sequence_length=turns.settings["length"],
        stride=turns.settings["stride"],
    )
    start = time.perf_counter()
    inputs = model.read_inputs((data["questions"], data["contexts"]))
    windows, targets = model.examples(inputs, answers)
    tokenization = time.perf_counter() - start
    steps = turns.settings["total_steps"]
    model.compile(optimizer=AdamW(WarmupLinearDecay(1e-4, steps, steps // 10)))
    dataset = model.dataset(windows, targets, batch_size=32, shuffle=True, seed=1)
    turns.ready("kbert-tf", "keras", "tensorflow", tokenization=tokenization)
    model.fit(dataset, epochs=1000, verbose=0, callbacks=[FitSlices(turns, model)])


if __name__ == "__main__":
    main()
