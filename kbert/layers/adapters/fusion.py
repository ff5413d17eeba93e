"""AdapterFusion: attention to the outputs of several adapters of one encoder block.

Shapes: D hidden width, N fused adapters.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from kbert.layers.adapters.block_adapters import BlockAdapter, PfeifferAdapter
from kbert.layers.encoder_block import FEED_FORWARD
from kbert.layers.linear import normal_linear


@keras.saving.register_keras_serializable("kbert")
class NearIdentity(keras.initializers.Initializer):
    """1 on the diagonal of a square matrix, 1e-6 elsewhere."""

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        one = ops.eye(shape[0], dtype=dtype)
        return one + (1.0 - one) * 1e-6


@keras.saving.register_keras_serializable("kbert")
class TowardsIdentity(keras.regularizers.Regularizer):
    """factor |I - W|^2 of a square matrix W.

    Args:
        factor: of the sum of squares.
    """

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        matrix = ops.cast(x, "float32")
        return self.factor * ops.sum(ops.square(ops.eye(x.shape[0], dtype="float32") - matrix))

    def get_config(self) -> dict[str, Any]:
        return {"factor": self.factor}


@keras.saving.register_keras_serializable("kbert")
class AdapterFusion(BlockAdapter):
    """Attends to the outputs of N Pfeiffer adapters, and adds the mean of their values.

    With a = LN(h + x) and u_n what adapter n makes of a, weights are the softmax over n of
    (W_q a + b_q) . (W_k u_n + b_k), and the output is LN(sum_n alpha_n W_v u_n + h + x).

    Source: Pfeiffer et al. 2021, section 3.2; what it leaves open as in AdapterHub. W_v starts at
    the identity with 1e-6 beside it, and `regularization` adds to the loss.

    Args:
        regularization: factor of |I - W_v|^2 in the loss.
        initializer_range: standard deviation of new weights of query and key.
    """

    def __init__(
        self, regularization: float = 0.01, initializer_range: float = 0.02, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.regularization, self.initializer_range = regularization, initializer_range

    def build(self, input_shape: Any) -> None:
        """Creates 3 D^2 + 2 D weights for an input (..., D), for any number of adapters."""
        width = input_shape[-1]
        given = {"dtype": self.dtype_policy}
        self.query = normal_linear(width, self.initializer_range, **given, name="query")
        self.key = normal_linear(width, self.initializer_range, **given, name="key")
        for layer in (self.query, self.key):
            layer.build(input_shape)
        self.value = self.add_weight(
            name="value",
            shape=(width, width),
            initializer=NearIdentity(),
            regularizer=TowardsIdentity(self.regularization),
        )
        self.built = True

    def weights_of(self, asked: Any, outputs: Sequence[Any]) -> Any:
        """Returns the weights of N adapters, (..., N).

        Args:
            asked: a, (..., D).
            outputs: u_n, N arrays (..., D).
        """
        query = self.query(asked)
        scores = [ops.sum(query * self.key(output), axis=-1) for output in outputs]
        return ops.softmax(ops.stack(scores, axis=-1), axis=-1)

    def fused(self, asked: Any, outputs: Sequence[Any]) -> Any:
        """Returns the mean of the values, (..., D); arguments as `weights_of`.

        Args:
            asked: a, (..., D).
            outputs: u_n, N arrays (..., D).
        """
        weights = self.weights_of(asked, outputs)
        mean = sum(weights[..., i : i + 1] * output for i, output in enumerate(outputs))
        flat = ops.matmul(ops.reshape(mean, (-1, mean.shape[-1])), self.value)
        return ops.reshape(flat, ops.shape(mean))


class FusedAdapters:
    """A fusion with the adapters that it reads, in the place of an adapter; it holds no weights.

    Args:
        fusion: what attends.
        adapters: the N adapters of the block.
        seen: a list to which each call adds the weights of the adapters, (..., N); or None.
    """

    def __init__(
        self,
        fusion: AdapterFusion,
        adapters: Sequence[PfeifferAdapter],
        seen: list[Any] | None = None,
    ) -> None:
        self.fusion, self.adapters, self.seen = fusion, list(adapters), seen

    def added(self, layer: str, inputs: Any) -> Any:
        """Returns None: nothing is added to dense layers.

        Args:
            layer: not read.
            inputs: not read.
        """
        return None

    def outputs(self, asked: Any, training: bool | None = None) -> list[Any]:
        """Returns u_n, N arrays like `asked`.

        Args:
            asked: a, (..., D).
            training: whether it trains.
        """
        return [adapter.bottleneck(asked, training=training) for adapter in self.adapters]

    def behind(
        self,
        sublayer: str,
        inputs: Any,
        hidden: Any,
        norm: Callable[[Any], Any],
        training: bool | None = None,
    ) -> Any:
        """Returns the output of a sublayer with its residual connection, (..., D).

        Args:
            sublayer: `ATTENTION` or `FEED_FORWARD`.
            inputs: x, what the sublayer read, (..., D).
            hidden: h, what it gave, behind its dropout, (..., D).
            norm: the block's LayerNorm.
            training: whether it trains.
        """
        total = inputs + hidden
        asked = norm(total)
        if sublayer != FEED_FORWARD:
            return asked
        outputs = self.outputs(asked, training)
        if self.seen is not None:
            self.seen.append(self.fusion.weights_of(asked, outputs))
        return norm(self.fusion.fused(asked, outputs) + total)
