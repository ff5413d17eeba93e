"""Captioners small enough to make in a test; their weights are random."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.data.samples.drawn_shapes import drawn_shapes
from kbert.models.captioning.feature_extractor import FeatureExtractor
from kbert.models.captioning.image_transformer import ImageTransformer
from kbert.models.captioning.show_attend_tell import ShowAttendTell
from kbert.tasks.captioning.model import Captioner
from kbert.text.subword import Subword
from kbert.text.subword_training import train_subwords

SIZE, HIDDEN, CHANNELS = 32, 8, 6


@functools.cache
def shapes(count: int = 12, captions_per_image: int = 2) -> tuple[np.ndarray, list[list[str]]]:
    """Pictures, uint8 (count, 32, 32, 3), and their captions; no test changes them."""
    return drawn_shapes(count, 3, SIZE, captions_per_image)


@functools.cache
def small_subwords() -> Subword:
    """Pieces of captions of shapes, in lower case."""
    texts = [text for each in shapes(40)[1] for text in each]
    with tempfile.TemporaryDirectory() as folder:
        return train_subwords(
            [texts], Path(folder, "c.model"), vocabulary_size=60, normalization="nfkc_cf"
        )


def small_network(size: int = SIZE, channels: int = CHANNELS) -> keras.Model:
    """Two convolutions, whose map is an eighth of the image's side."""
    entered = keras.Input((size, size, 3), name="pixels")
    x = keras.layers.Rescaling(1 / 64.0, -2.0, name="scaled")(entered)
    x = keras.layers.Conv2D(8, 4, 4, activation="relu", name="first")(x)
    x = keras.layers.Conv2D(channels, 2, 2, name="second")(x)
    return keras.Model(entered, x, name="small_network")


def small_captioner(
    kind: str = "soft", seed: int = 4, dtype: str = "float32", **options: Any
) -> Captioner:
    """One that says different things of different images, of "soft", "hard", "mean" or "image"."""
    keras.utils.set_random_seed(seed)
    subwords = small_subwords()
    extractor = FeatureExtractor(small_network())
    decoder: Any
    if kind == "image":
        sizes = (len(subwords), CHANNELS, 16, HIDDEN, 0, 1, 2, 16)
        decoder = ImageTransformer(*sizes, max_sequence_length=40, dropout=0.1, dtype=dtype)
    else:
        decoder = ShowAttendTell(
            *(len(subwords), CHANNELS, HIDDEN),
            attention=kind,
            max_sequence_length=40,
            dropout=0.1,
            dtype=dtype,
        )
    for variable in decoder.trainable_variables:
        if variable.path.endswith(("kernel", "embeddings")):
            variable.assign(variable * 3.0)
        elif variable.shape == (len(subwords),):  # the bias of the output: captions end
            variable.assign(4.0 * np.eye(len(subwords))[subwords.end_id])
    options = {"beam_size": 2, "max_length": 8, **options}
    return Captioner(decoder, extractor, subwords, dtype=dtype, **options)


def shared_captioner(kind: str = "soft", **options: Any) -> Captioner:
    """A small captioner that no test changes, one for all ways to ask for the same."""
    return _shared(kind, **{"beam_size": 2, **options})


@functools.cache
def _shared(kind: str, **options: Any) -> Captioner:
    return small_captioner(kind, **options)


def files_of(pictures: np.ndarray) -> list[bytes]:
    """PNG files of pictures."""
    return [tf.io.encode_png(one).numpy() for one in pictures]
