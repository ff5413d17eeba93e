"""Hidden states of a frozen encoder on disk, for training a model that reads them."""

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.data.batches.packed_examples import WIDTHS, PackedExamples
from kbert.data.features.cache import (
    BATCH_TOKENS,
    DTYPE,
    CacheReport,
    cached_features,
)
from kbert.data.features.text_features import FrozenEncoder, TextFeatures
from kbert.models.encoder import Encoder
from kbert.models.feature_based import FeatureBasedEncoder, layer_states
from kbert.models.feature_names import FEATURES
from kbert.models.weights import assign_arrays, encoder_arrays

# Constructor arguments without effect on the outputs of an encoder in inference.
_WITHOUT_PART = (
    *("name", "trainable", "dtype", "dropout", "attention_dropout"),
    *("initializer_range", "gradient_checkpointing"),
)
# Seconds between two updates of the bar if stderr is a file.
_SECONDS_BETWEEN_LINES = 30.0


def frozen_states(
    encoder: Encoder,
    packed: PackedExamples,
    directory: str | os.PathLike[str],
    dtype: str = DTYPE,
    policy: str | None = None,
    batch_tokens: int = BATCH_TOKENS,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[TextFeatures, CacheReport]:
    """Returns the hidden states of all tokens of texts, computed once and kept on disk.

    They are those that a `FeatureBasedEncoder` reads, and of other encoders the last ones, both
    without dropout. They are valid for the current weights; with others this function computes and
    keeps others.

    Args:
        encoder: the encoder, for example the `bert` of a `BertFusedTransformer`.
        packed: the texts in its tokens, each at most `encoder.max_sequence_length` long.
        directory: the folder of the states, which may be deleted at any time.
        dtype: dtype of the states on disk.
        policy: dtype policy to compute in, "mixed_bfloat16" for example; None for the encoder's.
        batch_tokens: the most positions of a batch, padding included.
        progress: callback with the computed and all tokens; None draws a bar on stderr.

    Returns:
        The states, and a report of what was computed.

    Raises:
        ValueError: a text is longer than the encoder can read; or see `cached_features`.
        OSError: the states cannot be written.
    """
    longest = int(packed.lengths.max(initial=0))
    if longest > encoder.max_sequence_length:
        raise ValueError(
            f"`packed` must have texts of at most {encoder.max_sequence_length} tokens for this "
            f"encoder. Received: one of {longest}"
        )
    drawn = _Bar() if progress is None else progress
    function = frozen_encoder(encoder, policy)
    return cached_features(packed, function, directory, dtype, batch_tokens, progress=drawn)


def frozen_encoder(encoder: Encoder, policy: str | None = None) -> FrozenEncoder:
    """Returns an encoder as a function; its weights must not change while it is used."""
    base, features, width = encoder, "last", encoder.hidden_dim
    if isinstance(encoder, FeatureBasedEncoder):
        base, features, width = encoder.encoder, encoder.features, encoder.frozen_dim

    @cache  # Not needed if all states are on disk.
    def states() -> Any:
        return _states(base if policy is None else with_policy(base, policy), features)

    def encode(inputs: dict[str, np.ndarray]) -> np.ndarray:
        found: np.ndarray = states()(inputs)
        return found

    fingerprint = encoder_fingerprint(base, policy)
    about = _description(base, policy)
    if features != "last":
        # Those of the last four are stored alike, whether they are added up afterwards or not.
        kept = FEATURES[features]
        about["states"] = [kept.start, kept.stop]
        fingerprint = hashlib.sha256(f"{fingerprint} {about['states']}".encode()).hexdigest()
    return FrozenEncoder(encode, width, fingerprint, about)


def _states(encoder: Encoder, features: str) -> Any:
    """Returns a function from the inputs to the hidden states, arrays of NumPy.

    On TensorFlow it is a graph that is traced once for all shapes.
    """
    if keras.backend.backend() != "tensorflow":
        return partial(_by_single_ops, encoder, features)
    specs = {
        "token_ids": tf.TensorSpec((None, None), tf.int32),
        "segment_ids": tf.TensorSpec((None, None), tf.int32),
        "padding_mask": tf.TensorSpec((None, None), tf.bool),
    }

    @tf.function
    def states(inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        return layer_states(encoder, inputs, features)

    traced = states.get_concrete_function(specs)
    return lambda inputs: traced({k: tf.constant(v) for k, v in inputs.items()}).numpy()


def _by_single_ops(encoder: Encoder, features: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """Returns the hidden states on JAX, which compiles an operation for each shape it meets.

    So rows and lengths are rounded up, to powers of 2 and to multiples of `WIDTHS`.
    """
    rows, length = inputs["token_ids"].shape
    width = min(-(-length // WIDTHS) * WIDTHS, encoder.max_sequence_length)
    more = ((0, (1 << (rows - 1).bit_length()) - rows), (0, width - length))
    padded = {name: np.pad(array, more) for name, array in inputs.items()}
    states = keras.ops.convert_to_numpy(layer_states(encoder, padded, features))
    return np.asarray(states[:rows, :length])


def encoder_fingerprint(encoder: Any, policy: str | None = None) -> str:
    """Returns a hash of all that the last hidden states of an encoder depend on.

    These are its class, sizes, weights and dtype policy. The pooler is left out, since it comes
    after the states, and is random if a checkpoint has none; so are dropout and other options that
    only affect training. The hash is a SHA-256 in hexadecimal digits.
    """
    digest = hashlib.sha256(json.dumps(_description(encoder, policy), sort_keys=True).encode())
    for name, array in sorted(encoder_arrays(encoder).items()):
        if not name.startswith("pooler/"):
            digest.update(json.dumps([name, array.dtype.name, array.shape]).encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def with_policy(bert: Any, policy: str) -> Any:
    """Returns a copy of an encoder, with its own variables, in another dtype policy."""
    other = type(bert).from_config({**bert.get_config(), "dtype": policy})
    assign_arrays(other, encoder_arrays(bert))
    return other


def _description(encoder: Any, policy: str | None) -> dict[str, Any]:
    config = {k: v for k, v in encoder.get_config().items() if k not in _WITHOUT_PART}
    policy = encoder.dtype_policy.name if policy is None else policy
    return {"class": type(encoder).__name__, "policy": policy, **config}


class _Bar:
    """A progress bar on stderr, of the tokens that this process computes."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._first = 0
        self._begin = 0.0

    def __call__(self, done: int, total: int) -> None:
        # Keras draws its bar on stdout, which is reserved for results.
        with contextlib.redirect_stdout(sys.stderr):
            if self._bar is None:
                interval = 0.2 if sys.stderr.isatty() else _SECONDS_BETWEEN_LINES
                self._bar = keras.utils.Progbar(
                    total - done,
                    interval=interval,
                    unit_name="token",
                    stateful_metrics=["tokens_per_second"],
                )
                self._first, self._begin = done, time.perf_counter()
                return
            count = done - self._first
            speed = count / max(1e-9, time.perf_counter() - self._begin)
            self._bar.update(count, [("tokens_per_second", speed)])
