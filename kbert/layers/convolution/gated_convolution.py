"""Convolutions with gated linear units, and the blocks of ConvS2S.

Source: Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", sections 3.2 to 3.4; the
sums of two are scaled by sqrt(0.5) as in the authors' code.

Shapes: B batch, T length, S source length, C channels, E embeddings, J kernel width, k hypotheses a
row.
"""

import math
from typing import Any, NamedTuple

import keras
from keras import ops

from kbert.gradients import own_gradient
from kbert.layers.convolution.weight_norm import WeightNormLinear
from kbert.layers.masks import additive_mask
from kbert.layers.residual import ConfiguredLayer, Dropout

ROOT_HALF = math.sqrt(0.5)


class ConvolvedSource(NamedTuple):
    """A source that decoder blocks attend to, prepared once for all of them."""

    keys: Any  # (B, E, S), the output of the encoder
    values: Any  # (B, S, E), with the embeddings
    real: Any  # (B, 1, S), 1 for a real token, else 0
    penalty: Any  # (B, 1, S), added to the scores of padding
    scale: Any  # (B, 1, 1), m sqrt(1 / m) for m real tokens: a mean has a variance of 1 / m

    @classmethod
    def of(cls, keys: Any, embedded: Any, mask: Any) -> "ConvolvedSource":
        """Prepares the output of an encoder and its embeddings (B, S, E), mask bool (B, S)."""
        real = ops.cast(mask, keys.dtype)[:, None]
        dtype = keras.backend.standardize_dtype(keys.dtype)
        penalty = additive_mask(ops.cast(mask, "bool"), dtype)[:, None]
        scale = ops.sqrt(ops.sum(real, axis=-1, keepdims=True))
        values = (keys + embedded) * ROOT_HALF
        return cls(ops.transpose(keys, (0, 2, 1)), values, real, penalty, scale)


@keras.saving.register_keras_serializable("kbert")
class GatedConvolution(ConfiguredLayer):
    """A convolution over time to twice the channels, of which one half opens the other.

    GLU(a, b) = a sigmoid(b) (Dauphin et al. 2017). One product of windows and a matrix: so a single
    step of decoding is the same product.

    Args:
        kernel_width: J.
        causal: whether a window ends at its position, instead of having it in the middle.
        dropout: rate of the dropout on the input, whose inverse the weights begin with.

    Raises:
        ValueError: `kernel_width` is even or below 3.
    """

    def __init__(
        self, kernel_width: int = 3, causal: bool = False, dropout: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if kernel_width < 3 or kernel_width % 2 == 0:
            raise ValueError(
                f"`kernel_width` must be odd and at least 3. Received: kernel_width={kernel_width}"
            )
        self.kernel_width, self.causal, self.dropout = kernel_width, causal, dropout

    def build(self, input_shape: Any) -> None:
        """Creates the weights for an input (..., C): those of J C inputs and 2 C outputs."""
        channels = input_shape[-1]
        # A gate halves what passes on average: variance 4 keeps that of the input.
        gain = 4.0 * (1.0 - self.dropout)
        self.linear = WeightNormLinear(
            2 * channels, gain, dtype=self.dtype_policy, name="convolution"
        )
        self.linear.build((None, self.kernel_width * channels))
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Computes all positions.

        Args:
            inputs: (B, T, C); beyond both ends are zeros.

        Returns:
            (B, T, C).
        """
        more = self.kernel_width - 1
        return self.of_windows(_windows(inputs, more if self.causal else more // 2, more))

    def of_windows(self, windows: Any, scale: Any = None) -> Any:
        """Computes positions by their windows.

        Args:
            windows: (..., J C), J inputs side by side, the earliest first.
            scale: of the weights, see `WeightNormLinear`; None computes it.

        Returns:
            (..., C).
        """
        values, gates = ops.split(self.linear(windows, scale), 2, axis=-1)
        return values * ops.sigmoid(gates)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape


def _windows(inputs: Any, before: int, more: int) -> Any:
    """Returns each position of (B, T, C) with `more` neighbours: (B, T, (more + 1) C).

    `before` of them come before it. The gradient of a slice is a slow pass for each of them.
    """

    @own_gradient
    def run(inputs: Any) -> Any:
        length = ops.shape(inputs)[1]
        padded = ops.pad(inputs, ((0, 0), (before, more - before), (0, 0)))
        shifted = [padded[:, place : place + length] for place in range(more + 1)]

        def gradient(*args: Any, upstream: Any = None) -> Any:
            (upstream,) = args if upstream is None else (upstream,)
            total: Any = 0.0
            for place, part in enumerate(ops.split(upstream, more + 1, axis=-1)):
                total = total + ops.pad(part, ((0, 0), (place, more - place), (0, 0)))
            return total[:, before : before + length]

        return ops.concatenate(shifted, axis=-1), gradient

    return run(inputs)


@keras.saving.register_keras_serializable("kbert")
class ConvolutionEncoderBlock(ConfiguredLayer):
    """(x + GLU(convolution(dropout(x)))) sqrt(0.5).

    Args:
        kernel_width: J.
        dropout: rate of the dropout before the convolution.
    """

    def __init__(self, kernel_width: int = 3, dropout: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kernel_width, self.dropout = kernel_width, dropout
        dtype = self.dtype_policy
        self.dropout_layer = Dropout(dropout, dtype=dtype, name="dropout")
        self.convolution = GatedConvolution(
            kernel_width, False, dropout, dtype=dtype, name="gated_convolution"
        )

    def build(self, input_shape: Any) -> None:
        """Creates the weights for an input (B, S, C)."""
        self.dropout_layer.build()
        self.convolution.build(input_shape)
        self.built = True

    def call(self, inputs: Any, mask: Any, training: bool | None = None) -> Any:
        """Maps inputs (B, S, C) to the same shape.

        Args:
            inputs: (B, S, C).
            mask: bool (B, S), True for a real token: padding is zero to its neighbours.
            training: whether dropout is on.
        """
        real = inputs * ops.cast(mask, inputs.dtype)[:, :, None]
        return (self.convolution(self.dropout_layer(real, training=training)) + inputs) * ROOT_HALF

    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        return input_shape


@keras.saving.register_keras_serializable("kbert")
class ConvolutionDecoderBlock(ConfiguredLayer):
    """A causal convolution that attends to the source, with the residual of its input.

    Args:
        embedding_dim: E.
        kernel_width: J.
        dropout: rate of the dropout before the convolution.
    """

    def __init__(
        self, embedding_dim: int, kernel_width: int = 3, dropout: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.embedding_dim, self.kernel_width, self.dropout = embedding_dim, kernel_width, dropout
        dtype = self.dtype_policy
        self.dropout_layer = Dropout(dropout, dtype=dtype, name="dropout")
        self.convolution = GatedConvolution(
            kernel_width, True, dropout, dtype=dtype, name="gated_convolution"
        )
        self.query = WeightNormLinear(embedding_dim, dtype=dtype, name="query")

    def build(self, input_shape: Any) -> None:
        """Creates the weights for an input (B, T, C)."""
        channels = input_shape[-1]
        self.dropout_layer.build()
        self.convolution.build(input_shape)
        self.query.build(input_shape)
        self.attended = WeightNormLinear(channels, dtype=self.dtype_policy, name="attended")
        self.attended.build((None, self.embedding_dim))
        self.built = True

    def call(
        self, inputs: Any, target: Any, source: ConvolvedSource, training: bool | None = None
    ) -> tuple[Any, Any]:
        """Computes all steps of a known target.

        Args:
            inputs: (B, T, C).
            target: (B, T, E), the target's embeddings.
            source: what the block attends to.
            training: whether dropout is on.

        Returns:
            (B, T, C), and the attention (B, T, S) of each step to the source.
        """
        convolved = self.convolution(self.dropout_layer(inputs, training=training))
        return self._attended(convolved, inputs, target, source)

    def linear_layers(self) -> tuple[WeightNormLinear, WeightNormLinear, WeightNormLinear]:
        """Returns the layers with weight normalization, in the order of `scales` in `step`."""
        return self.convolution.linear, self.query, self.attended

    def step(
        self, inputs: Any, before: Any, target: Any, source: ConvolvedSource, scales: Any
    ) -> tuple[Any, Any]:
        """Computes one step of k hypotheses.

        Args:
            inputs: (B, k, C).
            before: (B, k, (J - 1) C), the last inputs side by side, zeros before the first.
            target: (B, k, E), embeddings.
            source: what the block attends to.
            scales: of each of `linear_layers`, (B, 1, U).

        Returns:
            (B, k, C), and what is `before` at the next step.
        """
        windows = ops.concatenate([before, inputs], axis=-1)
        convolved = self.convolution.of_windows(windows, scales[0])
        found, _ = self._attended(convolved, inputs, target, source, *scales[1:])
        return found, windows[..., inputs.shape[-1] :]

    def _attended(
        self,
        convolved: Any,
        inputs: Any,
        target: Any,
        source: ConvolvedSource,
        query_scale: Any = None,
        attended_scale: Any = None,
    ) -> tuple[Any, Any]:
        queries = (self.query(convolved, query_scale) + target) * ROOT_HALF
        scores = ops.matmul(queries, source.keys) + source.penalty
        weights = ops.softmax(scores, axis=-1) * source.real
        context = ops.matmul(weights, source.values) * source.scale
        context = self.attended(context, attended_scale)
        return ((context + convolved) * ROOT_HALF + inputs) * ROOT_HALF, weights

    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("it depends on the source")
