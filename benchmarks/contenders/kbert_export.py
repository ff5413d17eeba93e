"""A classifier's SavedModel from raw strings to class names: one text, and all in batches of 32."""

import json
import tempfile
from pathlib import Path
from typing import Any

from side_by_side.turns import Turns

turns = Turns()

from kbert.serving.export.export import export
from kbert.serving.loading.exported import load_export
from kbert.tasks.classification.model import Classifier

BATCH = 32


def main() -> None:
    """Answers with milliseconds of a pass over the short texts one by one, or of all in batches."""
    texts = json.loads(Path(turns.settings["data"]).read_text())
    with tempfile.TemporaryDirectory() as folder:
        model = Classifier.from_pretrained(turns.settings["model"])
        exported = load_export(export(model, folder, frozen=turns.settings["frozen"]))

    def classify(some: list[str]) -> list[bytes]:
        return list(exported.run({"text": some})["label"])

    singles = texts[: turns.settings["singles"]]

    def single() -> list[Any]:
        return [classify([text]) for text in singles]

    def batches() -> list[Any]:
        starts = range(0, len(texts), BATCH)
        return [classify(texts[start : start + BATCH]) for start in starts]

    labels = [label.decode() for found in batches() for label in found]
    turns.ready("kbert-tf", "keras", "tensorflow", "tensorflow-text", labels=labels)
    turns.serve({"one text": single, "batches of 32": batches})


if __name__ == "__main__":
    main()
