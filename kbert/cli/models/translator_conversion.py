"""Conversion of a translator to another format, and comparison with the source."""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.checkpoints.ctranslate2 import import_ctranslate2
from kbert.checkpoints.marian.files import is_marian
from kbert.checkpoints.native.translation_folder import write_translation
from kbert.tasks.translation.ctranslate2_folder import save_ctranslate2, search_arguments
from kbert.tasks.translation.model import Translator
from kbert.tasks.translation.saved_translator import translation_checkpoint

_ROWS, _LENGTH = 4, 16


def convert_translator(source: str, target: Path, format: str, overwrite: bool) -> dict[str, Any]:
    """Converts a translator and compares both.

    Args:
        source: a folder of kbert, or of Marian in Hugging Face's layout.
        target: the folder to create.
        format: "kbert" or "ctranslate2"; see `kbert.cli.models.model_kinds.check_format`.
        overwrite: whether `target` may be replaced.

    Returns:
        Formats, notes on what the format cannot hold, and the largest absolute difference of the
        log-probabilities of fixed sentence pairs. For CTranslate2 also the arguments of
        `translate_batch` for the translator's search.

    Raises:
        ValueError: the format cannot hold the model.
        FileExistsError: the target exists and may not be replaced.
    """
    model = Translator.from_pretrained(source)
    pairs = _fixed_pairs(model)
    before = _log_probabilities(model, *pairs)
    found: dict[str, Any] = {"notes": []}
    if format == "kbert":
        write_translation(translation_checkpoint(model), target, overwrite=overwrite)
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
    longest = min(_LENGTH, model.max_source_length - 1)
    sides = []
    for step, subwords in ((7919, model.source_subwords), (6007, model.target_subwords)):
        special = [getattr(subwords, f"{name}_id") for name in ("padding", "start", "end")]
        spelled = np.delete(np.arange(len(subwords)), special)
        # Multiples of a prime, so that the ids are spread over the vocabulary.
        lengths = [max(1, longest * (row + 1) // _ROWS) for row in range(_ROWS)]
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
            inputs |= model.bert_inputs(model.source_subwords.detokenize(ids))
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
