"""kbert's `fit`, in slices of as many steps as it is asked for."""

import json
import time
from pathlib import Path
from typing import Any

from side_by_side.turns import Turns

turns = Turns()

import keras
from side_by_side.fit_slices import FitSlices

from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.classification.model import Classifier
from kbert.tasks.regression.model import Regressor


def main() -> None:
    """Trains until no request comes."""
    keras.utils.set_random_seed(1)
    data = json.loads(Path(turns.settings["data"]).read_text())
    model: Any
    options = {"pair": data["text_b"] is not None, "max_sequence_length": turns.settings["length"]}
    if data["labels"]:
        model = Classifier.from_pretrained(turns.settings["encoder"], data["labels"], **options)
    else:
        model = Regressor.from_pretrained(turns.settings["encoder"], **options)
    start = time.perf_counter()
    packed = model.pack(data["text_a"], data["text_b"])
    tokenization = time.perf_counter() - start
    steps = turns.settings["total_steps"]
    model.compile(optimizer=AdamW(WarmupLinearDecay(1e-4, steps, steps // 10)))
    targets = model.encode_targets(data["targets"])
    dataset = model.dataset(packed, targets, batch_size=32, shuffle=True, seed=1)
    turns.ready("kbert-tf", "keras", "tensorflow", tokenization=tokenization)
    model.fit(dataset, epochs=1000, verbose=0, callbacks=[FitSlices(turns, model)])


if __name__ == "__main__":
    main()
