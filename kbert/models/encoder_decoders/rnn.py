"""Two recurrent networks and one vector between them: an encoder-decoder without attention.

Shapes: B batch, S source length, T target length, E embeddings, D hidden, W width of a state (2 D
for an LSTM, else D), V vocabulary, K hypotheses a row.
"""

from typing import Any

import keras
from keras import ops

from kbert.architectures import RNN
from kbert.layers.linear import Linear
from kbert.layers.recurrent.maxout import Maxout
from kbert.layers.recurrent.recurrent import Recurrent
from kbert.models.encoder_decoders.sequence_model import (
    SequenceModel,
    in_slots,
    of_slots,
    repeated,
)

CONTEXTS = ("each_step", "initial")


@keras.saving.register_keras_serializable("kbert")
class RnnEncoderDecoder(SequenceModel):
    """The encoder's last state is all that the decoder knows of the source.

    With context="each_step" it is read at every step and by the output (Cho et al. 2014, with the
    maxout of their appendix); with "initial" each layer of the decoder begins with the last state
    of the encoder's (Sutskever et al. 2014).

    Args:
        vocabulary_size: V, of the target, and of the source if that has none of its own.
        hidden_dim: D.
        embedding_dim: E; None is D.
        num_layers: recurrent layers of the encoder, and of the decoder.
        cell: "gru" (Cho et al. 2014), "gru_reset_after" (cuDNN's and PyTorch's) or "lstm".
        context: "each_step" or "initial".
        reversed_source: whether the source is read from its end to its beginning (Sutskever et al.
            2014, section 3.3).
        max_sequence_length: the most tokens of a source or target.
        dropout: rate on embeddings, between layers and before the logits.
        tied: tied embeddings: "all" (source, target and output), "target" (target and output) or
            "none".
        source_vocabulary_size: vocabulary size of the source, if its table is separate.

    Raises:
        ValueError: a name is unknown, or what would be tied has different sizes.
    """

    architecture = RNN
    num_decoder_layers = 0  # none attends to the source

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        embedding_dim: int | None = None,
        num_layers: int = 1,
        cell: str = "gru",
        context: str = "each_step",
        reversed_source: bool = False,
        max_sequence_length: int = 512,
        dropout: float = 0.1,
        tied: str = "all",
        source_vocabulary_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"name": "rnn", **kwargs})
        if context not in CONTEXTS:
            raise ValueError(
                f"`context` must be one of {list(CONTEXTS)}. Received: context={context!r}"
            )
        if num_layers < 1:
            raise ValueError(f"`num_layers` must be at least 1. Received: num_layers={num_layers}")
        if context == "initial" and tied != "none" and embedding_dim not in (None, hidden_dim):
            raise ValueError(
                '`embedding_dim` must be `hidden_dim` with context="initial" and tied embeddings: '
                f"states are the output. Received: {embedding_dim} and {hidden_dim}"
            )
        self.num_layers, self.cell, self.context = num_layers, cell, context
        self.reversed_source = reversed_source
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
    def reads_context(self) -> bool:
        """True if the decoder reads the source's vector at each step."""
        return self.context == "each_step"

    @property
    def output_width(self) -> int:
        return self.width if self.reads_context else self.hidden_dim

    def _make_layers(self) -> None:
        dtype, layers = self.dtype_policy, range(self.num_layers)
        cells: dict[str, Any] = {"units": self.hidden_dim, "cell": self.cell, "dtype": dtype}
        self.encoder_layers = [
            Recurrent(**cells, backwards=self.reversed_source, name=f"encoder_{i}") for i in layers
        ]
        self.decoder_layers = [Recurrent(**cells, name=f"decoder_{i}") for i in layers]
        if self.reads_context:
            made = {"units": self.hidden_dim, "activation": "tanh", "dtype": dtype}
            self.context_layer = Linear(**made, name="context")
            self.initial_layers = [Linear(**made, name=f"initial_{i}") for i in layers]
            self.readout = Maxout(self.width, dtype=dtype, name="readout")

    def _build_layers(self) -> None:
        wide, hidden = self.width, self.hidden_dim
        for i, (below, above) in enumerate(zip(self.encoder_layers, self.decoder_layers)):
            below.build((None, None, hidden if i else wide))
            more = hidden if self.reads_context and not i else 0
            above.build((None, None, hidden if i else wide + more))
        if self.reads_context:
            for layer in (self.context_layer, *self.initial_layers):
                layer.build((None, hidden))
            self.readout.build((None, 2 * hidden + wide))

    def encode(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encodes the source.

        Args:
            inputs: dict of `source_token_ids` int (B, S) and `source_padding_mask` bool (B, S).
            training: whether dropout is on.

        Returns:
            The memory of the decoder: `initial_0` (B, W) and so on, the first state of each layer,
            and `context` (B, D) where it is read at each step.
        """
        below, last = self.source_embedding(inputs["source_token_ids"]), []
        for layer in self.encoder_layers:
            below = self.dropout_layer(below, training=training)
            states = layer(below, inputs["source_padding_mask"])
            below = layer.output(states)
            last.append(layer.last(states))
        if not self.reads_context:
            return {f"initial_{i}": state for i, state in enumerate(last)}
        context = self.context_layer(self.encoder_layers[-1].output(last[-1]))
        memory = {"context": context}
        for i, layer in enumerate(self.initial_layers):
            memory[f"initial_{i}"] = self.decoder_layers[i].first_state(layer(context))
        return memory

    def target_states(
        self, target_token_ids: Any, memory: dict[str, Any], training: bool | None = None
    ) -> Any:
        """Returns the states (B, T, E) that `logits` takes, after each token of a known target.

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: the dict that `encode` returns.
            training: whether dropout is on.
        """
        embedded = self.dropout_layer(self.target_embedding(target_token_ids), training=training)
        states, constant = embedded, memory.get("context")
        for i, layer in enumerate(self.decoder_layers):
            if i:
                states, constant = self.dropout_layer(states, training=training), None
            states = layer.output(layer(states, None, memory[f"initial_{i}"], constant))
        return self.dropout_layer(self._read(states, embedded, memory), training=training)

    def _read(self, states: Any, embedded: Any, memory: dict[str, Any]) -> Any:
        """Returns what the logits are made of, from the last layer's outputs (B, T, D)."""
        if not self.reads_context:
            return states
        joined = ops.concatenate([states, embedded], axis=-1)
        return self.readout(joined, memory["context"])

    def start_decoding(
        self, memory: dict[str, Any], slots: int = 1, capacity: int | None = None
    ) -> Any:
        """Returns the state of `decode_step` before the first step: tensors, the rows first.

        Args:
            memory: the dict that `encode` returns.
            slots: K, the most hypotheses a row.
            capacity: not read: no state grows with the steps.
        """
        layers = range(self.num_layers)
        state = {f"layer_{i}": repeated(memory[f"initial_{i}"], slots) for i in layers}
        return state | ({"context": memory["context"]} if self.reads_context else {})

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
        states, new = embedded, dict(state)
        if self.reads_context:
            context = ops.repeat(state["context"][:, None], embedded.shape[1], axis=1)
            states = ops.concatenate([embedded, context], axis=-1)
        for i, layer in enumerate(self.decoder_layers):
            name = f"layer_{i}"
            stepped = layer.step(states, of_slots(state[name], slots, time))
            new[name] = in_slots(stepped, state[name])
            states = ops.cast(layer.output(stepped), embedded.dtype)
        return (logits or self.logits)(self._read(states, embedded, state)), new

    def memory_scores(self, target_token_ids: Any, memory: dict[str, Any]) -> list[Any]:
        """Returns an empty list: nothing attends to the source.

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: the dict that `encode` returns.
        """
        return []
