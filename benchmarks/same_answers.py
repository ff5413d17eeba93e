"""One model, four ways to ask it: are all answers the same, and do they stand where they say?

    python benchmarks/same_answers.py SQUAD_DIRECTORY/dev-v1.1.json.gz --model minilm-squad

`evaluate` and `predict` run the model in Python, the export is run by Python and by TensorFlow's
C++ session loader. The same batches must give the same strings and offsets; with other batches a
difference is right only where two scores lie within 1e-4 of each other.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side.results import keep_row

from kbert.data.batches.plans import answers_of_rows
from kbert.data.questions.question_examples import QuestionExamples
from kbert.data.questions.squad import read_squad
from kbert.pipelines.window_batching import PREDICTION_ROWS
from kbert.serving.export.export import export
from kbert.serving.loading.exported import load_export
from kbert.serving.loading.session_loader import Session
from kbert.tasks.question_answering.model import QuestionAnswerer
from kbert.tasks.question_answering.task import measure_answers

RESULTS = Path(__file__).parent / "results" / "same_answers.json"
KEY = ("file", "model", "questions")
CLOSE = 1e-4
PLACES = ("start", "end", "start_byte", "end_byte")


def through(run: Any, questions: list[str], contexts: list[str], rows: int) -> list[dict[str, Any]]:
    """The answers of a function of batches, in the batches that `predict` makes."""
    columns = {"question": questions, "context": contexts}
    sizes = np.array([len(context.encode()) for context in contexts])

    def answers(chosen: np.ndarray) -> dict[str, np.ndarray]:
        return run({name: [column[i] for i in chosen] for name, column in columns.items()})

    return answers_of_rows(answers, sizes, rows)


def different(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> list[int]:
    """The rows whose answers or places differ."""
    keys = ("answer", *PLACES)
    return [i for i, (a, b) in enumerate(zip(one, other)) if any(a[k] != b[k] for k in keys)]


def apart(row: dict[str, Any]) -> float:
    """How far the two best answers of a row are apart, as natural logarithms of probabilities."""
    first, second = np.log(np.maximum(row["nbest_score"][:2], 1e-30))
    return float(first - second)


def compared(name: str, examples: QuestionExamples) -> dict[str, Any]:
    """Asks a model in four ways and counts differences."""
    texts = (examples.questions, examples.contexts)
    model = QuestionAnswerer.from_pretrained(name)
    predicted = model.predict(examples)
    metrics, evaluated = measure_answers(model, examples)
    with tempfile.TemporaryDirectory() as folder:
        path = export(model, folder)
        exported = load_export(path)
        in_python = through(exported.run, *texts, PREDICTION_ROWS)
        other_batches = through(exported.run, *texts, 7)
        with Session(path) as session:
            in_cpp = through(
                lambda batch: session.run("serving_default", batch), *texts, PREDICTION_ROWS
            )
    moved = different(predicted, other_batches)
    return {
        "evaluate": sum(
            evaluated[i] != r["answer"].decode() for i, r in zip(examples.ids, predicted)
        ),
        "export in Python": len(different(predicted, in_python)),
        "C++ session loader": len(different(predicted, in_cpp)),
        "largest difference of scores": max(
            float(abs(a["score"] - b["score"])) for a, b in zip(predicted, in_cpp)
        ),
        "other batches": len(moved),
        "of these not within 1e-4": sum(apart(predicted[i]) > CLOSE for i in moved),
        "not at their place": sum(
            context[r["start"] : r["end"]] != r["answer"].decode()
            or context.encode()[r["start_byte"] : r["end_byte"]] != r["answer"]
            for context, r in zip(examples.contexts, predicted)
        ),
        **metrics,
    }


def main() -> None:
    """Compares; the result is kept beside those of other questions and models."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="questions in SQuAD's layout")
    parser.add_argument("--model", default="minilm-squad", help="name or folder")
    parser.add_argument("--questions", type=int, help="only the first so many")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    examples = read_squad(arguments.file)
    examples = examples.head(arguments.questions or len(examples))
    row: dict[str, Any] = {"file": arguments.file.name, "model": arguments.model}
    row |= {"questions": len(examples)} | compared(arguments.model, examples)
    keep_row(arguments.output, row, KEY)


if __name__ == "__main__":
    main()
