"""kbert from raw strings to class names: through an export, or through `predict`."""

import json
import tempfile
from pathlib import Path

from side_by_side.turns import Turns

turns = Turns()

from kbert.serving.export.export import export
from kbert.serving.loading.exported import load_export
from kbert.tasks.classification.model import Classifier

BATCH = 32


def main() -> None:
    """Answers with milliseconds of classifying all texts."""
    texts = json.loads(Path(turns.settings["data"]).read_text())
    model = Classifier.from_pretrained(turns.settings["model"], dtype=turns.settings["dtype"])

    def predict() -> list[str]:
        return [model.labels[i] for i in model.predict(texts).argmax(axis=-1)]

    classify = predict
    if turns.settings["exported"]:
        with tempfile.TemporaryDirectory() as folder:
            exported = load_export(export(model, folder))

        def serve() -> list[str]:
            labels: list[bytes] = []
            for start in range(0, len(texts), BATCH):
                labels.extend(exported.run({"text": texts[start : start + BATCH]})["label"])
            return [label.decode() for label in labels]

        classify = serve
    turns.ready("kbert", "keras", "tensorflow", "tensorflow-text", labels=classify())
    turns.serve({"classify": classify})


if __name__ == "__main__":
    main()
