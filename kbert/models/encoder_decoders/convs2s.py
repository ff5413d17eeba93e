"""The convolutional encoder-decoder of Gehring et al. 2017.

Shapes: B batch, S source length, T target length, E embeddings, C channels, J kernel width, V
vocabulary, K hypotheses a row.
"""

import itertools
from typing import Any

import keras
from keras import ops

from kbert.architectures import CONVS2S
from kbert.layers.convolution.gated_convolution import (
    ConvolutionDecoderBlock,
    ConvolutionEncoderBlock,
    ConvolvedSource,
)
from kbert.layers.convolution.weight_norm import WeightNormLinear
from kbert.layers.embeddings import LearnedPositions
from kbert.models.encoder_decoders.sequence_model import SequenceModel, in_slots, of_slots

_RANGE = 0.1


@keras.saving.register_keras_serializable("kbert")
class ConvS2S(SequenceModel):
    """Stacked convolutions on both sides, and an attention to the source in each decoder block.

    All layers but the embeddings are weight-normalized. The gradient of the encoder's output is
    divided by twice the number of attentions, that of its embeddings is not (section 3.4).

    Args:
        vocabulary_size: V, of the target, and of the source if that has none of its own.
        hidden_dim: C.
        num_encoder_layers: blocks of the encoder.
        num_decoder_layers: blocks of the decoder.
        embedding_dim: E; None is C.
        kernel_width: J, an odd number.
        max_sequence_length: P, the most positions of source and of target.
        dropout: rate on embeddings, before each convolution and before the logits.
        tied: tied embeddings: "all" (source, target and output), "target" (target and output) or
            "none".
        source_vocabulary_size: vocabulary size of the source, if its table is separate.

    Raises:
        ValueError: a name is unknown, `kernel_width` is even, or vocabularies of different sizes
            would share a table.
    """

    architecture = CONVS2S

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        num_encoder_layers: int,
        num_decoder_layers: int,
        embedding_dim: int | None = None,
        kernel_width: int = 3,
        max_sequence_length: int = 512,
        dropout: float = 0.1,
        tied: str = "all",
        source_vocabulary_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"name": "convs2s", **kwargs})
        self.num_encoder_layers, self.num_decoder_layers = num_encoder_layers, num_decoder_layers
        self.kernel_width = kernel_width
        self._keep(
            vocabulary_size=vocabulary_size,
            hidden_dim=hidden_dim,
            embedding_dim=embedding_dim,
            max_sequence_length=max_sequence_length,
            dropout=dropout,
            tied=tied,
            source_vocabulary_size=source_vocabulary_size,
        )

    def embedding_range(self) -> float:
        return _RANGE

    def _make_layers(self) -> None:
        dtype = self.dtype_policy
        start = keras.initializers.serialize(keras.initializers.RandomNormal(stddev=_RANGE))
        positions = (self.max_sequence_length, self.width, start)
        self.source_positions = LearnedPositions(*positions, dtype=dtype, name="source_positions")
        self.target_positions = LearnedPositions(*positions, dtype=dtype, name="target_positions")
        block: dict[str, Any] = {"kernel_width": self.kernel_width, "dropout": self.dropout}
        block["dtype"] = dtype
        self.encoder_blocks = [
            ConvolutionEncoderBlock(**block, name=f"encoder_block_{i}")
            for i in range(self.num_encoder_layers)
        ]
        self.decoder_blocks = [
            ConvolutionDecoderBlock(self.width, **block, name=f"decoder_block_{i}")
            for i in range(self.num_decoder_layers)
        ]
        sides = {
            f"{side}_{end}": self.hidden_dim if end == "input" else self.width
            for side in ("encoder", "decoder")
            for end in ("input", "output")
        }
        gain = 1.0 - self.dropout
        linear = {n: WeightNormLinear(u, gain, dtype=dtype, name=n) for n, u in sides.items()}
        self.encoder_input, self.encoder_output, self.decoder_input, self.decoder_output = (
            linear.values()
        )

    def _build_layers(self) -> None:
        embedded, channels = (None, None, self.width), (None, None, self.hidden_dim)
        self.source_positions.build()
        self.target_positions.build()
        for layer in (self.encoder_input, self.decoder_input):
            layer.build(embedded)
        for layer in (*self.encoder_blocks, *self.decoder_blocks):
            layer.build(channels)
        for layer in (self.encoder_output, self.decoder_output):
            layer.build(channels)

    def encode(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encodes the source.

        Args:
            inputs: dict of `source_token_ids` int (B, S) and `source_padding_mask` bool (B, S).
            training: whether dropout is on.

        Returns:
            The memory of the decoder: the parts of a `ConvolvedSource` by their names.
        """
        ids, mask = inputs["source_token_ids"], inputs["source_padding_mask"]
        embedded = self.source_embedding(ids) + self.source_positions(ids)
        embedded = self.dropout_layer(embedded, training=training)
        states = self.encoder_input(embedded)
        for block in self.encoder_blocks:
            states = block(states, mask, training=training)
        keys = self.encoder_output(states)
        if training:
            share = 1.0 / (2.0 * self.num_decoder_layers)
            keys = keys * share + ops.stop_gradient(keys * (1.0 - share))
        return ConvolvedSource.of(keys, embedded, mask)._asdict()

    def target_states(
        self, target_token_ids: Any, memory: dict[str, Any], training: bool | None = None
    ) -> Any:
        """Returns the states (B, T, E) that `logits` takes, after each token of a known target.

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: the dict that `encode` returns.
            training: whether dropout is on.
        """
        states, _ = self._decoded(target_token_ids, memory, training)
        return self.dropout_layer(self.decoder_output(states), training=training)

    def _decoded(
        self, target_token_ids: Any, memory: dict[str, Any], training: bool | None = None
    ) -> tuple[Any, list[Any]]:
        """Returns the output of the last block (B, T, C), and the attention of each (B, T, S)."""
        embedded = self.target_embedding(target_token_ids) + self.target_positions(target_token_ids)
        embedded = self.dropout_layer(embedded, training=training)
        states, weights = self.decoder_input(embedded), []
        for block in self.decoder_blocks:
            states, found = block(states, embedded, ConvolvedSource(**memory), training=training)
            weights.append(found)
        return states, weights

    def memory_scores(self, target_token_ids: Any, memory: dict[str, Any]) -> list[Any]:
        """Returns the attention of each block for a known target: arrays (B, 1, T, S).

        Args:
            target_token_ids: int (B, T), which begin with the start token.
            memory: the dict that `encode` returns.
        """
        return [found[:, None] for found in self._decoded(target_token_ids, memory)[1]]

    def start_decoding(
        self, memory: dict[str, Any], slots: int = 1, capacity: int | None = None
    ) -> Any:
        """Returns the state of `decode_step` before the first step: tensors, the rows first.

        Args:
            memory: the dict that `encode` returns.
            slots: K, the most hypotheses a row.
            capacity: not read: no state grows with the steps.
        """
        kept = (self.kernel_width - 1) * self.hidden_dim * self.num_decoder_layers
        rows = ops.shape(memory["keys"])[0]
        nothing = ops.zeros((rows, slots, kept), self.compute_dtype)
        # Of the weights, which no step changes; the rows are first in all that a state has.
        scales = ops.concatenate([layer.scale() for layer in self._stepped()], axis=0)
        scales = ops.broadcast_to(scales, (rows, 1, scales.shape[0]))
        return {**memory, "inputs": nothing, "scales": scales}

    def _stepped(self) -> list[WeightNormLinear]:
        """Returns the layers with weight normalization that a step passes."""
        inner = [layer for block in self.decoder_blocks for layer in block.linear_layers()]
        return [self.decoder_input, *inner, self.decoder_output]

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
        source = ConvolvedSource(*(state[name] for name in ConvolvedSource._fields))
        embedded = self.target_embedding(token_ids) + self.target_positions.at(time)
        ends = itertools.accumulate(layer.units for layer in self._stepped())
        first, *scales, last = ops.split(state["scales"], list(ends)[:-1], axis=-1)
        # The last inputs of all blocks, side by side: they change their slots together.
        inputs = of_slots(state["inputs"], slots, time)
        inputs = ops.split(inputs, self.num_decoder_layers, axis=-1)
        states = self.decoder_input(embedded, first)
        for i, block in enumerate(self.decoder_blocks):
            own = scales[3 * i : 3 * i + 3]
            states, inputs[i] = block.step(states, inputs[i], embedded, source, own)
        kept = in_slots(ops.concatenate(inputs, axis=-1), state["inputs"])
        return (logits or self.logits)(self.decoder_output(states, last)), {**state, "inputs": kept}
