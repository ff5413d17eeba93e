"""Captioners as checkpoints."""

from typing import Any

from kbert.architectures import captioner_class
from kbert.checkpoints.captioning_folder import CaptioningCheckpoint
from kbert.models.captioning.feature_extractor import FeatureExtractor
from kbert.models.weights import assign_arrays, encoder_arrays
from kbert.text.subword import Subword

_NOT_ARGUMENTS = ("name", "trainable", "dtype")


def captioning_checkpoint(model: Any) -> CaptioningCheckpoint:
    """Returns a `Captioner` as named arrays, with its subwords and settings."""
    decoder = model.decoder.get_config()
    return CaptioningCheckpoint(
        model.decoder.architecture,
        {name: value for name, value in decoder.items() if name not in _NOT_ARGUMENTS},
        encoder_arrays(model.decoder),
        {k: v for k, v in model.extractor.get_config().items() if k not in _NOT_ARGUMENTS},
        encoder_arrays(model.extractor),
        model.subwords.model,
        {name: getattr(model, name) for name in model.arguments},
    )


def captioner_from(
    cls: Any, checkpoint: CaptioningCheckpoint, dtype: Any = None, **kwargs: Any
) -> Any:
    """Creates a captioner of class `cls`, whose `**kwargs` override the checkpoint's settings."""
    typed = {} if dtype is None else {"dtype": dtype}
    decoder = captioner_class(checkpoint.architecture)(**checkpoint.decoder, **typed)
    assign_arrays(decoder, checkpoint.decoder_arrays)
    extractor = FeatureExtractor.from_config(checkpoint.extractor)
    assign_arrays(extractor, checkpoint.extractor_arrays)
    subwords = Subword(checkpoint.subwords)
    return cls(decoder, extractor, subwords, **{**checkpoint.settings, **typed, **kwargs})
