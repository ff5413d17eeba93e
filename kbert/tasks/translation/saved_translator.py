"""Saving and loading of translators as folders."""

import os
from pathlib import Path
from typing import Any

from kbert.checkpoints.marian.files import read_marian
from kbert.checkpoints.native.translation_folder import (
    TranslationCheckpoint,
    read_translation,
    write_translation,
)
from kbert.models.bert import Bert
from kbert.models.bert_fused_transformer import BertFusedTransformer
from kbert.models.encoder_arrays import assign_arrays, encoder_arrays
from kbert.models.transformer import Transformer
from kbert.pipelines.base.saved_pipeline import rules_of, tokenizer_of
from kbert.text.subword.subword import Subword

_NOT_SETTINGS = (
    *("name", "trainable", "dtype", "transformer"),
    *("source_subwords", "target_subwords", "bert_tokenizer"),
)
_NOT_TRANSFORMER = ("name", "trainable", "dtype", "bert")


def save_translator(
    model: Any, directory: str | os.PathLike[str], overwrite: bool = False
) -> Path:
    """Writes a `Translator`.

    Args:
        model: the translator.
        directory: the folder to create.
        overwrite: whether an existing folder may be replaced.

    Returns:
        The folder.

    Raises:
        FileExistsError: the folder exists, and may not be replaced.
    """
    return write_translation(translation_checkpoint(model), directory, overwrite)


def translation_checkpoint(model: Any) -> TranslationCheckpoint:
    """Returns a `Translator` as named arrays, with its subwords and settings."""
    transformer = model.transformer
    arrays, bert = encoder_arrays(transformer), None
    config = {k: v for k, v in transformer.get_config().items() if k not in _NOT_TRANSFORMER}
    if model.bert_tokenizer is not None:
        beside = f"{transformer.bert.name}/"
        arrays = {name: array for name, array in arrays.items() if not name.startswith(beside)}
        bert = transformer.bert.to_checkpoint()
        bert.vocabulary_tokens = model.bert_tokenizer.vocabulary.tokens
        bert.lowercase = model.bert_tokenizer.lowercase
        bert.tokenizer_rules = rules_of(model.bert_tokenizer)
    return TranslationCheckpoint(
        config,
        arrays,
        model.source_subwords.model,
        model.target_subwords.model,
        {k: v for k, v in model.get_config().items() if k not in _NOT_SETTINGS},
        bert,
    )


def load_translator(
    cls: Any, directory: str | os.PathLike[str], dtype: Any = None, **kwargs: Any
) -> Any:
    """Loads a folder of `save_translator`.

    Args:
        cls: `Translator`, or a subclass.
        directory: the folder.
        dtype: dtype or dtype policy of the computation.
        **kwargs: settings of the translator that override the saved ones.

    Raises:
        ValueError: a file is damaged, or weights do not fit.
        FileNotFoundError: a file is missing.
    """
    return translator_from(cls, read_translation(directory), dtype, **kwargs)


def translator_from(
    cls: Any, checkpoint: TranslationCheckpoint, dtype: Any = None, **kwargs: Any
) -> Any:
    """Creates a translator from a checkpoint.

    Args:
        cls: `Translator`, or a subclass.
        checkpoint: named arrays, subwords and settings.
        dtype: dtype or dtype policy of the computation.
        **kwargs: settings of the translator that override those in the checkpoint.

    Raises:
        ValueError: weights do not fit.
    """
    typed = {} if dtype is None else {"dtype": dtype}
    tokenizer = None
    if checkpoint.bert is None:
        transformer = Transformer(**checkpoint.transformer, **typed)
    else:
        bert = Bert.from_checkpoint(checkpoint.bert, needs_pooler=False, **typed)
        tokenizer = tokenizer_of(checkpoint.bert)
        transformer = BertFusedTransformer(**checkpoint.transformer, bert=bert, **typed)
    beside = () if checkpoint.bert is None else (f"{transformer.bert.name}/",)
    assign_arrays(transformer, checkpoint.arrays, lambda name: name.startswith(beside))
    source = Subword(checkpoint.source_subwords)
    target = source
    if checkpoint.target_subwords != checkpoint.source_subwords:
        target = Subword(checkpoint.target_subwords)
    return cls(transformer, source, target, tokenizer, **{**checkpoint.settings, **typed, **kwargs})


def load_marian(
    cls: Any, directory: str | os.PathLike[str], dtype: Any = None, **kwargs: Any
) -> Any:
    """Loads a Marian model of Hugging Face's layout; see `kbert.checkpoints.marian.files`.

    Args:
        cls: `Translator`, or a subclass.
        directory: the folder.
        dtype: dtype or dtype policy of the computation.
        **kwargs: settings of the translator that override the model's own.

    Raises:
        ValueError: a file is damaged, or kbert does not support the model.
        FileNotFoundError: a file is missing.
    """
    return translator_from(cls, read_marian(directory), dtype, **kwargs)
