"""The Transformer encoder-decoder (Vaswani et al. 2017) as a Keras model on token ids.

Shapes: B batch, S source length, T target length, D hidden, V vocabulary, K hypotheses a row.
"""

import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from kbert.architectures import TRANSFORMER
from kbert.layers.decoder_block import DecoderBlock
from kbert.layers.embeddings import LearnedPositions, SinusoidalPositions, TokenEmbedding
from kbert.layers.encoder_block import EncoderBlock
from kbert.layers.key_value_cache import cache_room, path_mask
from kbert.layers.linear import Bias, Linear
from kbert.layers.masks import causal_attention_mask, hiding, padding_attention_mask
from kbert.layers.residual import Dropout, LayerNorm, constructor_arguments
from kbert.layers.vocabulary_output import candidate_logits, check_tied
from kbert.models.sizes import transformer_size

POSITIONS = ("sinusoidal", "sinusoidal_halves", "learned")


@keras.saving.register_keras_serializable("kbert")
class Transformer(keras.Model):
    """Encoder and decoder, from ids of the source to logits over the target vocabulary.

    Args:
        vocabulary_size: V, of the target, and of the source if that has none of its own.
        hidden_dim: D.
        num_encoder_layers: number of encoder blocks.
        num_decoder_layers: number of decoder blocks.
        num_heads: N; must divide D.
        intermediate_dim: I, width of the feed-forward networks.
        max_sequence_length: P, the most positions of source and of target.
        dropout: rate on the output of each sublayer and on embeddings with positions.
        attention_dropout: rate on the attention probabilities.
        activation: of the feed-forward networks.
        norm: "post" as in the paper, or "pre", with one more LayerNorm after each stack.
        positions: "sinusoidal" as in the paper, "sinusoidal_halves" as in Marian, or "learned".
        tied: tied embeddings: "all" (source, target and output), "target" (target and output) or
            "none".
        source_vocabulary_size: vocabulary size of the source, if its table is separate.
        output_bias: whether the output has a bias.
        layer_norm_epsilon: of the LayerNorms.

    Raises:
        ValueError: a name is unknown, or vocabularies of different sizes would share a table.
    """

    architecture = TRANSFORMER
    bert: Any = None

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        num_encoder_layers: int,
        num_decoder_layers: int,
        num_heads: int,
        intermediate_dim: int,
        max_sequence_length: int = 512,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "post",
        positions: str = "sinusoidal",
        tied: str = "all",
        source_vocabulary_size: int | None = None,
        output_bias: bool = False,
        layer_norm_epsilon: float = 1e-5,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "transformer")
        super().__init__(**kwargs)
        if positions not in POSITIONS:
            raise ValueError(
                f"`positions` must be one of {list(POSITIONS)}. Received: positions={positions!r}"
            )
        check_tied(tied, vocabulary_size, source_vocabulary_size)
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.num_encoder_layers, self.num_decoder_layers = num_encoder_layers, num_decoder_layers
        self.num_heads, self.intermediate_dim = num_heads, intermediate_dim
        self.max_sequence_length = max_sequence_length
        self.dropout, self.attention_dropout = dropout, attention_dropout
        self.activation, self.norm, self.positions = activation, norm, positions
        self.tied, self.source_vocabulary_size = tied, source_vocabulary_size
        self.output_bias, self.layer_norm_epsilon = output_bias, layer_norm_epsilon
        self._make_layers()
        self.build()

    def _make_layers(self) -> None:
        dtype = self.dtype_policy
        self.source_embedding = self._embedding("source_embedding", self.source_vocabulary_size)
        self.target_embedding = self.source_embedding
        if self.tied != "all":
            self.target_embedding = self._embedding("target_embedding", None)
        self.source_positions = self._positions("source_positions")
        self.target_positions = self._positions("target_positions")
        self.embedding_dropout = Dropout(self.dropout, dtype=dtype, name="embedding_dropout")
        layers = range(self.num_encoder_layers)
        self.encoder_blocks = [self._encoder_block(f"encoder_block_{i}") for i in layers]
        layers = range(self.num_decoder_layers)
        self.decoder_blocks = [self._decoder_block(f"decoder_block_{i}") for i in layers]
        if self.norm == "pre":
            self.encoder_norm = LayerNorm(self.layer_norm_epsilon, dtype=dtype, name="encoder_norm")
            self.decoder_norm = LayerNorm(self.layer_norm_epsilon, dtype=dtype, name="decoder_norm")
        self.output_linear: Any = None
        if self.tied == "none":
            self.output_linear = Linear(
                self.vocabulary_size, use_bias=self.output_bias, dtype=dtype, name="output"
            )
        elif self.output_bias:
            self.output_linear = Bias(self.vocabulary_size, dtype=dtype, name="output")

    def _embedding(self, name: str, size: int | None) -> TokenEmbedding:
        # Scaled by sqrt(D) on look-up, so that a vector has about the norm of the position vectors.
        initializer = keras.initializers.RandomNormal(stddev=self.hidden_dim**-0.5)
        start, rows = keras.initializers.serialize(initializer), size or self.vocabulary_size
        return TokenEmbedding(rows, self.hidden_dim, start, dtype=self.dtype_policy, name=name)

    def _positions(self, name: str) -> Any:
        sizes = (self.max_sequence_length, self.hidden_dim)
        if self.positions == "learned":
            return LearnedPositions(*sizes, dtype=self.dtype_policy, name=name)
        interleaved = self.positions == "sinusoidal"
        return SinusoidalPositions(*sizes, interleaved, dtype=self.dtype_policy, name=name)

    def _block_arguments(self) -> tuple[Any, ...]:
        sizes = (self.num_heads, self.intermediate_dim, self.dropout, self.attention_dropout)
        return (*sizes, self.activation, self.norm, self.layer_norm_epsilon)

    def _encoder_block(self, name: str) -> Any:
        return EncoderBlock(*self._block_arguments(), dtype=self.dtype_policy, name=name)

    def _decoder_block(self, name: str) -> Any:
        return DecoderBlock(*self._block_arguments(), dtype=self.dtype_policy, name=name)

    def build(self, input_shape: Any = None) -> None:
        if getattr(self, "built", False):
            return
        states = (None, None, self.hidden_dim)
        self.source_embedding.build()
        if self.tied != "all":
            self.target_embedding.build()
        if self.positions == "learned":
            self.source_positions.build()
            self.target_positions.build()
        self.embedding_dropout.build()
        self._build_blocks(states)
        if self.norm == "pre":
            self.encoder_norm.build(states)
            self.decoder_norm.build(states)
        if self.tied == "none":
            self.output_linear.build(states)
        elif self.output_bias:
            self.output_linear.build()
        self.built = True

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **constructor_arguments(self)}

    def _build_blocks(self, states: Any) -> None:
        for block in self.encoder_blocks:
            block.build(states)
        for block in self.decoder_blocks:
            block.build(states, states)

    @classmethod
    def from_size(cls, size: str, vocabulary_size: int, **kwargs: Any) -> Any:
        """Makes a randomly initialized Transformer of a known size, see `kbert.models.sizes`.

        Args:
            size: "tiny", "small", "base" or "big".
            vocabulary_size: V, of the target.
            **kwargs: further arguments of the constructor.
        """
        return cls(vocabulary_size, **{**transformer_size(size), **kwargs})

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> Any:
        """Computes float32 logits (B, T, V) of the tokens after a known target (teacher forcing).

        Args:
            inputs: `source_token_ids` int (B, S); `source_padding_mask` bool (B, S), True for a
                real token; `target_token_ids` int (B, T), which begin with the start token.
                Padding after the target needs no mask: no position before sees it.
            training: whether dropout is on.
        """
        memory = self.encode(inputs, training)
        return self.decode(inputs["target_token_ids"], memory, training)

    def encode(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encodes the source.

        Args:
            inputs: dict of `source_token_ids` int (B, S) and `source_padding_mask` bool (B, S),
                True for a real token.
            training: whether dropout is on.

        Returns:
            The memory of the decoder: `states` (B, S, D), `mask` bool (B, 1, 1, S).
        """
        states, mask, memory = self._entered(inputs, training)
        for block in self.encoder_blocks:
            states = self._encoded(block, states, mask, memory, training)
        if self.norm == "pre":
            states = self.encoder_norm(states)
        return {**memory, "states": states, "mask": mask}

    def attention_scores(self, inputs: dict[str, Any]) -> list[Any]:
        """Returns the encoder's self-attention probabilities.

        Args:
            inputs: the inputs of `encode`; dropout is off.

        Returns:
            The probabilities of each encoder block: num_encoder_layers arrays (B, N, S, S). For a
            fused model those of the self-attention, not of the attention to BERT.
        """
        states, mask, memory = self._entered(inputs, None)
        scores = []
        for block in self.encoder_blocks:
            scores.append(block.scores(states, mask))
            states = self._encoded(block, states, mask, memory, None)
        return scores

    def _entered(
        self, inputs: dict[str, Any], training: bool | None
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Returns the input of the first encoder block, its mask, and further memories."""
        states = self._embedded(
            inputs["source_token_ids"], self.source_embedding, self.source_positions, training
        )
        mask = padding_attention_mask(inputs["source_padding_mask"])
        return states, mask, self._beside(inputs, training)

    def _beside(self, inputs: dict[str, Any], training: bool | None) -> dict[str, Any]:
        """Returns further memories that blocks attend to."""
        return {}

    def _encoded(
        self, block: Any, states: Any, mask: Any, memory: dict[str, Any], training: bool | None
    ) -> Any:
        return block(states, mask, training=training)

    def _seen(self, memory: dict[str, Any]) -> tuple[Any, Any]:
        """Returns the memory of decoder blocks, and its mask."""
        return memory["states"], memory["mask"]

    def _embedded(self, ids: Any, table: Any, positions: Any, training: bool | None) -> Any:
        vectors = table(ids) * math.sqrt(self.hidden_dim)
        return self.embedding_dropout(vectors + positions(ids), training=training)

    def decode(
        self, target_token_ids: Any, memory: dict[str, Any], training: bool | None = None
    ) -> Any:
        """Returns logits float32 (B, T, V) of the tokens after `target_token_ids` (B, T).

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: the dict that `encode` returns.
            training: whether dropout is on.
        """
        return self.logits(self.target_states(target_token_ids, memory, training))

    def target_states(
        self, target_token_ids: Any, memory: dict[str, Any], training: bool | None = None
    ) -> Any:
        """Returns the decoder's last hidden states (B, T, D), the input of `logits`.

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: the dict that `encode` returns.
            training: whether dropout is on.
        """
        states, mask = self._target(target_token_ids, training)
        seen, seen_mask = self._seen(memory)
        for block in self.decoder_blocks:
            states = block(states, seen, mask, seen_mask, training=training)
        return self.decoder_norm(states) if self.norm == "pre" else states

    def _target(self, token_ids: Any, training: bool | None) -> tuple[Any, Any]:
        """Returns the input of the first decoder block, and its causal mask, bool (B, 1, T, T)."""
        tables = (self.target_embedding, self.target_positions)
        states = self._embedded(token_ids, *tables, training)
        # One mask for all rows would do; but where it is added to their scores, TensorFlow's graph
        # on a CPU uses a oneDNN matmul that is then twenty times slower.
        rows, length = ops.shape(token_ids)
        mask = ops.broadcast_to(causal_attention_mask(length), (rows, 1, length, length))
        return states, mask

    def memory_scores(self, target_token_ids: Any, memory: dict[str, Any]) -> list[Any]:
        """Returns the cross-attention probabilities for a known target.

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: the dict that `encode` returns.

        Returns:
            The probabilities of each decoder block: num_decoder_layers arrays (B, N, T, S), without
            dropout. Row t is of the step that predicts the token after `target_token_ids[:, t]`.
            For a fused model those of the attention to the encoder, not of the one to BERT.
        """
        states, mask = self._target(target_token_ids, None)
        seen, seen_mask = self._seen(memory)
        scores = []
        for block in self.decoder_blocks:
            scores.append(block.memory_scores(states, seen, mask, seen_mask))
            states = block(states, seen, mask, seen_mask)
        return scores

    def logits(self, states: Any) -> Any:
        """Maps states (..., D) to float32 logits (..., V).

        Args:
            states: (..., D), hidden states of the decoder.
        """
        found = self._flat_logits(ops.reshape(states, (-1, self.hidden_dim)))
        return ops.reshape(found, (*ops.shape(states)[:-1], self.vocabulary_size))

    def _flat_logits(self, states: Any) -> Any:
        """Maps states (m, D) to float32 logits (m, V)."""
        wide = "float64" if self.compute_dtype == "float64" else "float32"
        if self.tied == "none":
            return ops.cast(self.output_linear(states), wide)
        found = self.target_embedding.logits(states)
        return ops.cast(self.output_linear(found) if self.output_bias else found, wide)

    def candidate_logits(self, token_ids: Any) -> Callable[[Any], Any]:
        """Returns a function like `logits`, to those (..., C) of the tokens int32 (C,).

        Args:
            token_ids: int32 (C,).
        """
        tied = None if self.tied == "none" else self.target_embedding
        return candidate_logits(token_ids, self.output_linear, tied)

    def start_decoding(
        self, memory: dict[str, Any], slots: int = 1, capacity: int | None = None
    ) -> Any:
        """Returns the state of `decode_step` before the first step: tensors, the rows first.

        Args:
            memory: the dict that `encode` returns.
            slots: K, the most hypotheses a row.
            capacity: the most steps, where shapes must be static (JAX' `jit`, TPUs); else None.
        """
        seen, mask = self._seen(memory)
        caches = [block.start(seen, mask, slots, capacity) for block in self.decoder_blocks]
        hidden = keras.tree.map_structure(lambda m: hiding(m, self.compute_dtype), mask)
        room = cache_room(ops.shape(memory["states"])[0], slots, capacity)
        return {"caches": caches, "hidden": hidden, "room": room}

    def decode_step(
        self, token_ids: Any, time: Any, slots: Any, state: dict[str, Any], logits: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Decodes one more token of every hypothesis; see `kbert.decoding.search`.

        Args:
            token_ids: int (B, k), the last token of each.
            time: int32 scalar, the number of tokens before.
            slots: int32 (B, k, L), the slot of each hypothesis at each step.
            state: from `start_decoding` or the previous step.
            logits: from `candidate_logits`, to have the logits of C tokens only.

        Returns:
            float32 logits (B, k, V), or (B, k, C), and the new state.
        """
        # Hypotheses are rows of matrices all the way: what changes shapes is a node more.
        vectors = self.target_embedding(ops.reshape(token_ids, (-1,)))
        states = vectors * math.sqrt(self.hidden_dim) + self.target_positions.at(time)
        caches, room = [], state["room"]
        hidden = hiding(path_mask(slots, time, room), self.compute_dtype)
        for block, cache in zip(self.decoder_blocks, state["caches"]):
            states, cache = block.step(states, cache, time, hidden, state["hidden"], room)
            caches.append(cache)
        if self.norm == "pre":
            states = self.decoder_norm(states)
        found = (logits or self._flat_logits)(states)
        shape = -1, token_ids.shape[1], ops.shape(found)[-1]
        return ops.reshape(found, shape), {**state, "caches": caches}
