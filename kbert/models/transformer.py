"""The Transformer encoder-decoder (Vaswani et al. 2017) as a Keras model on token ids.

Shapes: B batch, S source length, T target length, D hidden, V vocabulary, K hypotheses a row.
"""

import math
from typing import Any

import keras
from keras import ops

from kbert.layers.attention.key_value_cache import path_mask
from kbert.layers.attention.masks import causal_attention_mask, padding_attention_mask
from kbert.models.sizes import transformer_size
from kbert.models.transformer_layers import TransformerLayers


@keras.saving.register_keras_serializable("kbert")
class Transformer(TransformerLayers):
    """Encoder and decoder, from ids of the source to logits over the target's vocabulary.

    Args:
        vocabulary_size: V, of the target, and of the source if that has none of its own.
        hidden_dim: D.
        num_encoder_layers: blocks of the encoder.
        num_decoder_layers: blocks of the decoder.
        num_heads: N; must divide D.
        intermediate_dim: I, width of the feed-forward networks.
        max_sequence_length: P, the most positions of source and of target.
        dropout: rate on the output of each sublayer and on embeddings with positions.
        attention_dropout: rate on the attention probabilities.
        activation: of the feed-forward networks.
        norm: "post" as in the paper, or "pre", with one more LayerNorm behind each stack.
        positions: "sinusoidal" as in the paper, "sinusoidal_halves" as in Marian, or "learned".
        tied: what shares one table: "all" (source, target and output), "target" (target and
            output) or "none".
        source_vocabulary_size: of the source, where its table is its own.
        output_bias: whether the output has a bias.
        layer_norm_epsilon: of the LayerNorms.

    Raises:
        ValueError: a name is unknown, or vocabularies of different sizes are to share a table.
    """

    @classmethod
    def from_size(cls, size: str, vocabulary_size: int, **kwargs: Any) -> Any:
        """A randomly initialised "tiny", "small", "base" or "big" one; see `kbert.models.sizes`.

        Args:
            size: "tiny", "base" or "big".
            vocabulary_size: V, of the target.
            **kwargs: further arguments of the constructor.
        """
        return cls(vocabulary_size, **{**transformer_size(size), **kwargs})

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> Any:
        """Logits with the target known (teacher forcing).

        Args:
            inputs: `source_token_ids` int (B, S); `source_padding_mask` bool (B, S), True for a
                real token; `target_token_ids` int (B, T), which begin with the start token.
                Padding behind the target needs no mask: nothing before it sees it.
            training: whether dropout is on.

        Returns:
            float32 (B, T, V): at each position the logits of the next token.
        """
        memory = self.encode(inputs, training)
        return self.decode(inputs["target_token_ids"], memory, training)

    def encode(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Reads the source.

        Args:
            inputs: dict of `source_token_ids` int (B, S) and `source_padding_mask` bool (B, S),
                True for a real token.
            training: whether dropout is on.

        Returns:
            What the decoder attends to: `states` (B, S, D), `mask` bool (B, 1, 1, S).
        """
        states, mask, memory = self._entered(inputs, training)
        for block in self.encoder_blocks:
            states = self._encoded(block, states, mask, memory, training)
        if self.norm == "pre":
            states = self.encoder_norm(states)
        return {**memory, "states": states, "mask": mask}

    def attention_scores(self, inputs: dict[str, Any]) -> list[Any]:
        """What the tokens of the source attend to in the source.

        Args:
            inputs: what `encode` takes; dropout is off.

        Returns:
            The probabilities of each encoder block: num_encoder_layers arrays (B, N, S, S). For a
            fused model those of the source's own attention, not of the one to BERT.
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
        """What the first encoder block reads, its mask, and what else blocks attend to."""
        states = self._embedded(
            inputs["source_token_ids"], self.source_embedding, self.source_positions, training
        )
        mask = padding_attention_mask(inputs["source_padding_mask"])
        return states, mask, self._beside(inputs, training)

    def _beside(self, inputs: dict[str, Any], training: bool | None) -> dict[str, Any]:
        """What else blocks attend to."""
        return {}

    def _encoded(
        self, block: Any, states: Any, mask: Any, memory: dict[str, Any], training: bool | None
    ) -> Any:
        return block(states, mask, training=training)

    def _seen(self, memory: dict[str, Any]) -> tuple[Any, Any]:
        """What blocks of the decoder attend to, and its mask."""
        return memory["states"], memory["mask"]

    def _embedded(self, ids: Any, table: Any, positions: Any, training: bool | None) -> Any:
        vectors = table(ids) * math.sqrt(self.hidden_dim)
        return self.embedding_dropout(vectors + positions(ids), training=training)

    def decode(
        self, target_token_ids: Any, memory: dict[str, Any], training: bool | None = None
    ) -> Any:
        """Logits float32 (B, T, V) of the tokens after `target_token_ids` (B, T).

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: what `encode` returns.
            training: whether dropout is on.
        """
        return self.logits(self.target_states(target_token_ids, memory, training))

    def target_states(
        self, target_token_ids: Any, memory: dict[str, Any], training: bool | None = None
    ) -> Any:
        """The decoder's last states (B, T, D), which `logits` takes.

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: what `encode` returns.
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
        """What the decoder attends to in the source, with the target known.

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: from `encode`.

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
        """States (..., D) to float32 logits (..., V).

        Args:
            states: (..., D), of the decoder.
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
        """What `decode_step` keeps, before the first step: tensors, the rows first.

        Args:
            memory: from `encode`.
            slots: K, the most hypotheses a row.
            capacity: the most steps, where shapes must be fixed (JAX' `jit`, TPUs); else None.
        """
        seen, mask = self._seen(memory)
        caches = [block.start(seen, slots, capacity) for block in self.decoder_blocks]
        return {"caches": caches, "mask": mask}

    def decode_step(
        self, token_ids: Any, time: Any, slots: Any, state: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """One token more of every hypothesis; see `kbert.decoding.beam_search`.

        Args:
            token_ids: int (B, k), the last token of each.
            time: int32 scalar, how many tokens came before.
            slots: int32 (B, k, L).
            state: from `start_decoding` or the step before.

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
    """Lets each position of (B, T) see itself and what came before: bool (B, 1, T, T).

    One mask for all rows would do; but where it is added to their scores, TensorFlow's graph on a
    CPU takes a product of oneDNN that is then twenty times slower.
    """
    rows, length = ops.shape(token_ids)
    return ops.broadcast_to(causal_attention_mask(length), (rows, 1, length, length))
