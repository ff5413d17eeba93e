"""From the start of a new process to its first answer: imports, load, one text.

    python benchmarks/first_answer.py

A classifier on all-MiniLM-L6-v2 as kbert's export, as ONNX and as a folder of Hugging Face; and
kbert's shipped one, in Python and by the command. Each process answers one sentence and ends. They
take turns; a first round, which fills the disk cache, does not count. `load` comes behind imports.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from side_by_side.results import parser, write

import kbert
from kbert.serving.export.export import export
from kbert.tasks.classification.model import Classifier

TEXT = "a gripping , funny and surprisingly tender film"
TIMED = """
import json, sys, time
(model, text), begin = sys.argv[1:], time.perf_counter()
{imports}
imported = time.perf_counter()
{load}
loaded = time.perf_counter()
{answer}
answered = time.perf_counter()
print(json.dumps([imported - begin, loaded - imported, answered - loaded]))
"""
IMPORTS = {
    "kbert": "import tensorflow, tensorflow_text, keras, kbert; kbert.load",
    "onnx": "import numpy, onnxruntime, tokenizers",
    "torch": "import torch; from transformers import BertForSequenceClassification as Network\n"
    "from transformers import BertTokenizerFast",
}
LOAD = {
    "kbert": "model = kbert.load(model)",
    "onnx": """
session = onnxruntime.InferenceSession(model + "/model.onnx")
tokenizer = tokenizers.Tokenizer.from_file(model + "/tokenizer.json")
labels = json.load(open(model + "/config.json"))["id2label"]""",
    "torch": """
network = Network.from_pretrained(model)
tokenizer = BertTokenizerFast.from_pretrained(model)""",
}
ANSWER = {
    "kbert": "model.answers([text])",
    "onnx": """
row = tokenizer.encode(text)
columns = dict(input_ids=row.ids, attention_mask=row.attention_mask, token_type_ids=row.type_ids)
(logits,) = session.run(None, {name: numpy.array([ids]) for name, ids in columns.items()})
labels[str(logits.argmax())]""",
    "torch": """
with torch.inference_mode():
    logits = network(**tokenizer([text], return_tensors="pt")).logits
network.config.id2label[int(logits.argmax())]""",
}


def commands(folder: Path, peer_python: str) -> dict[str, list[str]]:
    """The processes, of models that are in a folder."""

    def timed(python: str, kind: str, model: str) -> list[str]:
        parts = {"imports": IMPORTS[kind], "load": LOAD[kind], "answer": ANSWER[kind]}
        return [python, "-c", TIMED.format(**parts), model, TEXT]

    own, shipped = sys.executable, "minilm-sentiment"
    return {
        "import tensorflow": [own, "-c", "import tensorflow"],
        "kbert, an export": timed(own, "kbert", str(folder / "export" / "model")),
        "ONNX Runtime": timed(own, "onnx", str(folder / "onnx" / "model")),
        "transformers": timed(peer_python, "torch", str(folder / "huggingface")),
        f"kbert, {shipped}": timed(own, "kbert", shipped),
        f"kbert predict {shipped}": [own, "-m", "kbert", "predict", shipped, "--text", TEXT],
    }


def run(command: list[str]) -> tuple[float, list[float]]:
    """Seconds of a process, and of its parts if it tells them."""
    begin = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    return seconds, json.loads(done.stdout) if done.stdout.startswith("[") else []


def row(process: str, timed: list[tuple[float, list[float]]]) -> dict[str, Any]:
    """The medians of a process."""
    columns = zip(*([*parts, whole] for whole, parts in timed))
    names = ("imports", "load", "first_answer", "whole")[-len(timed[0][1]) - 1 :]
    medians = [round(statistics.median(column), 2) for column in columns]
    return {"process": process, **dict(zip(names, medians, strict=True))}


def main() -> None:
    """Runs all processes, round after round."""
    arguments = parser("first_answer", __doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = Classifier.from_pretrained("all-MiniLM-L6-v2", ["no", "yes"])
        export(model, folder / "export", "model")
        kbert.export_onnx(model, folder / "onnx", "model")
        model.save_pretrained(folder / "huggingface", format="huggingface")
        made = commands(folder, arguments.peer_python)
        found: dict[str, list[Any]] = {process: [] for process in made}
        for number in range(arguments.rounds + 1):
            for process, command in made.items():
                found[process] += [run(command)][:number]
    rows = {"rows": [row(process, timed) for process, timed in found.items()]}
    write(arguments.output, rows, [], {"rounds": arguments.rounds})


if __name__ == "__main__":
    main()
