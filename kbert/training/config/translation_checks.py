"""Checks of the values of a translation configuration against each other."""

from typing import Any

from kbert.options.configuration import check_default, wrong
from kbert.tasks.base.finetuned_task import TFDS

PARTS = ("train", "validation", "test")
# Options of learning subwords, without effect where subword models are given.
_LEARNED = (
    *("subwords", "subword_type", "vocabulary_size", "normalization"),
    *("character_coverage", "byte_fallback", "subword_lines"),
)
# Fixed by the translator of a warm start.
_SIZES = (
    *("size", "num_encoder_layers", "num_decoder_layers", "hidden_dim", "num_heads"),
    *("intermediate_dim", "max_sequence_length", "norm", "positions", "tied"),
)
_OF_BERT = ("drop_net", "train_bert", "features")


def check_translation(config: Any) -> None:
    """Checks the values of a configuration against each other.

    Args:
        config: A `TranslationConfig` whose single values have been checked.

    Raises:
        ValueError: Two of them contradict each other, or one is missing.
    """
    _check_data(config)
    _check_subwords(config)
    _check_model(config)


def _check_data(config: Any) -> None:
    tfds = False
    for part in PARTS:
        given = getattr(config, part)
        source, target = (getattr(config, f"{part}_{side}") for side in ("source", "target"))
        tfds = tfds or str(given).startswith(TFDS)
        if given is not None and (source is not None or target is not None):
            raise wrong(part, f"left out with {part}_source and {part}_target", given)
        for side, value, other in (("source", source, target), ("target", target, source)):
            if value is None and other is not None:
                raise wrong(f"{part}_{side}", "given with the other side of the pairs", None)
            if str(value).startswith(TFDS):
                raise wrong(f"{part}_{side}", f"a text file; give {part} for tfds:NAME", value)
    if config.train is None and config.train_source is None:
        raise wrong("train", "given, or train_source and train_target", None)
    if config.validation is None and config.validation_source is None:
        check_default(config, ("early_stopping", "monitor"), "where there is no validation")
    if not tfds:
        check_default(config, ("source_language", "data"), "without tfds:NAME")


def _check_subwords(config: Any) -> None:
    if config.target_subwords is not None and config.source_subwords is None:
        raise wrong("source_subwords", "given with target_subwords", None)
    if config.source_subwords is not None:
        check_default(config, _LEARNED, "with source_subwords, a ready model")
    if config.tied == "all" and config.subwords == "separate":
        raise wrong("tied", "target or none with subwords='separate'", config.tied)


def _check_model(config: Any) -> None:
    if config.warm_start is not None:
        ready = ("source_subwords", "target_subwords")
        check_default(config, (*_SIZES, *_LEARNED, *ready), "with warm_start, which has its own")
    if config.bert is None:
        check_default(config, _OF_BERT, "without bert")
    if config.features is not None and config.train_bert:
        raise wrong("features", "left out with train_bert: its states change", config.features)
    if config.cooldown_epochs > config.epochs:
        raise wrong("cooldown_epochs", f"at most epochs={config.epochs}", config.cooldown_epochs)
    if config.nbest > config.beam_size:
        raise wrong("nbest", f"at most beam_size={config.beam_size}", config.nbest)
