"""kbert from raw strings to vectors: through an export, or through `encode`."""

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from side_by_side.turns import Turns

turns = Turns()

from kbert.serving.export.export import export
from kbert.serving.loading.exported import load_export
from kbert.tasks.load import load


def main() -> None:
    """Answers with milliseconds of embedding all texts; the first vectors go to a file."""
    settings = turns.settings
    texts = json.loads(Path(settings["data"]).read_text())
    model = load(settings["model"], dtype=settings["dtype"])
    embed: Callable[[], np.ndarray] = partial(model.encode, texts)
    if settings["exported"]:
        with tempfile.TemporaryDirectory() as folder:
            exported = load_export(export(model, folder))

        def served() -> np.ndarray:
            return exported.predict(texts, batch_size=256)["embedding"]

        embed = served
    np.save(settings["vectors"], embed())
    turns.ready("kbert-tf", "keras", "tensorflow", "tensorflow-text")
    turns.serve({"embed": embed})


if __name__ == "__main__":
    main()
