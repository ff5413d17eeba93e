"""keras-hub from raw strings to class names, by `predict` with its preprocessor."""

import json
from pathlib import Path
from typing import Any

from side_by_side.turns import Turns

turns = Turns()

import keras
import keras_hub
from safetensors.numpy import load_file

BATCH = 32


def classifier(folder: Path, length: int) -> Any:
    """The classifier of a Hugging Face folder; keras-hub itself converts all but the head."""
    backbone = keras_hub.models.BertBackbone.from_preset(str(folder))
    tokenizer = keras_hub.models.BertTokenizer.from_preset(str(folder))
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
        tokenizer, sequence_length=length
    )
    weights = load_file(folder / "model.safetensors")
    head = weights["classifier.weight"].T, weights["classifier.bias"]
    model = keras_hub.models.BertTextClassifier(
        backbone, num_classes=len(head[1]), preprocessor=preprocessor
    )
    model.output_dense.set_weights(list(head))
    return model


def main() -> None:
    """Answers with milliseconds of classifying all texts."""
    keras.config.set_dtype_policy(turns.settings["policy"])
    texts = json.loads(Path(turns.settings["data"]).read_text())
    folder = Path(turns.settings["model"])
    names = json.loads((folder / "config.json").read_text())["id2label"]
    model = classifier(folder, turns.settings["length"])

    def classify() -> list[str]:
        best = model.predict(texts, batch_size=BATCH, verbose=0).argmax(axis=-1)
        return [names[str(i)] for i in best]

    turns.ready("keras-hub", "keras", "tensorflow", labels=classify())
    turns.serve({"classify": classify})


if __name__ == "__main__":
    main()
