"""SavedModels from raw strings to a class, an answer, entities, and classes of batches."""

import json
from pathlib import Path
from typing import Any

from side_by_side.turns import Turns

turns = Turns()

import tensorflow as tf

from kbert.serving.loading.exported import Exported, load_export


def entities(exported: Exported, text: str) -> list[list[str]]:
    """The entities of a text, each with its label."""
    found = exported.run({"text": [text]})
    count = found["count"][0]
    return [[one.decode() for one in found[key][0][:count]] for key in ("label", "entity")]


def main() -> None:
    """Answers with milliseconds of all texts of a work."""
    tf.config.threading.set_intra_op_parallelism_threads(turns.settings["intra"])  # 0: all cores
    given = json.loads(Path(turns.settings["data"]).read_text())
    folder, batch = Path(turns.settings["folder"]), turns.settings["batch"]
    models = {path.name: load_export(path / "1") for path in folder.iterdir() if path.is_dir()}

    def classes(texts: list[str]) -> list[str]:
        return [one.decode() for one in models["class"].run({"text": texts})["label"]]

    def answer(question: str, context: str) -> str:
        found = models["answer"].run({"question": [question], "context": [context]})
        return str(found["answer"][0].decode())

    def batches() -> list[Any]:
        rows = given["classes of batches"]
        starts = range(0, len(rows), batch)
        return [one for start in starts for one in classes(rows[start : start + batch])]

    works = {
        "class": lambda: [classes([text]) for text in given["class"]],
        "answer": lambda: [answer(*pair) for pair in given["answer"]],
        "entities": lambda: [entities(models["entities"], text) for text in given["entities"]],
        "classes of batches": batches,
    }
    found = {name: work() for name, work in works.items()}
    turns.ready("kbert-tf", "keras", "tensorflow", "tensorflow-text", **found)
    turns.serve(works)


if __name__ == "__main__":
    main()
