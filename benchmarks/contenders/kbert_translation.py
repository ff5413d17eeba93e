"""kbert from raw strings to translations."""

import json
from pathlib import Path

from side_by_side.turns import Turns

turns = Turns()

import tensorflow as tf

from kbert.data.batches.packed_examples import text_tensor
from kbert.serving.precision.conversion import in_precision
from kbert.serving.precision.substitutes import WeightSubstitutes
from kbert.tasks.translation.model import Translator

# Sentences of the work "single".
SINGLE = 50


def main() -> None:
    """Answers with milliseconds of translating all sentences, and some one by one."""
    settings = turns.settings
    tf.config.threading.set_intra_op_parallelism_threads(settings["intra"])  # 0: as many as cores
    texts = json.loads(Path(settings["data"]).read_text())
    options = {"beam_size": settings["beam"], "nbest": 1, "patience": settings["patience"]}
    if settings.get("steps"):
        options |= {"length_ratio": 0.0, "length_extra": settings["steps"]}
    model = Translator.from_pretrained(settings["model"], dtype=settings["dtype"], **options)
    precision = settings.get("precision")
    model = in_precision(model, precision)
    substitutes = WeightSubstitutes([model])
    substitutes.store_small(precision)
    if settings.get("frozen"):
        substitutes.freeze()
    translated = substitutes.function(model.translate)
    spec = [tf.TensorSpec((None,), tf.string)]
    graph = tf.function(translated, input_signature=spec, autograph=False).get_concrete_function()

    def translate(some: list[str]) -> list[str]:
        return [text.decode() for text in graph(text_tensor(some))["translation"].numpy()]

    def single() -> None:
        for text in texts[:SINGLE]:
            translate([text])

    turns.ready("kbert-tf", "tensorflow", "tensorflow-text", translations=translate(texts))
    turns.serve({"translate": lambda: translate(texts), "single": single})


if __name__ == "__main__":
    main()
