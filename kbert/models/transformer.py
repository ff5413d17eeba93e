"""The Transformer encoder-decoder (Vaswani et al. 2017) as a Keras model on token ids.

Shapes: B batch, S source length, T target length, D hidden, V vocabulary, K hypotheses a row.
"""

import math
from typing import Any

import keras
from keras import ops

from kbert.architectures import TRANSFORMER
from kbert.layers.attention.key_value_cache import path_mask
from kbert.layers.attention.masks import causal_attention_mask, padding_attention_mask
from kbert.models.sizes import transformer_size
from kbert.models.transformer_layers import TransformerLayers


@keras.saving.register_keras_serializable("kbert")
class Transformer(TransformerLayers):
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
        """Computes the logits of a known target (teacher forcing).

        Args:
            inputs: `source_token_ids` int (B, S); `source_padding_mask` bool (B, S), True for a
                real token; `target_token_ids` int (B, T), which begin with the start token.
                Padding after the target needs no mask: no position before sees it.
            training: whether dropout is on.

        Returns:
            float32 (B, T, V): at each position the logits of the next token.
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
        mask = _own_mask(target_token_ids)
        states = self._embedded(
            target_token_ids, self.target_embedding, self.target_positions, training
        )
        seen, seen_mask = self._seen(memory)
        for block in self.decoder_blocks:
            states = block(states, seen, mask, seen_mask, training=training)
        return self.decoder_norm(states) if self.norm == "pre" else states

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
        mask = _own_mask(target_token_ids)
        states = self._embedded(
            target_token_ids, self.target_embedding, self.target_positions, None
        )
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
        wide = "float64" if self.compute_dtype == "float64" else "float32"
        if self.tied == "none":
            return ops.cast(self.output_linear(states), wide)
        table = ops.cast(self.target_embedding.embeddings, states.dtype)
        flat = ops.reshape(states, (-1, self.hidden_dim))
        found = ops.matmul(flat, ops.transpose(table))
        found = ops.cast(self.output_linear(found) if self.output_bias else found, wide)
        return ops.reshape(found, (*ops.shape(states)[:-1], self.vocabulary_size))

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
        caches = [block.start(seen, slots, capacity) for block in self.decoder_blocks]
        return {"caches": caches, "mask": mask}

    def decode_step(
        self, token_ids: Any, time: Any, slots: Any, state: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Decodes one more token of every hypothesis; see `kbert.decoding.search`.

        Args:
            token_ids: int (B, k), the last token of each.
            time: int32 scalar, the number of tokens before.
            slots: int32 (B, k, L), the slot of each hypothesis at each step.
            state: from `start_decoding` or the previous step.

        Returns:
            float32 logits (B, k, V), and the new state.
        """
        position = self.target_positions.at(time)
        states = self.target_embedding(token_ids) * math.sqrt(self.hidden_dim) + position
        caches = []
        visible = path_mask(slots, time, state["caches"][0].own)
        for block, cache in zip(self.decoder_blocks, state["caches"]):
            states, cache = block.step(states, cache, time, visible, state["mask"])
            caches.append(cache)
        if self.norm == "pre":
            states = self.decoder_norm(states)
        return self.logits(states), {**state, "caches": caches}


def _own_mask(token_ids: Any) -> Any:
    """Returns the causal mask of (B, T) ids: bool (B, 1, T, T).

    One mask for all rows would do; but where it is added to their scores, TensorFlow's graph on a
    CPU uses a oneDNN matmul that is then twenty times slower.
    """
    rows, length = ops.shape(token_ids)
    return ops.broadcast_to(causal_attention_mask(length), (rows, 1, length, length))
