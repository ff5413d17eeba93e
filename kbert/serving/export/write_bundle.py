"""The files of an export beside its SavedModel: warm-up, batching, metadata, answers, a card.

The requests have real texts that are shipped with kbert (`kbert/data/samples`): reports of a few
hundred words, and questions on them.
"""

import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.samples import sample_path
from kbert.data.samples.drawn_shapes import drawn_shapes
from kbert.serving.export.base_files import write_card
from kbert.serving.export.request_batching import IMAGE, GraphBatching
from kbert.serving.format.recorded_requests import (
    TOLERANCES,
    GoldenAnswer,
    PredictRequest,
    write_golden,
    write_warmup,
)
from kbert.serving.format.servable import ExportReport, least_server
from kbert.serving.format.signatures import weights_of
from kbert.serving.format.version_folders import SAVED_MODEL_FILE, write_metadata
from kbert.tasks.registry import task_of

_TOKENS = ("token_ids", "segment_ids", "lengths")
_SHORTEST_LONG = 8
# Edge cases for tokenizers: empty, white space, cases, accents, other scripts, invalid UTF-8.
HARD_TEXTS: tuple[str | bytes, ...] = (
    *("", " \t\n", "WHY NOT?", "Ünïcödé naïve café", "中文 שלום \U0001f600", b"\xff broken \xc3"),
)
# Edge cases for decoders of images: no bytes, a text, a JPEG file that breaks off.
HARD_IMAGES = (b"", b"no image", b"\xff\xd8\xff\xe0\x00\x10JFIF")
_EVERY_MASK = 6
# Name of a signature -> its function in the graph, and the specs of its inputs.
Traced = Mapping[str, tuple[Callable[..., Any], Sequence[tf.TensorSpec]]]


def write_bundle(
    export_dir: str | os.PathLike[str],
    model: Any,
    traced: Traced,
    report: ExportReport,
    metadata: dict[str, Any],
    batching: GraphBatching | None,
    about: Mapping[str, Any] | None,
) -> None:
    """Writes these files into a version folder that holds the SavedModel already.

    Signatures of the SavedModel that are not in `traced` are aliases of the first of these.
    `metadata` is what kbert.json holds besides sizes and batching, `report` that of `check_export`.
    """
    first = next(iter(traced))
    called = {name: traced[name if name in traced else first] for name in report.signatures}
    write_warmup(export_dir, warmup_requests(metadata["name"], model, called, batching))
    metadata = {"precision": _compute_dtype(model), **metadata}
    write_golden(export_dir, list(golden_answers(model, called, metadata["precision"])))
    metadata = {
        **metadata,
        "batching": None if batching is None else batching.as_json(),
        "weights": asdict(weights_of(export_dir)),
        "graph_bytes": Path(export_dir, SAVED_MODEL_FILE).stat().st_size,
        "compute_dtype": _compute_dtype(model),
        "least_server": least_server({*report.core_ops, *report.text_ops}),
    }
    write_metadata(export_dir, metadata)
    write_card(export_dir, metadata, about)


def warmup_requests(
    name: str, model: Any, signatures: Traced, batching: GraphBatching | None
) -> Iterator[PredictRequest]:
    """Yields requests to a model, known to a server by `name`, for each signature.

    There is one row of each length, and as many rows, of alternating lengths, as a batch has at
    most: the graph computes those by another branch.
    """
    sizes = {1, 1 if batching is None else batching.max_batch_size}
    for signature, (_, specs) in signatures.items():
        task = model_of(model, signature)
        _, short, middling = lengths = text_lengths(task)
        for words in ([short], [middling]):
            yield PredictRequest(name, signature, sample_inputs(specs, task, words))
        for size in sorted(sizes):
            words = [lengths[i % len(lengths)] for i in range(size)]
            yield PredictRequest(name, signature, sample_inputs(specs, task, words))


def golden_answers(model: Any, signatures: Traced, precision: str) -> Iterator[GoldenAnswer]:
    """Yields a request for each signature, with the answer of the exported function."""
    tolerance = TOLERANCES.get(precision, TOLERANCES["float32"])
    for name, (function, specs) in signatures.items():
        task = model_of(model, name)
        inputs = sample_inputs(specs, task, text_lengths(task), hard=True)
        answers = function(*(tf.constant(inputs[spec.name], spec.dtype) for spec in specs))
        outputs = {key: np.asarray(value) for key, value in answers.items()}
        yield GoldenAnswer(name, inputs, outputs, tolerance)


def model_of(model: Any, signature: str) -> Any:
    """Returns the model of a signature: that of its task, where several are exported together."""
    return getattr(model, "models_by_signature", {}).get(signature, model)


def _compute_dtype(model: Any) -> str:
    return str(getattr(model, "compute_dtype", None) or "float32")


def text_lengths(model: Any) -> tuple[int, int, int]:
    """Returns the lengths of long, short and medium texts for a model, in words.

    The long texts fill its maximum length, or as many windows as the task asks for.
    """
    longest = int(
        getattr(model, "max_sequence_length", None) or getattr(model, "max_source_length", 0) or 64
    )
    task = task_of(model)
    if task is not None:
        longest = task.request_words(longest)
    longest = max(longest, _SHORTEST_LONG)
    return longest, 4, longest // 4 + 1


def sample_inputs(
    specs: Sequence[tf.TensorSpec], model: Any, words: Sequence[int], hard: bool = False
) -> dict[str, np.ndarray]:
    """Makes a request of several rows: name of each input -> its batch.

    Strings become texts, of so many `words` a row, or images; token ids with `lengths` are made
    from texts by the model's `preprocess`; other numbers count up from 0. With `hard`, where all
    inputs are strings, `HARD_TEXTS` or `HARD_IMAGES` follow as further rows.
    """
    names = [spec.name for spec in specs]
    if set(names) == set(_TOKENS) and getattr(model, "preprocess", None) is not None:
        texts = [_text("text", i, n, False) for i, n in enumerate(words)]
        columns = 2 if getattr(model, "pair", False) else 1
        packed = model.preprocess(*[tf.constant(texts)] * columns)
        return {name: np.asarray(getattr(packed, name), np.int32) for name in _TOKENS}
    masks = bool(getattr(getattr(model, "tokenizer", None), "special_tokens_in_text", False))
    inputs = {}
    for place, spec in enumerate(specs):
        if spec.dtype != tf.string:
            shape = [len(words), *(size or 1 for size in spec.shape[1:])]
            numbers = np.arange(int(np.prod(shape))).reshape(shape)
            inputs[spec.name] = numbers.astype(spec.dtype.as_numpy_dtype)
            continue
        if spec.name == IMAGE:
            rows: list[Any] = [*_images(len(words)), *(HARD_IMAGES if hard else ())]
        else:
            rows = [_text(spec.name, i + place, n, masks) for i, n in enumerate(words)]
            rows += HARD_TEXTS if hard else ()
        inputs[spec.name] = _strings(rows, spec.shape.rank)
    if hard and len({len(batch) for batch in inputs.values()}) > 1:
        return {name: batch[: len(words)] for name, batch in inputs.items()}
    return inputs


def _images(count: int) -> list[bytes]:
    """Returns drawn shapes of one size as PNG files."""
    images, _ = drawn_shapes(count)
    return [tf.io.encode_png(image).numpy() for image in images]


def _text(name: str, number: int, words: int, masks: bool) -> str:
    contexts, questions = _reports()
    if name == "question":
        return questions[number % len(questions)]
    # A report, continued by the next ones where it is too short.
    source = [word for report in contexts for word in report.split()]
    start = sum(len(report.split()) for report in contexts[: number % len(contexts)])
    chosen = [source[(start + i) % len(source)] for i in range(words)]
    if masks:
        chosen[1::_EVERY_MASK] = ["[MASK]"] * len(chosen[1::_EVERY_MASK])
    return " ".join(chosen)


def _strings(rows: list[str | bytes], rank: int) -> np.ndarray:
    """Returns (B,) strings; with a second dimension, two of each, the second one shorter."""
    encoded = [row.encode("utf-8") if isinstance(row, str) else row for row in rows]
    batch = np.array(encoded, object)
    for _ in range(rank - 1):
        other = np.array([row[: len(row) // 2] for row in encoded], object)
        batch = np.stack([batch, other.reshape(batch.shape)], axis=1)
        encoded = list(batch.reshape(-1))
    return batch


@functools.cache
def _reports() -> tuple[list[str], list[str]]:
    found = json.loads(sample_path("questions/questions.json").read_text(encoding="utf-8"))
    paragraphs = [part for article in found["data"] for part in article["paragraphs"]]
    questions = [one["question"] for part in paragraphs for one in part["qas"]]
    return [part["context"] for part in paragraphs], questions
