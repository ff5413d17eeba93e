"""ONNX Runtime and tokenizers from raw strings to a class, an answer, entities, and batches."""

import json
from pathlib import Path

from side_by_side.turns import Turns

turns = Turns()

from peers.onnxruntime_network import Network


def main() -> None:
    """Answers with milliseconds of all texts of a work."""
    given = json.loads(Path(turns.settings["data"]).read_text())
    folder, batch = Path(turns.settings["folder"]), turns.settings["batch"]
    threads = turns.settings["intra"]
    models = {work: Network(folder / work, threads) for work in ("class", "answer", "entities")}

    def batches() -> list[str]:
        rows = given["classes of batches"]
        starts = range(0, len(rows), batch)
        return [a for s in starts for a in models["class"].classes(rows[s : s + batch])]

    works = {
        "class": lambda: [models["class"].classes([text]) for text in given["class"]],
        "answer": lambda: [models["answer"].answer(*pair) for pair in given["answer"]],
        "entities": lambda: [models["entities"].entities(text) for text in given["entities"]],
        "classes of batches": batches,
    }
    found = {name: work() for name, work in works.items()}
    turns.ready("onnxruntime", "tokenizers", **found)
    turns.serve(works)


if __name__ == "__main__":
    main()
