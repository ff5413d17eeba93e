"""`Encoder`: what heads, text models and checkpoints ask of an encoder.

Shapes: B rows, T tokens, N heads, D width.
"""

from typing import Any, Protocol, runtime_checkable

from kbert.checkpoints.arrays.checkpoint import Checkpoint


@runtime_checkable
class Encoder(Protocol):
    """A model from token ids to hidden states.

    Called with a dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
    (B, T), of which the last two may be absent, it returns `sequence_output` (B, T, D), undefined
    at padded positions, and `pooled_output` (B, D).

    Attributes:
        vocabulary_size: number of token embeddings.
        max_sequence_length: most tokens of a sequence.
        hidden_dim: D.
        num_layers: number of blocks.
        causal: whether a token attends to those before it only.
        initializer_range: standard deviation of new weights, of heads too.
        activation: name of the activation of its blocks, which a head on tokens shares.
        layer_norm_epsilon: added to the variance in layer normalization.
        embeddings: the layer of its embeddings, with the table of tokens as
            `token_embedding.embeddings`.
        pooler: the layer from the first state to `pooled_output`.
    """

    vocabulary_size: int
    max_sequence_length: int
    hidden_dim: int
    num_layers: int
    causal: bool
    initializer_range: float
    activation: str
    layer_norm_epsilon: float
    embeddings: Any
    pooler: Any

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Encodes a batch.

        Args:
            inputs: the dict of token ids.
            *args: as Keras' call.
            **kwargs: as Keras' call, such as `training`.
        """

    def hidden_states(self, inputs: Any, training: bool | None = None) -> list[Any]:
        """Returns the embeddings and the output of each block: num_layers + 1 arrays (B, T, D).

        Args:
            inputs: the dict of token ids.
            training: whether dropout is on.
        """

    def attention_scores(self, inputs: Any) -> list[Any]:
        """Returns the attention probabilities of each block, without dropout: (B, N, T, T).

        Args:
            inputs: the dict of token ids.
        """

    def to_checkpoint(self) -> Checkpoint:
        """Returns configuration and weights under the canonical names."""
