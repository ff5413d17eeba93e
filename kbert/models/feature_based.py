"""The feature-based approach: an encoder that stays as it is, and layers that read its states.

Source: Devlin et al. 2019, section 5.3 and table 7; Peters et al. 2018 for the learned mix.

Shapes: B batch, T length, D width of the frozen encoder, K of its states that are read, W width of
what is read of a token, R width of the reader.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.layers.pooling import POOLINGS, TokenPooling
from kbert.layers.recurrent.bidirectional import Bidirectional
from kbert.layers.residual import Dropout
from kbert.models.encoder import Encoder, HeadForm, encoder_inputs
from kbert.models.feature_names import FEATURES, READERS
from kbert.models.weights import misshapen, named_weights, trainable_but
from kbert.optimization.steps import retraced

STATES = "states"
_ARGUMENTS = ("features", "reader", "reader_dim", "num_reader_layers", "dropout", "pooling")


@retraced
@keras.saving.register_keras_serializable("kbert")
class FeatureBasedEncoder(keras.Model):
    """A frozen encoder whose states a small trained network reads; an `Encoder` to every task.

    The frozen encoder runs without dropout, and its states can be computed once and kept: with
    `states` among the inputs it does not run at all.

    Args:
        encoder: the frozen encoder, such as `Bert`.
        features: the states of a token: "last" or "second-to-last", those of one block;
            "last4-sum" or "last4-concat", of the last four; "mix", the sum of all, the embeddings
            too, by learned weights.
        reader: "linear", nothing before the task's own layer; or "bilstm", a bidirectional LSTM.
        reader_dim: width of the LSTM in each direction; None for that of the encoder, as in the
            source. R is twice as much.
        num_reader_layers: layers of the LSTM.
        dropout: rate of the dropout on what is read, and after each layer of the LSTM.
        pooling: one vector of a text, for tasks with one answer a text: "mean" or "max" over its
            tokens; None for the mean with "linear", the maximum with "bilstm".

    Raises:
        ValueError: a name is unknown, a size is not positive, or the encoder has fewer states.
    """

    def __init__(
        self,
        encoder: Any,
        features: str = "last4-concat",
        reader: str = "bilstm",
        reader_dim: int | None = None,
        num_reader_layers: int = 2,
        dropout: float = 0.1,
        pooling: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"name": "feature_based", "dtype": encoder.dtype_policy, **kwargs})
        for name, value, known in (
            ("features", features, FEATURES),
            ("reader", reader, READERS),
            ("pooling", pooling, (None, *POOLINGS)),
        ):
            if value not in known:
                raise ValueError(f"`{name}` must be one of {list(known)}. Received: {value!r}")
        for name, size in (("reader_dim", reader_dim), ("num_reader_layers", num_reader_layers)):
            if size is not None and size < 1:
                raise ValueError(f"`{name}` must be at least 1. Received: {name}={size}")
        self.num_states = _count(encoder, features)
        self.num_segments = getattr(encoder, "num_segments", 0)  # 0: they are not read
        self.encoder, self.features, self.reader = encoder, features, reader
        self.reader_dim, self.num_reader_layers = reader_dim, num_reader_layers
        self.dropout, self.pooling = dropout, pooling
        self.feature_cache: Any = None  # folder of states, where training keeps them
        self.build()

    def build(self, input_shape: Any = None) -> None:
        """Creates the weights of the reader."""
        if getattr(self, "built", False):
            return
        dtype, width = self.dtype_policy, self.encoder.hidden_dim
        width *= self.num_states if self.features == "last4-concat" else 1
        self.dropout_layer = Dropout(self.dropout, dtype=dtype, name="dropout")
        self.dropout_layer.build()
        self.mix = self.scale = None
        if self.features == "mix":
            self.mix = self.add_weight(name="mix", shape=(self.num_states,), initializer="zeros")
            self.scale = self.add_weight(name="scale", shape=(1,), initializer="ones")
        self.bilstm = None
        if self.reader == "bilstm":
            units = self.reader_dim or self.encoder.hidden_dim
            given = {"dropout": self.dropout, "dtype": dtype, "name": "bilstm"}
            self.bilstm = Bidirectional(units, self.num_reader_layers, **given)
            self.bilstm.build((None, None, width))
            width = 2 * units
        self.hidden_dim = width
        kind = self.pooling or ("mean" if self.bilstm is None else "max")
        self.pooler = TokenPooling(kind, dtype=dtype, name="pooler")
        self.built = True
        self.encoder.trainable = False

    # What the protocol `Encoder` asks for, as the frozen encoder has it.
    sequence_form = choice_form = HeadForm()
    span_dropout = 0.0
    causal = False

    @property
    def vocabulary_size(self) -> int:
        """Number of token embeddings."""
        return int(self.encoder.vocabulary_size)

    @property
    def max_sequence_length(self) -> int:
        """Most tokens of a sequence."""
        return int(self.encoder.max_sequence_length)

    @property
    def num_layers(self) -> int:
        """Blocks of the frozen encoder."""
        return int(self.encoder.num_layers)

    @property
    def initializer_range(self) -> float:
        """Standard deviation of new weights."""
        return float(self.encoder.initializer_range)

    @property
    def token_activation(self) -> str:
        """Activation in the head of masked tokens."""
        return str(self.encoder.token_activation)

    @property
    def layer_norm_epsilon(self) -> float:
        """Added to the variance in layer normalization."""
        return float(self.encoder.layer_norm_epsilon)

    @property
    def embeddings(self) -> Any:
        """The layer with the table of tokens."""
        return self.encoder.embeddings

    @property
    def frozen_dim(self) -> int:
        """Width of the states of a token that are kept: K D."""
        return int(self.num_states * self.encoder.hidden_dim)

    def _hold_encoder(self, value: bool) -> None:
        if getattr(self, "built", False):
            self.encoder.trainable = False

    trainable = trainable_but(
        _hold_encoder, "Whether the reader is trainable; the encoder never is."
    )

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        # Checked before Keras converts them to tensors or raises its own error.
        return super().__call__(encoder_inputs(inputs, self.encoder), *args, **kwargs)

    def call(self, inputs: Any, training: bool | None = None) -> dict[str, Any]:
        """Encodes a batch.

        Args:
            inputs: dict of `token_ids` int (B, T); `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), which may be absent; and `states` (B, T, K D), from `frozen_states`, where
                they are known.
            training: whether the dropout of the reader is on.

        Returns:
            `sequence_output` (B, T, R), undefined at padded positions, and `pooled_output` (B, R).
        """
        real, states = inputs.get("padding_mask"), inputs.get(STATES)
        if states is None:
            states = self.frozen_states(inputs)
        states = self._combined(ops.cast(states, self.compute_dtype))
        states = self.dropout_layer(states, training=training)
        if self.bilstm is not None:
            states = self.bilstm(states, real, training=training)
        return {"sequence_output": states, "pooled_output": self.pooler(states, real)}

    def frozen_states(self, inputs: Any) -> Any:
        """Computes the states that are read: (B, T, K D), one behind the other.

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
        """
        return ops.stop_gradient(layer_states(self.encoder, inputs, self.features))

    def _combined(self, states: Any) -> Any:
        """Maps (B, T, K D) to (B, T, W)."""
        if self.features not in ("last4-sum", "mix"):
            return states
        dim = self.encoder.hidden_dim
        parts = [states[..., i * dim : (i + 1) * dim] for i in range(self.num_states)]
        if self.mix is None:
            return sum(parts[1:], parts[0])
        shares = ops.cast(ops.softmax(ops.cast(self.mix, "float32")), states.dtype)
        mixed = sum((shares[i] * part for i, part in enumerate(parts)), 0.0)
        return mixed * ops.cast(self.scale, states.dtype)

    def hidden_states(self, inputs: Any, training: bool | None = None) -> list[Any]:
        """Returns the states of the frozen encoder: num_layers + 1 arrays (B, T, D).

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
            training: not read: the encoder has no dropout here.
        """
        return list(self.encoder.hidden_states(inputs, training=False))

    def attention_scores(self, inputs: Any) -> list[Any]:
        """Returns those of the frozen encoder: num_layers arrays (B, N, T, T).

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
        """
        return list(self.encoder.attention_scores(inputs))

    def to_checkpoint(self) -> Checkpoint:
        """Returns the checkpoint of the frozen encoder, with the reader in `features`."""
        checkpoint = self.encoder.to_checkpoint()
        config = {name: getattr(self, name) for name in _ARGUMENTS}
        arrays = {name: np.asarray(v) for name, v in reader_weights(self).items()}
        checkpoint.features = {"config": config, "arrays": arrays}
        return checkpoint

    def get_config(self) -> dict[str, Any]:
        encoder = keras.saving.serialize_keras_object(self.encoder)
        given = {name: getattr(self, name) for name in _ARGUMENTS}
        return {**super().get_config(), "encoder": encoder, **given}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "FeatureBasedEncoder":
        """Makes the encoder of a configuration from `get_config`."""
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**{**config, "encoder": encoder})


def layer_states(encoder: Encoder, inputs: Any, features: str) -> Any:
    """Returns the states that a name of `FEATURES` stands for: (B, T, K D), without dropout."""
    inputs = {name: array for name, array in inputs.items() if name != STATES}
    if features == "last":
        return encoder(inputs, training=False)["sequence_output"]
    found = encoder.hidden_states(inputs, training=False)[FEATURES[features]]
    return found[0] if len(found) == 1 else ops.concatenate(found, axis=-1)


def _count(encoder: Encoder, features: str) -> int:
    """Returns K, or raises a ValueError for an encoder with fewer states."""
    states = encoder.num_layers + 1
    wanted = FEATURES[features].start
    if wanted is not None and -wanted > states:
        raise ValueError(
            f"`features` must be of an encoder with {-wanted - 1} blocks or more for {features!r}. "
            f"Received: {type(encoder).__name__} with {encoder.num_layers}"
        )
    return len(range(states)[FEATURES[features]])


def reader_weights(model: FeatureBasedEncoder) -> dict[str, Any]:
    """Returns the weights of the reader by their names, as variables."""
    frozen = {id(variable) for variable in model.encoder.weights}
    return {n: v for n, v in named_weights(model).items() if id(v) not in frozen}


def feature_based(checkpoint: Checkpoint, encoder: Any, **kwargs: Any) -> FeatureBasedEncoder:
    """Makes the encoder that a checkpoint with `features` describes, or one with a new reader.

    Args:
        checkpoint: with the configuration and weights of a reader in `features`, or without.
        encoder: the frozen encoder.
        **kwargs: arguments of `FeatureBasedEncoder`; with `features` the reader is a new one.

    Raises:
        ValueError: weights are missing, left over or misshapen.
    """
    saved = checkpoint.features
    if "features" in kwargs or not saved:
        return FeatureBasedEncoder(encoder, **kwargs)
    made = FeatureBasedEncoder(encoder, **{**saved["config"], **kwargs})
    variables, arrays = reader_weights(made), saved["arrays"]
    wrong = sorted(variables.keys() ^ arrays.keys()) + misshapen(variables, arrays)
    if wrong:
        raise ValueError(
            "`checkpoint.features` must have the weights of a reader of its `config`. Not there, "
            f"left over or of another shape: {wrong}"
        )
    for name, array in arrays.items():
        variables[name].assign(np.asarray(array).astype(variables[name].dtype))
    return made
