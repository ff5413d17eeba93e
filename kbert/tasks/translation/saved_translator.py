"""Translators as checkpoints, and as CTranslate2's folders, which need no TensorFlow."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from kbert.architectures import TRANSFORMER, encoder_decoder_class
from kbert.checkpoints.ctranslate2 import TokenNames, write_ctranslate2
from kbert.checkpoints.translation_folder import TranslationCheckpoint
from kbert.decoding.shortlist import Shortlist
from kbert.models.encoder import encoder_of
from kbert.models.weights import assign_arrays, encoder_arrays
from kbert.pipelines.tokenizers import put_tokenizer, tokenizer_of
from kbert.text.subword import Subword

SOURCE_SUBWORDS, TARGET_SUBWORDS = "source.model", "target.model"
_NOT_TRANSFORMER = ("name", "trainable", "dtype", "bert")


def translation_checkpoint(model: Any) -> TranslationCheckpoint:
    """Returns a `Translator` as named arrays, with its subwords and settings."""
    transformer = model.transformer
    arrays, bert = encoder_arrays(transformer), None
    config = {k: v for k, v in transformer.get_config().items() if k not in _NOT_TRANSFORMER}
    if model.bert_tokenizer is not None:
        beside = f"{transformer.bert.name}/"
        arrays = {name: array for name, array in arrays.items() if not name.startswith(beside)}
        bert = transformer.bert.to_checkpoint()
        put_tokenizer(model.bert_tokenizer, bert)
    return TranslationCheckpoint(
        config,
        arrays,
        model.source_subwords.model,
        model.target_subwords.model,
        {name: getattr(model, name) for name in model.arguments},
        bert,
        transformer.architecture,
        model.shortlist and (model.shortlist.translations, model.shortlist.everywhere),
    )


def translator_from(
    cls: Any, checkpoint: TranslationCheckpoint, dtype: Any = None, **kwargs: Any
) -> Any:
    """Creates a translator of class `cls`, whose `**kwargs` override the checkpoint's settings."""
    typed = {} if dtype is None else {"dtype": dtype}
    encoder: dict[str, Any] = {}
    beside: tuple[str, ...] = ()
    tokenizer = None
    if checkpoint.bert is not None:
        encoder["bert"] = encoder_of(checkpoint.bert, needs_pooler=False, **typed)
        tokenizer, beside = tokenizer_of(checkpoint.bert), (f"{encoder['bert'].name}/",)
    kind = encoder_decoder_class(checkpoint.architecture)
    transformer = kind(**checkpoint.transformer, **encoder, **typed)
    assign_arrays(transformer, checkpoint.arrays, lambda name: name.startswith(beside))
    source = Subword(checkpoint.source_subwords)
    is_joint = checkpoint.target_subwords == checkpoint.source_subwords
    target = None if is_joint else Subword(checkpoint.target_subwords)
    settings = {**checkpoint.settings, **typed, **kwargs}
    if checkpoint.shortlist is not None:
        settings.setdefault("shortlist", Shortlist(*checkpoint.shortlist))
    return cls(transformer, source, target, tokenizer, **settings)


def save_ctranslate2(
    translator: Any, directory: str | os.PathLike[str], overwrite: bool = False
) -> Path:
    """Writes a folder for `ctranslate2.Translator`, with the subword models beside it.

    `source.model` and `target.model` are read by the `sentencepiece` library, and `search.json`
    holds the arguments of `translate_batch` for the translator's search; see `search_arguments`.
    With `return_attention` CTranslate2 returns the attention of `align`, without end tokens; for
    the mean of all layers (`alignment_layer=None`) it has only the last layer's.

    Raises:
        ValueError: CTranslate2 has no such model, for example with a fused BERT.
        ModuleNotFoundError: the package ctranslate2 is not installed.
    """
    transformer = translator.transformer
    if transformer.architecture != TRANSFORMER:
        raise ValueError(
            "`translator` must have a plain Transformer: CTranslate2 has no other model, and no "
            f"attention to a second encoder. Received: a {type(transformer).__name__}"
        )
    arrays = encoder_arrays(transformer)
    if transformer.positions != "learned":
        for side in ("source", "target"):
            table = getattr(transformer, f"{side}_positions").table
            arrays[f"{side}_positions/embeddings"] = np.asarray(table)
    source, target = translator.source_subwords, translator.target_subwords
    return write_ctranslate2(
        {**transformer.get_config(), "positions": "learned"},
        arrays,
        TokenNames(
            source.pieces,
            target.pieces,
            *(target.pieces[i] for i in (target.unknown_id, target.start_id, target.end_id)),
        ),
        directory,
        alignment_layer=-1 if translator.alignment_layer is None else translator.alignment_layer,
        search=search_arguments(translator)[0],
        files={SOURCE_SUBWORDS: source.model, TARGET_SUBWORDS: target.model},
        overwrite=overwrite,
    )


def search_arguments(translator: Any) -> tuple[dict[str, Any], list[str]]:
    """Returns arguments of `ctranslate2.Translator.translate_batch` for a translator's search.

    Beside them come notes: a sentence for each remaining difference of the search.
    """
    longest = int(translator.transformer.max_sequence_length)
    is_power = translator.length_penalty == "power" or translator.alpha == 0
    arguments: dict[str, Any] = {
        "beam_size": translator.beam_size,
        "num_hypotheses": translator.nbest,
        "length_penalty": float(translator.alpha) if is_power else 0.0,
        "patience": float(translator.patience or 1.0),
        # Its own default of 1 forbids empty translations.
        "min_decoding_length": 0,
        "max_decoding_length": longest,
        "max_input_length": longest,
        "return_scores": True,
    }
    notes = [
        "CTranslate2 has one longest translation for all texts, max_decoding_length; kbert has "
        f"{translator.length_ratio:g} times the source's pieces and {translator.length_extra}."
    ]
    if not is_power:
        notes.append(
            'CTranslate2 has no length penalty "gnmt": its search runs with none '
            "(length_penalty=0)."
        )
    elif translator.patience is None and translator.alpha != 0 and translator.beam_size > 1:
        notes.append(
            "CTranslate2 stops at a number of finished translations, patience times beam_size; "
            "kbert, with patience=None, where none can become better any more."
        )
    if translator.alignment_layer is None:
        notes.append(
            "CTranslate2 has one layer for return_attention, the last; kbert aligns by all of them."
        )
    if translator.shortlist is not None:
        notes.append("CTranslate2 gets no shortlist: its search takes all pieces.")
    return arguments, notes
