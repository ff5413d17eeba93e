"""Conversion of an encoder or a translator to another format, and comparison with the source."""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.ctranslate2 import import_ctranslate2
from kbert.checkpoints.read_checkpoint import is_marian, read_checkpoint, write_checkpoint
from kbert.cli.actions.model_kinds import MODULES_FORMAT, check_format, is_translator, local_path
from kbert.models.encoder import encoder_of
from kbert.tasks.embedding.sentence_transformers import write_modules
from kbert.tasks.load import load
from kbert.tasks.registry import task_of_checkpoint
from kbert.tasks.translation.model import Translator
from kbert.tasks.translation.saved_translator import save_ctranslate2, search_arguments
from kbert.training.runs.run_directory import is_run, load_run

# Size of the fixed input of encoders, and number and length of the fixed pairs of translators.
_ROWS, _LENGTH = 4, 32
_PAIRS, _PIECES = 4, 16


def convert_checkpoint(source: str, target: Path, format: str, overwrite: bool) -> dict[str, Any]:
    """Converts a run, a checkpoint or a translator to the folder `target`, and compares both.

    Returns formats, decisions, and the largest absolute differences: of the encoder's outputs on a
    fixed input, and of each head's weights. Translators are those of `convert_translator`.
    """
    path = load_run(source).model_directory if is_run(source) else local_path(source)
    check_format(path, format)
    if is_translator(path):
        return convert_translator(str(path), target, format, overwrite)
    before = _read(path, format)
    written = _write(before, str(path), target, format, overwrite)
    after = _read(written, format)
    labels = before.pipeline.get("labels") or before.source_config.get("id2label")
    notes = list(before.report)
    if before.unread_tokenizer is not None and format != "kbert":
        notes.append(f"The target has no tokenizer; not read here: {before.unread_tokenizer}.")
    if format == "tf1" and labels and before.heads:
        notes.append(f"The format tf1 has no place for the names of the labels: {labels}.")
    return {
        "source": str(path),
        "source_format": before.format,
        "target": str(written),
        "target_format": format,
        "notes": notes,
        "largest_absolute_difference": {**_outputs(before, after), "heads": _heads(before, after)},
    }


def _read(path: str | Path, format: str) -> Checkpoint:
    """Reads a checkpoint, with the modules behind the encoder where the format has them."""
    checkpoint = read_checkpoint(path)
    found = task_of_checkpoint(checkpoint) if format == MODULES_FORMAT else None
    if found is None:
        return checkpoint
    completed: Checkpoint = found.model_class().completed(checkpoint)
    return completed


def _write(before: Checkpoint, path: str, target: Path, format: str, overwrite: bool) -> Path:
    """Writes the target; returns the path to read it with `read_checkpoint`."""
    if format == MODULES_FORMAT:
        return write_modules(load(path), target, overwrite, Path(path))
    if format != "huggingface" or not before.pipeline:
        return write_checkpoint(before, target, format, overwrite)
    # kbert's own models know their labels and their class in transformers.
    return load(path).save_pretrained(target, format="huggingface", overwrite=overwrite)


def fixed_input(vocabulary_size: int, max_sequence_length: int) -> dict[str, np.ndarray]:
    """Returns the input of both checkpoints: all kinds of positions, and padding."""
    length = min(_LENGTH, max_sequence_length)
    # Multiples of a prime, so that the ids are spread over the vocabulary.
    token_ids = (np.arange(_ROWS * length).reshape(_ROWS, length) * 7919) % vocabulary_size
    position = np.arange(length)
    real = position < np.array([[length], [length], [length // 2 + 1], [1]])
    return {
        "token_ids": np.where(real, token_ids, 0).astype("int32"),
        "segment_ids": (real & (position >= length // 3)).astype("int32"),
        "padding_mask": real,
    }


def _outputs(before: Checkpoint, after: Checkpoint) -> dict[str, float | None]:
    config = before.config
    inputs = fixed_input(config["vocabulary_size"], config["max_sequence_length"])
    found = [
        {name: np.asarray(value) for name, value in encoder_of(c)(inputs).items()}
        for c in (before, after)
    ]
    real = inputs["padding_mask"]
    sequences = [outputs["sequence_output"][real] for outputs in found]
    # A checkpoint without a pooler gets random weights there, which are not its own.
    has_pooler = before.has_pooler and after.has_pooler
    pooled = [outputs["pooled_output"] for outputs in found if has_pooler]
    return {
        "sequence_output": _largest(*sequences),
        "pooled_output": _largest(*pooled) if has_pooler else None,
    }


def _heads(before: Checkpoint, after: Checkpoint) -> dict[str, float]:
    missing = sorted(set(before.heads) - set(after.heads))
    if missing:
        raise ValueError(f"the target must hold every head. Missing: {', '.join(missing)}")
    return {name: _largest(array, after.heads[name]) for name, array in before.heads.items()}


def _largest(first: np.ndarray, second: np.ndarray) -> float:
    difference = np.abs(first.astype("float64") - second.astype("float64"))
    return float(np.max(difference, initial=0.0))


def convert_translator(source: str, target: Path, format: str, overwrite: bool) -> dict[str, Any]:
    """Converts a translator, kbert's or Marian's, to "kbert" or "ctranslate2", and compares both.

    Returns formats, notes on what the format cannot hold, and the largest absolute difference of
    the log-probabilities of fixed sentence pairs. For CTranslate2 also the arguments of
    `translate_batch` for the translator's search.
    """
    model = Translator.from_pretrained(source)
    pairs = _fixed_pairs(model)
    before = _log_probabilities(model, *pairs)
    found: dict[str, Any] = {"notes": []}
    if format == "kbert":
        model.save_pretrained(target, overwrite=overwrite)
        after = _log_probabilities(Translator.from_pretrained(target), *pairs)
    else:
        save_ctranslate2(model, target, overwrite=overwrite)
        after = _scores_of_ctranslate2(model, target, *pairs)
        arguments, notes = search_arguments(model)
        found = {"notes": notes, "translate_batch": arguments}
    differences = [np.max(np.abs(one - other)) for one, other in zip(before, after, strict=True)]
    return {
        "source": str(source),
        "source_format": "marian" if is_marian(source) else "kbert",
        "target": str(target),
        "target_format": format,
        **found,
        "largest_absolute_difference": {"log_probabilities": float(max(differences))},
    }


def _fixed_pairs(model: Translator) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Returns ids of sources and targets of different lengths, spread over the vocabularies."""
    longest = min(_PIECES, model.max_source_length - 1)
    sides = []
    for step, subwords in ((7919, model.source_subwords), (6007, model.target_subwords)):
        special = [getattr(subwords, f"{name}_id") for name in ("padding", "start", "end")]
        spelled = np.delete(np.arange(len(subwords)), special)
        # Multiples of a prime, so that the ids are spread over the vocabulary.
        lengths = [max(1, longest * (row + 1) // _PAIRS) for row in range(_PAIRS)]
        places = [(np.arange(length) + row) * step for row, length in enumerate(lengths)]
        sides.append([spelled[place % len(spelled)] for place in places])
    return sides[0], sides[1]


def _log_probabilities(
    model: Translator, sources: list[np.ndarray], targets: list[np.ndarray]
) -> list[np.ndarray]:
    """Returns log-probabilities of each target's pieces and end token, one pair at a time."""
    found = []
    for source, target in zip(sources, targets):
        ids = np.append(source, model.source_subwords.end_id)[None]
        said = np.append(target, model.target_subwords.end_id)
        inputs = {
            "source_token_ids": tf.constant(ids, tf.int32),
            "source_padding_mask": tf.ones(ids.shape, tf.bool),
            "target_token_ids": tf.constant(
                np.append(model.target_subwords.start_id, target)[None], tf.int32
            ),
        }
        if model.bert_tokenizer is not None:
            inputs |= model.bert_inputs(model.source_subwords.detokenize(ids))[0]
        logs = tf.nn.log_softmax(model.transformer(inputs))[0].numpy()
        found.append(logs[np.arange(len(said)), said])
    return found


def _scores_of_ctranslate2(
    model: Translator, folder: Path, sources: list[np.ndarray], targets: list[np.ndarray]
) -> list[np.ndarray]:
    translator = import_ctranslate2().Translator(str(folder), device="cpu", compute_type="float32")
    sides = [
        [[subwords.pieces[number] for number in ids] for ids in rows]
        for subwords, rows in ((model.source_subwords, sources), (model.target_subwords, targets))
    ]
    return [np.array(result.log_probs) for result in translator.score_batch(*sides)]
