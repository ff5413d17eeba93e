"""A Transformer decoder over the vectors of an image's map.

Shapes: B batch, L places of the map, M width of their vectors, T caption length, D hidden, V
vocabulary.
"""

from typing import Any

import keras
from keras import ops

from kbert.architectures import IMAGE_TRANSFORMER
from kbert.layers.embeddings import LearnedPositions, TokenEmbedding
from kbert.layers.linear import Linear
from kbert.layers.masks import padding_attention_mask
from kbert.models.encoder_decoders.transformer import Transformer


@keras.saving.register_keras_serializable("kbert")
class ImageTransformer(Transformer):
    """The decoder of a Transformer, which attends to the places of an image's map.

    It has the protocol `EncoderDecoder`; `encode` takes the vectors of a map instead of tokens:
    they are projected to D, and each place has a learned vector of its own. Encoder blocks let the
    places attend to each other. The embeddings are those of the output.

    Args:
        vocabulary_size: V.
        feature_dim: M.
        num_places: L.
        hidden_dim: D.
        num_encoder_layers: number of encoder blocks, 0 or more.
        num_decoder_layers: number of decoder blocks.
        num_heads: N; must divide D.
        intermediate_dim: width of the feed-forward networks.
        max_sequence_length: the most tokens of a caption.
        dropout: rate on the output of each sublayer and on embeddings with positions.
        attention_dropout: rate on the attention probabilities.
        norm: "post" or "pre".

    Raises:
        ValueError: a name is unknown, or a size does not fit.
    """

    architecture = IMAGE_TRANSFORMER

    def __init__(
        self,
        vocabulary_size: int,
        feature_dim: int,
        num_places: int,
        hidden_dim: int = 256,
        num_encoder_layers: int = 0,
        num_decoder_layers: int = 3,
        num_heads: int = 4,
        intermediate_dim: int = 1024,
        max_sequence_length: int = 64,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        norm: str = "pre",
        **kwargs: Any,
    ) -> None:
        for key in set(kwargs) - {"name", "dtype", "trainable"}:  # which are not saved
            raise ValueError(f"`{key}` must be left out: ImageTransformer has no such argument.")
        self.feature_dim, self.num_places = feature_dim, num_places
        super().__init__(
            vocabulary_size,
            hidden_dim,
            num_encoder_layers,
            num_decoder_layers,
            num_heads,
            intermediate_dim,
            max_sequence_length,
            dropout,
            attention_dropout,
            norm=norm,
            **{"name": "image_transformer", **kwargs},
        )

    def _embedding(self, name: str, size: int | None) -> TokenEmbedding:
        return super()._embedding("target_embedding", None)

    def _make_layers(self) -> None:
        super()._make_layers()
        dtype = self.dtype_policy
        self.feature_layer = Linear(self.hidden_dim, dtype=dtype, name="features")
        self.places = LearnedPositions(
            self.num_places, self.hidden_dim, dtype=dtype, name="places"
        )

    def _build_blocks(self, states: Any) -> None:
        super()._build_blocks(states)
        self.feature_layer.build((None, None, self.feature_dim))
        self.places.build()

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Computes logits of the tokens after a known caption.

        Args:
            inputs: `features` (B, L, M); `target_token_ids` int (B, T), which begin with the start
                token.
            training: whether dropout is on.

        Returns:
            `logits` float32 (B, T, V).
        """
        return {"logits": super().call(inputs, training)}

    def encode(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        """Encodes the vectors of images.

        Args:
            inputs: dict of `features` (B, L, M).
            training: whether dropout is on.

        Returns:
            The memory of the decoder: `states` (B, L, D), `mask` bool (B, 1, 1, L).
        """
        return super().encode(inputs, training)

    def _entered(
        self, inputs: dict[str, Any], training: bool | None
    ) -> tuple[Any, Any, dict[str, Any]]:
        features = ops.cast(inputs["features"], self.compute_dtype)
        states = self.feature_layer(features) + self.places(features)
        mask = padding_attention_mask(ops.ones(ops.shape(features)[:2], "bool"))
        return self.embedding_dropout(states, training=training), mask, {}

    def attention_loss(self, targets: Any, outputs: dict[str, Any], penalty: float) -> Any:
        """Returns what training adds to the cross-entropy of each row, (B,): nothing.

        Args:
            targets: int (B, T), -1 for padding.
            outputs: not read.
            penalty: not read.
        """
        return ops.zeros((ops.shape(targets)[0],), "float32")
