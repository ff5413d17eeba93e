"""An encoder of a package beside kbert: mean vectors, and no block of a Transformer."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

from kbert.checkpoints.arrays.encoder_layout import EncoderLayout
from kbert.layers.embeddings import TokenEmbedding
from kbert.layers.linear import Linear
from kbert.models.encoder_model import EncoderModel

NAME = "averages"
_KEYS = ("vocabulary_size", "hidden_dim", "max_sequence_length", "initializer_range")


@keras.saving.register_keras_serializable("tests")
class Averages(EncoderModel):
    """The state of a token is tanh of its vector plus the mean of all."""

    architecture, causal, num_layers = NAME, False, 0
    activation, layer_norm_epsilon = "tanh", 1e-12

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        max_sequence_length: int = 32,
        initializer_range: float = 0.5,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", NAME)
        super().__init__(**kwargs)
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.max_sequence_length = max_sequence_length
        self.initializer_range = initializer_range
        self.vectors = TokenEmbedding(vocabulary_size, hidden_dim, name="vectors")
        self.pooler = Linear(hidden_dim, "tanh", name="pooler")
        self.vectors.build()
        self.pooler.build((None, hidden_dim))
        self.built = True

    @property
    def embeddings(self) -> Any:
        return SimpleNamespace(token_embedding=self.vectors)

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        (states,) = self.hidden_states(inputs)
        return {"sequence_output": states, "pooled_output": self.pooler(states[:, 0])}

    def hidden_states(self, inputs: dict[str, Any], training: bool | None = None) -> list[Any]:
        vectors = self.vectors(inputs["token_ids"])
        mask = inputs.get("padding_mask")
        mask = ops.ones_like(inputs["token_ids"]) if mask is None else mask
        real = ops.cast(mask, vectors.dtype)[..., None]
        mean = ops.sum(vectors * real, axis=1, keepdims=True) / ops.sum(real, axis=1, keepdims=True)
        return [ops.tanh(vectors + mean)]

    def attention_scores(self, inputs: dict[str, Any]) -> list[Any]:
        return []

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **{key: getattr(self, key) for key in _KEYS}}


def _check(config: Mapping[str, Any], source: str) -> None:
    if set(config) != set(_KEYS):
        raise ValueError(f"{source}: the configuration must have {', '.join(_KEYS)}.")


def _shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    hidden = config["hidden_dim"]
    table = {"vectors/embeddings": (config["vocabulary_size"], hidden)}
    return table | {"pooler/kernel": (hidden, hidden), "pooler/bias": (hidden,)}


LAYOUT = EncoderLayout(NAME, "an encoder of averages", None, _shapes, check=_check)
