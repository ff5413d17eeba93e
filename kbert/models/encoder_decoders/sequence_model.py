"""Base of encoder-decoders that are no Transformers: embeddings, logits, states in slots."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from kbert.decoding.active_rows import of_parents
from kbert.layers.embeddings import TokenEmbedding
from kbert.layers.recurrent.recurrent import state_dtype
from kbert.layers.residual import Dropout, constructor_arguments
from kbert.layers.vocabulary_output import VocabularyOutput, candidate_logits, check_tied


@keras.saving.register_keras_serializable("kbert")
class SequenceModel(keras.Model):
    """Base of models with the protocol `EncoderDecoder`, whose state is replaced at each step.

    A subclass has `encode`, `target_states`, `start_decoding`, `decode_step` and `memory_scores`,
    makes its layers in `_make_layers` and builds them in `_build_layers`.
    """

    bert: Any = None
    num_heads = 1
    # Arguments of every constructor; `_keep` makes attributes of them.
    vocabulary_size: int
    source_vocabulary_size: int | None
    hidden_dim: int
    embedding_dim: int | None
    max_sequence_length: int
    dropout: float
    tied: str

    def _keep(self, **arguments: Any) -> None:
        """Keeps the constructor's arguments, and makes and builds all layers.

        Raises:
            ValueError: a width is not positive, `tied` is unknown, or vocabularies of different
                sizes would share a table.
        """
        for name, value in arguments.items():
            setattr(self, name, value)
        for name in ("hidden_dim", "embedding_dim"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ValueError(
                    f"`{name}` must be at least 1. Received: {name}={getattr(self, name)}"
                )
        check_tied(self.tied, self.vocabulary_size, self.source_vocabulary_size)
        dtype = self.dtype_policy
        self.source_embedding = self._embedding("source_embedding", self.source_vocabulary_size)
        self.target_embedding = self.source_embedding
        if self.tied != "all":
            self.target_embedding = self._embedding("target_embedding", None)
        self.dropout_layer = Dropout(self.dropout, dtype=dtype, name="dropout")
        self.output_layer = VocabularyOutput(
            self.vocabulary_size, self.tied != "none", dtype=dtype, name="output"
        )
        self._make_layers()
        self.build()

    @property
    def width(self) -> int:
        """E, the width of embeddings."""
        return self.embedding_dim or self.hidden_dim

    @property
    def output_width(self) -> int:
        """The width of what the logits are made of."""
        return self.width

    def _embedding(self, name: str, size: int | None) -> TokenEmbedding:
        start = keras.initializers.RandomNormal(stddev=self.embedding_range())
        rows = size or self.vocabulary_size
        start = keras.initializers.serialize(start)
        return TokenEmbedding(rows, self.width, start, dtype=self.dtype_policy, name=name)

    def embedding_range(self) -> float:
        """Returns the standard deviation of new embeddings: logits of tied ones begin near 0."""
        return float(self.width**-0.5)

    def _make_layers(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} must make its layers")

    def _build_layers(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} must build its layers")

    def build(self, input_shape: Any = None) -> None:
        if getattr(self, "built", False):
            return
        self.source_embedding.build()
        if self.tied != "all":
            self.target_embedding.build()
        self.dropout_layer.build()
        self._build_layers()
        self.output_layer.build((None, self.output_width))
        self.built = True

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **constructor_arguments(self)}

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> Any:
        """Computes float32 logits (B, T, V) of the tokens after a known target (teacher forcing).

        Args:
            inputs: `source_token_ids` int (B, S); `source_padding_mask` bool (B, S), True for a
                real token; `target_token_ids` int (B, T), which begin with the start token.
            training: whether dropout is on.
        """
        memory: Any = self.encode(inputs, training)
        return self.logits(self.target_states(inputs["target_token_ids"], memory, training))

    def encode(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encodes the source.

        Args:
            inputs: dict of `source_token_ids` int (B, S) and `source_padding_mask` bool (B, S).
            training: whether dropout is on.
        """
        raise NotImplementedError(f"{type(self).__name__} must encode a source")

    def target_states(
        self, target_token_ids: Any, memory: dict[str, Any], training: bool | None = None
    ) -> Any:
        """Returns the states (B, T, E) that `logits` takes.

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: the dict that `encode` returns.
            training: whether dropout is on.
        """
        raise NotImplementedError(f"{type(self).__name__} must decode a target")

    def logits(self, states: Any) -> Any:
        """Maps states (..., E) to float32 logits (..., V).

        Args:
            states: (..., E), from `target_states`.
        """
        return self.output_layer(states, embedding=self.target_embedding)

    def candidate_logits(self, token_ids: Any) -> Callable[[Any], Any]:
        """Returns a function like `logits`, to those (..., C) of the tokens int32 (C,).

        Args:
            token_ids: int32 (C,).
        """
        tied = self.target_embedding if self.output_layer.tied else None
        return candidate_logits(token_ids, self.output_layer, tied)


def of_slots(state: Any, slots: Any, time: Any) -> Any:
    """Returns the state (B, k, ...) of the parents of k hypotheses from that of all K slots."""
    before = ops.take(slots, ops.maximum(time - 1, 0), axis=2)
    return of_parents(state, ops.where(time > 0, before, 0))


def in_slots(state: Any, like: Any) -> Any:
    """Returns a state (B, k, ...) with room for as many slots as `like` (B, K, ...) has."""
    room = ops.shape(like)[1] - ops.shape(state)[1]
    return ops.pad(state, ((0, 0), (0, room), *((0, 0) for _ in state.shape[2:])))


def widened(state: Any) -> Any:
    """Returns a tensor in the dtype that recurrent states have between steps, as in training."""
    return ops.cast(state, state_dtype(keras.backend.standardize_dtype(state.dtype)))


def repeated(state: Any, slots: int) -> Any:
    """Returns a recurrent state (B, W) in each of K slots, (B, K, W)."""
    return ops.repeat(widened(state)[:, None], slots, axis=1)
