"""The captioner of a run, and how it is compiled."""

from typing import Any

import keras

from kbert.architectures import captioner_class
from kbert.models.captioning.feature_extractor import FeatureExtractor, cut
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.captioning.model import Captioner
from kbert.text.subword import Subword
from kbert.training.config.captioning_config import (
    ARCHITECTURE_OPTIONS,
    IMAGE_TRANSFORMER,
    CaptioningConfig,
)

_CHOICES = ("hidden_dim", "max_sequence_length", "dropout")
_SETTINGS = (
    *("beam_size", "length_penalty", "alpha", "nbest", "max_length", "image_fit"),
    *("label_smoothing", "attention_penalty", "feature_dropout"),
)


def build_captioner(config: CaptioningConfig, subwords: Subword) -> Captioner:
    """Creates the model of a run; errors name the options of the network."""
    extractor = build_extractor(config)
    own = {name: getattr(config, name) for name in ARCHITECTURE_OPTIONS[config.architecture]}
    arguments: dict[str, Any] = {
        "vocabulary_size": len(subwords),
        "feature_dim": extractor.feature_dim,
        **{name: getattr(config, name) for name in _CHOICES},
        **{name: value for name, value in own.items() if value is not None},
    }
    if config.architecture == IMAGE_TRANSFORMER:
        height, width = extractor.map_shape
        arguments["num_places"] = height * width
    decoder = captioner_class(config.architecture)(**arguments, dtype=config.precision)
    settings = {name: getattr(config, name) for name in _SETTINGS}
    settings |= {"train_extractor": config.train_network, "dtype": config.precision}
    return Captioner(decoder, extractor, subwords, **settings)


def build_extractor(config: CaptioningConfig) -> FeatureExtractor:
    """Returns the network that sees the images, cut at its layer."""
    name, layer = config.network, config.network_layer
    try:
        if name.endswith(".keras"):
            return FeatureExtractor(cut(keras.saving.load_model(name), layer), config.preprocessing)
        weights = None if config.network_weights == "none" else config.network_weights
        size = config.image_size
        return FeatureExtractor.from_application(name, layer, weights, size, size)
    except ValueError as error:
        raise ValueError(f"`network` and `network_layer` must fit each other. {error}") from error


def compile_captioner(model: Captioner, config: CaptioningConfig, steps: int) -> None:
    """Compiles a captioner with Adam, for so many updates in all."""
    warmup = int(steps * config.warmup_share)
    optimizer = AdamW(
        WarmupLinearDecay(config.learning_rate, steps, warmup),
        config.weight_decay,
        global_clipnorm=config.clip,
    )
    model.compile(optimizer, steps_per_execution=config.steps_per_execution)
