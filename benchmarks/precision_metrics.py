"""The tasks' metrics in float32, bfloat16 and int8, on whole sets that nobody trained on.

    python benchmarks/precision_metrics.py minilm-squad=SQUAD/dev-v1.1.json.gz minilm-ner=FILE ...

A model is a name or a folder; its file holds labelled examples as `kbert evaluate` takes them, of
WNUT-17's types made the four of `minilm-ner`; or it is GLUE's folder SST-2, or for a model of
`ladder.py` from German to English that of Multi30k. Results of other models and files stay.
Computed in Python with the weights and products of an export of that precision, as `kbert export
--measure` has it for the card. All metrics in hundredths; beside them the share of texts that get
another answer, as a metric of a small set moves with every single one.
"""

import argparse
from pathlib import Path
from typing import Any

from shipped_entity_recognizer import common_types
from side_by_side.multi30k_data import TESTS, read_split
from side_by_side.results import keep_row

import kbert
from kbert.cli.actions.model_kinds import columns_of
from kbert.cli.actions.precision_measures import as_exported
from kbert.data.classification.glue_tasks import read_glue
from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.serving.format.version_folders import PRECISIONS
from kbert.serving.precision.conversion import in_precision
from kbert.tasks.registry import task_of
from kbert.training.translation.evaluation import translation_scores

RESULTS = Path(__file__).parent / "results" / "precision_metrics.json"
KEY = ("model", "file", "precision")
SAID = ("start", "end", "label", "choice")  # of an answer, what may become another
SHOWN = ("accuracy", "exact_match", "f1", "exact", "spearman", "bleu", "chrf")
IN_HUNDREDTHS = {"exact_match", "exact", "bleu"}  # others are parts of one


def read(name: str, file: Path, model: Any) -> Any:
    """The labelled examples of a file."""
    if isinstance(model, kbert.Translator):
        return read_split(file, TESTS[0], "de-en")
    if file.is_dir():
        return read_glue("sst2", file.parent, "dev")
    examples = task_of(model).measured_examples(file, columns_of(name, {}), model)
    return common_types(examples) if isinstance(examples, TaggedSentences) else examples


def asked(model: Any, examples: Any) -> tuple[dict[str, Any], list[Any]]:
    """Metrics; and what a model says of each text, without scores: nothing of numbers alone."""
    if isinstance(model, kbert.Translator):
        found = model.predict(examples.sources)
        return translation_scores(found, examples.targets), found
    task: Any = task_of(model)
    metrics = task.measure(model, examples)[0]
    if isinstance(model, kbert.TextEmbedder):
        return metrics, []
    columns = list(zip(*task.rows(examples)))
    answers = model.answers(list(columns[0]) if len(columns) == 1 else tuple(map(list, columns)))
    each = [one if isinstance(one, list) else [one] for one in answers]
    found = [a for one in each for a in one]
    if found and not any(key in a for a in found for key in SAID):
        return metrics, []
    return metrics, [[tuple(map(a.get, SAID)) for a in one] for one in each]


def measured(name: str, file: Path) -> list[dict[str, Any]]:
    """A row a precision of one model."""
    model = kbert.load(name)
    examples = read(name, file, model)
    rows: list[dict[str, Any]] = []
    said: list[Any] = []
    for precision in PRECISIONS:
        print(name, file.name, precision, flush=True)
        rounded = in_precision(model, precision)
        with as_exported(rounded, precision):
            found, answers = asked(rounded, examples)
        said = said or answers
        changed = sum(a != b for a, b in zip(said, answers, strict=True))
        scale = 1 if IN_HUNDREDTHS & found.keys() else 100
        metrics = {key: round(scale * float(found[key]), 3) for key in SHOWN if key in found}
        change = {f"{key}_change": round(metrics[key] - rows[0][key], 3) for key in metrics if rows}
        row = {"model": Path(name).parent.name or name, "file": file.name, "precision": precision}
        row |= {"examples": len(getattr(examples, "sources", examples))}
        row |= {"changed_percent": round(100 * changed / len(said), 2)} if said else {}
        rows.append(row | metrics | change)
    return rows


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL=FILE")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    pairs = [text.split("=", 1) for text in arguments.models]
    for name, file in pairs:
        for row in measured(name, Path(file)):  # all at once: each tells its change from the first
            keep_row(arguments.output, row, KEY)


if __name__ == "__main__":
    main()
