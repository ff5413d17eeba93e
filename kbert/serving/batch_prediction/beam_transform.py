"""Predictions of an export within an Apache Beam pipeline (the extra "beam").

    with beam.Pipeline() as pipeline:
        rows = pipeline | beam.io.ReadFromJson("mails*.jsonl") | beam.Map(lambda row: row._asdict())
        rows | PredictText("exports/topics/1") | beam.io.WriteToJson("answers")

Importing this module imports apache_beam. Sources: Apache Beam, programming guide, sections 4.2.1
(DoFn), 4.6 (composite transforms), and `BatchElements` of its utilities.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kbert.extras import install_extra
from kbert.serving.batch_prediction.answer_files import answer_columns
from kbert.serving.format.signatures import SERVING_DEFAULT
from kbert.serving.loading.exported import found_version, load_export

try:
    import apache_beam as beam
except ImportError as error:
    raise ImportError(
        f"Answers within Apache Beam need it: {install_extra('beam')}. Received: {error}"
    ) from error

MAX_BATCH_SIZE = 256


class PredictText(beam.PTransform):
    """Adds to each element its answer.

    An element is a text, or a dict with the inputs of the signature by name; other entries are
    passed on. The result is a dict: the element's entries (a text becomes the first input) and
    those of the answer in `kbert predict`; where an element has an entry of that name already, the
    answer's is called `predicted_<name>`. Elements are joined into batches, which are
    length-bucketed; Beam keeps no order. Each worker must reach `model_dir`, which is as for
    `load_export`, also in a bucket; of several tasks, `signature` is the task's name.
    """

    def __init__(
        self,
        model_dir: str | os.PathLike[str],
        signature: str = SERVING_DEFAULT,
        max_batch_size: int = MAX_BATCH_SIZE,
    ) -> None:
        super().__init__()
        if max_batch_size < 1:
            raise ValueError(
                f"`max_batch_size` must be positive. Received: max_batch_size={max_batch_size}"
            )
        # All workers use the version that is the highest now.
        self._path = found_version(model_dir)
        self._signature = signature
        self._max_batch_size = max_batch_size

    def expand(self, elements: Any) -> Any:
        """Joins texts or dicts into batches and answers them, as dicts."""
        sizes = {"min_batch_size": 1, "max_batch_size": self._max_batch_size}
        batches = elements | "Batch" >> beam.BatchElements(**sizes)
        return batches | "Answer" >> beam.ParDo(_Answer(self._path, self._signature))


class _Answer(beam.DoFn):
    """Answers batches; each worker loads the export once."""

    def __init__(self, path: str, signature: str) -> None:
        super().__init__()
        self._path, self._signature = path, signature

    def setup(self) -> None:
        self._found = load_export(self._path)

    def process(self, batch: Iterable[Any]) -> Iterator[dict[str, Any]]:
        found = self._found
        names = found.input_names(self._signature)
        alike: dict[Any, list[dict[str, Any]]] = {}
        for element in batch:  # rows of more choices than others would make a ragged batch
            row = _as_row(element, names)
            lengths = tuple(len(row[n]) if isinstance(row[n], list | tuple) else 0 for n in names)
            alike.setdefault(lengths, []).append(row)
        for rows in alike.values():
            columns = [[row[name] for row in rows] for name in names]
            for row, answer in zip(rows, found.answers(*columns, signature=self._signature)):
                named = answer_columns(answer, row)
                yield {**row, **{named[key]: value for key, value in answer.items()}}


def _as_row(element: Any, names: list[str]) -> dict[str, Any]:
    row = dict(element) if isinstance(element, Mapping) else {names[0]: element}
    missing = [name for name in names if name not in row]
    if missing:
        raise ValueError(
            f"each element must be a dict with {', '.join(f'`{name}`' for name in names)}, or a "
            f"text where there is but one. Received: {str(element)[:80]!r}"
        )
    return row
