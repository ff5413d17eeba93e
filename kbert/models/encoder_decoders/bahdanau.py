"""The recurrent encoder-decoder that learns to align (Bahdanau et al. 2014, appendix A).

Shapes: B batch, S source length, T target length, E embeddings, D hidden, C width of the encoder in
each direction, W width of a state, V vocabulary, K hypotheses a row.
"""

from typing import Any

import keras
from keras import ops

from kbert.architectures import BAHDANAU
from kbert.layers.linear import Linear
from kbert.layers.recurrent.attention_decoder import Annotations, AttentionDecoder
from kbert.layers.recurrent.maxout import Maxout
from kbert.layers.recurrent.recurrent import Recurrent
from kbert.models.encoder_decoders.sequence_model import (
    SequenceModel,
    in_slots,
    of_slots,
    repeated,
    widened,
)


@keras.saving.register_keras_serializable("kbert")
class Bahdanau(SequenceModel):
    """A bidirectional encoder, and a decoder that looks for what it needs before each step.

    The output is a maxout of the state before the step, the last token and the context, as in the
    paper's appendix.

    Args:
        vocabulary_size: V, of the target, and of the source if that has none of its own.
        hidden_dim: D, of the decoder.
        encoder_dim: C; None is D.
        embedding_dim: E; None is D.
        attention_dim: width of the hidden layer of additive scores; None is D.
        cell: "gru" as in the paper, "gru_reset_after" or "lstm".
        score: "additive" as in the paper, "bilinear" or "dot" (Luong et al. 2015); the last needs
            D = 2 C.
        max_sequence_length: the most tokens of a source or target.
        dropout: rate on embeddings and before the logits.
        tied: tied embeddings: "all" (source, target and output), "target" (target and output) or
            "none".
        source_vocabulary_size: vocabulary size of the source, if its table is separate.

    Raises:
        ValueError: a name is unknown, or sizes do not fit each other.
    """

    architecture = BAHDANAU
    num_decoder_layers = 1

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        encoder_dim: int | None = None,
        embedding_dim: int | None = None,
        attention_dim: int | None = None,
        cell: str = "gru",
        score: str = "additive",
        max_sequence_length: int = 512,
        dropout: float = 0.1,
        tied: str = "all",
        source_vocabulary_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"name": "bahdanau", **kwargs})
        self.encoder_dim, self.attention_dim = encoder_dim, attention_dim
        self.cell, self.score = cell, score
        self._keep(
            vocabulary_size=vocabulary_size,
            hidden_dim=hidden_dim,
            embedding_dim=embedding_dim,
            max_sequence_length=max_sequence_length,
            dropout=dropout,
            tied=tied,
            source_vocabulary_size=source_vocabulary_size,
        )

    @property
    def direction_dim(self) -> int:
        """C."""
        return self.encoder_dim or self.hidden_dim

    def _make_layers(self) -> None:
        dtype, hidden = self.dtype_policy, self.hidden_dim
        ways = ((False, "encoder_forward"), (True, "encoder_backward"))
        self.encoder_layers = [
            Recurrent(self.direction_dim, self.cell, backwards, dtype=dtype, name=name)
            for backwards, name in ways
        ]
        self.initial_layer = Linear(hidden, "tanh", dtype=dtype, name="initial")
        self.decoder = AttentionDecoder(
            hidden, self.cell, self.score, self.attention_dim, dtype=dtype, name="decoder"
        )
        self.readout = Maxout(self.width, dtype=dtype, name="readout")

    def _build_layers(self) -> None:
        embedded, annotated = (None, None, self.width), (None, None, 2 * self.direction_dim)
        for layer in self.encoder_layers:
            layer.build(embedded)
        self.initial_layer.build((None, self.direction_dim))
        self.decoder.build(embedded, annotated)
        self.readout.build((None, self.hidden_dim + self.width + 2 * self.direction_dim))

    def encode(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encodes the source.

        Args:
            inputs: dict of `source_token_ids` int (B, S) and `source_padding_mask` bool (B, S).
            training: whether dropout is on.

        Returns:
            The memory of the decoder: `values` (B, S, 2 C), the annotations; their `keys`; `mask`
            bool (B, S); `initial` (B, W), the state before the first step.
        """
        mask = inputs["source_padding_mask"]
        embedded = self.source_embedding(inputs["source_token_ids"])
        embedded = self.dropout_layer(embedded, training=training)
        both = [layer(embedded, mask) for layer in self.encoder_layers]
        outputs = [layer.output(states) for layer, states in zip(self.encoder_layers, both)]
        values = ops.concatenate(outputs, axis=-1)
        backward = self.encoder_layers[1]
        first = self.initial_layer(backward.output(backward.last(both[1])))
        annotations = self.decoder.annotations(values, mask)
        return {**annotations._asdict(), "initial": self.decoder.first_state(first)}

    def target_states(
        self, target_token_ids: Any, memory: dict[str, Any], training: bool | None = None
    ) -> Any:
        """Returns the states (B, T, E) that `logits` takes, for the tokens after a known target.

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: the dict that `encode` returns.
            training: whether dropout is on.
        """
        embedded = self.dropout_layer(self.target_embedding(target_token_ids), training=training)
        initial = memory["initial"]
        found = self.decoder(embedded, _annotations(memory), initial)
        before = ops.concatenate([initial[:, None], found.states[:, :-1]], axis=1)
        read = self._read(before, embedded, found.contexts)
        return self.dropout_layer(read, training=training)

    def _read(self, states: Any, embedded: Any, contexts: Any) -> Any:
        parts = [self.decoder.output(states), embedded, contexts]
        narrow = [ops.cast(part, embedded.dtype) for part in parts]
        return self.readout(ops.concatenate(narrow, axis=-1))

    def memory_scores(self, target_token_ids: Any, memory: dict[str, Any]) -> list[Any]:
        """Returns the weights of the annotations for a known target: one array (B, 1, T, S).

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: the dict that `encode` returns.
        """
        embedded = self.target_embedding(target_token_ids)
        found = self.decoder(embedded, _annotations(memory), memory["initial"])
        return [found.weights[:, None]]

    def start_decoding(
        self, memory: dict[str, Any], slots: int = 1, capacity: int | None = None
    ) -> Any:
        """Returns the state of `decode_step` before the first step: tensors, the rows first.

        Args:
            memory: the dict that `encode` returns.
            slots: K, the most hypotheses a row.
            capacity: not read: no state grows with the steps.
        """
        wide = {name: widened(memory[name]) for name in ("values", "keys")}
        return {**memory, **wide, "initial": repeated(memory["initial"], slots)}

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
        embedded = self.target_embedding(token_ids)
        before = of_slots(state["initial"], slots, time)
        contexts, _ = self.decoder.attend(before, _annotations(state))
        joined = ops.concatenate([embedded, ops.cast(contexts, embedded.dtype)], axis=-1)
        stepped = self.decoder.step(joined, before)
        found = (logits or self.logits)(self._read(before, embedded, contexts))
        return found, {**state, "initial": in_slots(stepped, state["initial"])}


def _annotations(memory: dict[str, Any]) -> Annotations:
    return Annotations(memory["values"], memory["keys"], memory["mask"])
