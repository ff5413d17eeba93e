"""Exports in float32, bfloat16 and int8: size, the task's metric, and rows a second.

    python benchmarks/export_precisions.py [--rounds 5] [--epochs 3]

A classifier, all-MiniLM-L6-v2 trained on the support messages that come with kbert, and the models
that come with it, minilm-squad and minilm-ner, on the sample texts. The metric is the model's in
Python, as `kbert evaluate` has it. The speed is that of the export, loaded back: all texts of the
file, rows of like length together, 32 at a time; precisions take turns, the median counts. Last,
three tasks in one export beside the largest of them alone.
"""

import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import keras
from side_by_side.results import Row, parser, write
from side_by_side.turns import seconds

import kbert
from kbert.cli.actions.precision_measures import as_exported
from kbert.data.classification.text_pairs import read_text_examples
from kbert.data.samples import sample_path
from kbert.serving.export.multi_task_export import export_together
from kbert.serving.format.servable import sizes_of
from kbert.serving.format.version_folders import PRECISIONS
from kbert.serving.loading.exported import load_export
from kbert.serving.precision.conversion import in_precision
from kbert.tasks.registry import task_of

BASE = "all-MiniLM-L6-v2"
FILES = {
    "classifier": "support/test.tsv",
    "minilm-squad": "questions/questions.json",
    "minilm-ner": "entities/sentences.conll",
}
METRICS = {"classifier": "accuracy", "minilm-squad": "f1", "minilm-ner": "f1"}


def classifier(epochs: int) -> kbert.Classifier:
    """One that was trained on the support messages; `epochs` 0 leaves the head as it is born."""
    keras.utils.set_random_seed(1)
    examples = read_text_examples(sample_path("support/train.tsv"))
    labels = sorted(set(examples.labels or []))
    model = kbert.Classifier.from_pretrained(BASE, labels=labels)
    if epochs:
        model.compile(optimizer=keras.optimizers.AdamW(1e-4))
        model.fit(examples.text_a, examples.labels, epochs=epochs, verbose=0)
    return model


def compared(name: str, model: Any, base: Path, rounds: int) -> list[Row]:
    """A row for each precision of one model."""
    task: Any = task_of(model)
    examples = task.measured_examples(sample_path(FILES[name]), {}, model)
    rows = task.rows(examples)
    columns = [list(column) for column in zip(*rows)]
    exports, metrics = {}, {}
    for precision in PRECISIONS:
        path = kbert.export(model, base, f"{name}-{precision}", precision=precision)
        exports[precision] = load_export(path)
        rounded = in_precision(model, precision)
        with as_exported(rounded, precision):
            found = task.measure(rounded, examples)[0]
        metrics[precision] = 100 * found[METRICS[name]] / (100 if name == "minilm-squad" else 1)
        exports[precision].answers(*columns)  # the first call makes the graph ready
    times: dict[str, list[tuple[float, float]]] = {precision: [] for precision in PRECISIONS}
    for _ in range(rounds):
        for precision in PRECISIONS:
            times[precision].append(seconds(partial(exports[precision].answers, *columns)))
    results = []
    for precision in PRECISIONS:
        sizes = sizes_of(exports[precision].path)
        clock, cpu = (len(rows) / median(turn[i] for turn in times[precision]) for i in (0, 1))
        results.append(
            {
                "model": name,
                "precision": precision,
                "weights_mb": round(sizes["weights"] / 1e6, 2),
                "rest_mb": round((sizes["graph"] + sizes["other"]) / 1e6, 2),
                METRICS[name]: round(metrics[precision], 2),
                "examples": len(rows),
                "rows_a_second": round(clock, 1),
                "rows_a_cpu_second": round(cpu, 1),
            }
        )
    first = results[0]["rows_a_cpu_second"]
    return [{**row, "speed_up": round(row["rows_a_cpu_second"] / first, 2)} for row in results]


def main() -> None:
    """Measures, prints and writes."""
    arguments = parser("export_precisions", __doc__)
    arguments.add_argument("--epochs", type=int, default=3)
    options = arguments.parse_args()
    shipped = {name: kbert.load(name) for name in ("minilm-squad", "minilm-ner")}
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        (trained := classifier(options.epochs)).save_pretrained(Path(folder, "classifier"))
        models = {"classifier": trained, **shipped}
        for name, model in models.items():
            rows += compared(name, model, Path(folder), options.rounds)
        tasks = {name.replace("-", "_"): model for name, model in shipped.items()}
        tasks["topics"] = classifier(0)
        alone = sum(sizes_of(load_export(Path(folder, "minilm-squad-float32")).path).values())
        whole = sum(sizes_of(export_together(tasks, folder)).values())
    sizes = {"one_mb": alone / 1e6, "three_mb": whole / 1e6, "ratio": whole / alone}
    together = [{key: round(value, 3) for key, value in sizes.items()}]
    settings = {"rounds": options.rounds, "epochs of the classifier": options.epochs}
    write(options.output, {"precisions": rows, "three_tasks_in_one": together}, [], settings)


if __name__ == "__main__":
    main()
