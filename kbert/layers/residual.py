"""Bases of all layers, and what stands around a sublayer: dropout, residual and normalization.

The seed of a dropout can be drawn beforehand, so that a block can be recomputed identically.
"""

import inspect
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops


def constructor_arguments(made: Any) -> dict[str, Any]:
    """Returns the attributes of an object that are named as arguments of its constructor.

    Where a constructor takes `*args`, those of the base class come first. What Keras can make again
    (initializers, models) is in its serialized form.
    """
    found: dict[str, Any] = {}
    for owner in type(made).__mro__:
        if "__init__" not in vars(owner):
            continue
        parameters = inspect.signature(vars(owner)["__init__"]).parameters.values()
        named = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        found = {name: getattr(made, name) for name in named[1:]} | found  # without `self`
        if all(p.kind is not p.VAR_POSITIONAL for p in parameters):
            break
    serialized = keras.saving.serialize_keras_object
    return {k: serialized(v) if hasattr(v, "get_config") else v for k, v in found.items()}


class ConfiguredLayer(keras.layers.Layer):
    """Base class of layers that keep each argument of their constructor as an attribute."""

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **constructor_arguments(self)}


class ShapeKeepingLayer(ConfiguredLayer):
    """Base class of layers whose outputs have the shape, and Keras' implicit mask, of the input."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def compute_output_shape(self, input_shape: Any = None, *args: Any, **kwargs: Any) -> Any:
        # `summary` gives the shapes of `build` by their names there, the input's first.
        return next(iter(kwargs.values())) if input_shape is None else input_shape


class DrawnSeed(keras.random.SeedGenerator):
    """A seed that was drawn before: `next` returns the same (2,) seed every time.

    Recomputing activations in the backward pass (gradient checkpointing) must drop the units that
    the forward pass dropped; a plain `SeedGenerator` would move on.
    """

    def __init__(self, value: Any) -> None:
        # The state variable of the base class is not wanted: nothing here changes.
        self.value = value

    def next(self, ordered: bool = True) -> Any:
        """Returns the drawn seed, (2,)."""
        return self.value


@keras.saving.register_keras_serializable("kbert")
class Dropout(ShapeKeepingLayer):
    """Zeroes units with probability `rate` in training and scales the others by 1 / (1 - rate).

    Source: Srivastava et al. 2014.

    Args:
        rate: probability of dropping, 0 <= rate < 1.
        seed: int or None, the start of this layer's random sequence.

    Raises:
        ValueError: `rate` is outside its range.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(rate, int | float | np.floating) or not 0 <= rate < 1:
            raise ValueError(
                "`rate`, the `dropout` or `attention_dropout` of a model, must be a number in "
                f"[0, 1). Received: {rate!r}"
            )
        self.rate, self.seed = rate, seed

    def build(self, input_shape: Any = None) -> None:
        """Creates the state of the random sequence, here so that it is named after the layer."""
        if self.rate > 0:
            self.seed_generator = keras.random.SeedGenerator(self.seed, name="seed_generator")
        self.built = True

    def draw(self) -> Any:
        """Draws the seed of one call, (2,); None if the rate is 0."""
        return self.seed_generator.next() if self.rate > 0 else None

    def call(self, inputs: Any, training: bool | None = None, seed: Any = None) -> Any:
        """Returns an array like `inputs`, of any shape, without some units if `training`.

        Args:
            seed: a seed from `draw`; None draws a new one.
        """
        if not training or self.rate == 0:
            return inputs
        drawn = DrawnSeed(self.draw() if seed is None else seed)
        # Drawn in float32 whatever the type of the units is: a uniform bfloat16 has 128 values, and
        # a rate of 0.1 would become 0.1016.
        chances = keras.random.uniform(ops.shape(inputs), dtype="float32", seed=drawn)
        kept = ops.cast(chances >= self.rate, inputs.dtype)
        # One factor for both passes: the backward pass is a single product with it.
        return inputs * (kept * (1.0 / (1.0 - self.rate)))


@keras.saving.register_keras_serializable("kbert")
class LayerNorm(ShapeKeepingLayer):
    """gamma (x - mean) / sqrt(variance + epsilon) + beta over the last axis.

    Source: Ba et al. 2016. The arithmetic runs in float32 under bfloat16 and float16 too, and its
    result is rounded once: squares overflow in float16 from 256 on, and what bfloat16 loses in a
    mean and a variance goes through every layer above.

    Args:
        epsilon: added to the variance.
    """

    def __init__(self, epsilon: float = 1e-12, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: Any) -> None:
        """Creates gamma and beta, (D,), for an input (..., D)."""
        shape = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=shape, initializer="ones")
        self.beta = self.add_weight(name="beta", shape=shape, initializer="zeros")
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Normalizes the last axis of `inputs` (..., D)."""
        x, gamma, beta = inputs, self.gamma, self.beta
        if self.compute_dtype in ("bfloat16", "float16"):
            x, gamma, beta = (ops.cast(one, "float32") for one in (x, gamma, beta))
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        normalized = centred * ops.rsqrt(variance + self.epsilon)
        return ops.cast(normalized * gamma + beta, self.compute_dtype)


@keras.saving.register_keras_serializable("kbert")
class Residual(ShapeKeepingLayer):
    """Wraps a sublayer f with dropout, a residual connection and a LayerNorm.

    Post-norm (Vaswani et al. 2017; BERT): LN(x + dropout(f(x))).
    Pre-norm (Xiong et al. 2020): x + dropout(f(LN(x))).

    Args:
        dropout: rate of the dropout on the sublayer's output.
        norm: "post" or "pre".
        epsilon: of the LayerNorm.

    Raises:
        ValueError: `norm` is neither.
    """

    def __init__(
        self, dropout: float = 0.0, norm: str = "post", epsilon: float = 1e-12, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if norm not in ("post", "pre"):
            raise ValueError(f'`norm` must be "post" or "pre". Received: norm={norm!r}')
        self.dropout, self.norm, self.epsilon = dropout, norm, epsilon
        self.dropout_layer = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.layer_norm = LayerNorm(epsilon, dtype=self.dtype_policy, name="layer_norm")

    def build(self, input_shape: Any) -> None:
        """Creates the LayerNorm for an input (..., D)."""
        self.dropout_layer.build()
        self.layer_norm.build(input_shape)
        self.built = True

    def call(
        self,
        inputs: Any,
        sublayer: Callable[[Any], Any],
        training: bool | None = None,
        seed: Any = None,
        joined: Callable[[Any, Any, Any], Any] | None = None,
    ) -> Any:
        """Applies the sublayer within its residual connection, to (..., D).

        Args:
            inputs: (..., D).
            sublayer: maps (..., D) to (..., D); passed by keyword.
            training: whether dropout is on.
            seed: drawn seed of the dropout, or None.
            joined: post-norm only: maps `inputs`, dropout(f(inputs)) and the LayerNorm to the
                output; None adds and normalizes.
        """
        if self.norm == "pre":
            hidden = sublayer(self.layer_norm(inputs))
            return inputs + self.dropout_layer(hidden, training=training, seed=seed)
        hidden = self.dropout_layer(sublayer(inputs), training=training, seed=seed)
        if joined is not None:
            return joined(inputs, hidden, self.layer_norm)
        return self.layer_norm(inputs + hidden)
