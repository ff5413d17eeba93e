"""BERT, the bidirectional Transformer encoder (Devlin et al. 2019).

Shapes: B batch, T length, D hidden, N heads, V vocabulary.
"""

from typing import Any

import keras

from kbert.layers.attention.masks import (
    UnpaddedTokens,
    last_real_state,
    sequence_attention_mask,
    unpadded_tokens,
)
from kbert.layers.bert.bert_embeddings import BertEmbeddings
from kbert.layers.blocks.encoder_block import EncoderBlock
from kbert.layers.core.linear import Linear
from kbert.models.new_weights import NewWeights
from kbert.models.pretrained_encoder import PretrainedEncoder
from kbert.models.sizes import bert_size

# Groups of rows in training, where batches have mixed lengths: on 16 pairs of GLUE's RTE a step
# of MiniLM takes 1.46 s with one, 1.40 with two, 1.22 with four; short sentences take 10 % more.
_TRAINING_GROUPS = 4
# Hugging Face's names of the inputs.
_NAMES_ELSEWHERE = {
    "input_ids": "token_ids",
    "token_type_ids": "segment_ids",
    "attention_mask": "padding_mask",
}


@keras.saving.register_keras_serializable("kbert")
class Bert(PretrainedEncoder):
    """Embeddings, a stack of encoder blocks, and a pooler on the first position.

    Args:
        vocabulary_size: V.
        hidden_dim: D.
        num_layers: number of encoder blocks.
        num_heads: attention heads per block; must divide `hidden_dim`.
        intermediate_dim: width of the feed-forward networks.
        max_sequence_length: the longest sequence, in tokens.
        num_segments: the number of segment types.
        dropout: rate of the dropout on embeddings and sublayers.
        attention_dropout: rate of the dropout on attention probabilities.
        activation: of the feed-forward networks; BERT's is the exact GELU.
        layer_norm_epsilon: added to the variance in every LayerNorm.
        initializer_range: standard deviation of the truncated normal initializer.
        gradient_checkpointing: keep only each block's input for the backward pass and recompute the
            block there; less memory, about a third more time, the same gradients.
        causal: whether each position sees only itself and what came before. [CLS] would then see
            nothing else: the pooler reads the last real token instead of the first.

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`, or `num_layers` is negative.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        num_layers: int,
        num_heads: int,
        intermediate_dim: int,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation: str = "gelu",
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        gradient_checkpointing: bool = False,
        causal: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "bert")
        super().__init__(**kwargs)
        if num_layers < 0:
            raise ValueError(
                f"`num_layers` must not be negative. Received: num_layers={num_layers}"
            )
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.num_layers, self.num_heads = num_layers, num_heads
        self.intermediate_dim = intermediate_dim
        self.max_sequence_length, self.num_segments = max_sequence_length, num_segments
        self.dropout, self.attention_dropout = dropout, attention_dropout
        self.activation, self.layer_norm_epsilon = activation, layer_norm_epsilon
        self.initializer_range = initializer_range
        self.gradient_checkpointing, self.causal = gradient_checkpointing, causal
        self.embeddings = BertEmbeddings(
            vocabulary_size,
            hidden_dim,
            max_sequence_length,
            num_segments,
            dropout,
            layer_norm_epsilon,
            self._initializer(),
            dtype=self.dtype_policy,
            name="embeddings",
        )
        self.blocks = [self._block(index) for index in range(num_layers)]
        self.pooler = Linear(
            hidden_dim, "tanh", True, self._initializer(), dtype=self.dtype_policy, name="pooler"
        )
        self.build()

    def _initializer(self) -> dict[str, Any]:
        return keras.initializers.serialize(NewWeights(stddev=self.initializer_range))

    def _block(self, index: int) -> EncoderBlock:
        return EncoderBlock(
            self.num_heads,
            self.intermediate_dim,
            self.dropout,
            self.attention_dropout,
            self.activation,
            "post",
            self.layer_norm_epsilon,
            self._initializer(),
            dtype=self.dtype_policy,
            name=f"encoder_block_{index}",
        )

    @classmethod
    def from_size(cls, size: str, vocabulary_size: int = 30522, **kwargs: Any) -> "Bert":
        """Makes a randomly initialized BERT of a published size.

        Args:
            size: "tiny", "mini", "small", "medium", "base" or "large".
            vocabulary_size: V.
            **kwargs: further arguments of the constructor.
        """
        return cls(vocabulary_size, **{**bert_size(size), **kwargs})

    def build(self, input_shape: Any = None) -> None:
        """Creates all weights; their shapes do not depend on the input."""
        if getattr(self, "built", False):
            return
        sequence = (None, None, self.hidden_dim)
        self.embeddings.build()
        for block in self.blocks:
            block.build(sequence)
        self.pooler.build((None, self.hidden_dim))
        self.built = True

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        check_inputs(inputs)  # before Keras converts it to tensors or raises its own error
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any, training: bool | None = None) -> dict[str, Any]:
        """Encodes a batch.

        A TensorFlow graph with dynamic shapes computes real tokens only; where shapes are static
        (XLA, TPU, JAX), and without a graph, padding is computed too.

        Args:
            inputs: dict of `token_ids` int (B, T); `segment_ids` int (B, T), absent if all are 0;
                `padding_mask` bool (B, T), True for a real token, absent if all are real.
            training: whether dropout is on.

        Returns:
            `sequence_output` (B, T, D), undefined at padded positions, and `pooled_output` (B, D).
        """
        padding_mask = inputs.get("padding_mask")
        if padding_mask is not None and None in padding_mask.shape:
            tokens = unpadded_tokens(padding_mask, self.causal, _TRAINING_GROUPS if training else 1)
            return self._call_on_tokens(inputs, tokens, training)
        mask = self._mask(inputs)
        hidden = self._embed(inputs, training)
        for block in self.blocks:
            hidden = self._encode(block, hidden, mask, training)
        read = last_real_state(hidden, padding_mask) if self.causal else hidden[:, 0]
        return {"sequence_output": hidden, "pooled_output": self.pooler(read)}

    def _call_on_tokens(
        self, inputs: Any, tokens: UnpaddedTokens, training: bool | None
    ) -> dict[str, Any]:
        """Computes `call` for real tokens only; the states of padded positions are 0."""
        segment_ids = inputs.get("segment_ids")
        hidden = self.embeddings(
            tokens.of(inputs["token_ids"]),
            None if segment_ids is None else tokens.of(segment_ids),
            tokens.positions(),
            training=training,
        )
        for block in self.blocks:
            hidden = self._encode(block, hidden, tokens, training)
        read = tokens.last_states(hidden) if self.causal else tokens.first_states(hidden)
        return {"sequence_output": tokens.in_rows(hidden), "pooled_output": self.pooler(read)}

    def hidden_states(self, inputs: Any, training: bool | None = None) -> list[Any]:
        """Returns the embeddings and every block's output: num_layers + 1 arrays (B, T, D).

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
            training: whether dropout is on.
        """
        mask = self._mask(inputs)
        states = [self._embed(inputs, training)]
        for block in self.blocks:
            states.append(self._encode(block, states[-1], mask, training))
        return states

    def attention_scores(self, inputs: Any) -> list[Any]:
        """Returns every block's attention probabilities, without dropout: num_layers (B, N, T, T).

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
        """
        mask = self._mask(inputs)
        states = self.hidden_states(inputs)
        return [block.scores(state, mask) for block, state in zip(self.blocks, states)]

    def _mask(self, inputs: Any) -> Any:
        check_inputs(inputs)
        padding_mask = inputs.get("padding_mask")
        return sequence_attention_mask(inputs["token_ids"], padding_mask, self.causal)

    def _embed(self, inputs: Any, training: bool | None) -> Any:
        return self.embeddings(inputs["token_ids"], inputs.get("segment_ids"), training=training)

    def _encode(self, block: EncoderBlock, hidden: Any, mask: Any, training: bool | None) -> Any:
        if not (self.gradient_checkpointing and training):
            return block(hidden, attention_mask=mask, training=training)
        # The seeds are drawn outside, so that recomputation drops the same units.
        seeds = block.draw_seeds()
        recomputed = keras.remat(
            lambda x: block(x, attention_mask=mask, training=training, seeds=seeds)
        )
        return recomputed(hidden)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
            "gradient_checkpointing": self.gradient_checkpointing,
            "causal": self.causal,
        }


def check_inputs(inputs: Any) -> None:
    """Raises a ValueError unless the inputs of an encoder have kbert's names.

    Args:
        inputs: the argument that the encoder was called with.
    """
    received = f"{type(inputs).__name__}{getattr(inputs, 'shape', '')}"
    if isinstance(inputs, dict):
        if "token_ids" in inputs and not set(inputs) & set(_NAMES_ELSEWHERE):
            return
        received = f"a dict of {sorted(inputs)}"
        named = [f"{key} is `{_NAMES_ELSEWHERE[key]}`" for key in inputs if key in _NAMES_ELSEWHERE]
        received += f"; here {', '.join(named)}" if named else ""
    raise ValueError(
        "`inputs` must be a dict of `token_ids` int (B, T), and `segment_ids` int (B, T) and "
        f"`padding_mask` bool (B, T) where they are needed. Received: {received}"
    )
