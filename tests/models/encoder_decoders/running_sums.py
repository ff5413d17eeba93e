"""A translation model of a package beside kbert: its state is replaced at each step."""

from typing import Any

import keras
from keras import ops

from kbert.layers.embeddings import TokenEmbedding
from kbert.layers.linear import Linear

NAME = "running-sums"


@keras.saving.register_keras_serializable("tests")
class RunningSums(keras.Model):
    """The state of a step is tanh of the source's mean vector plus the sum of the target's."""

    architecture, num_decoder_layers, num_heads = NAME, 1, 1
    bert: Any = None

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        source_vocabulary_size: int | None = None,
        max_sequence_length: int = 40,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"name": "running_sums", **kwargs})
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.source_vocabulary_size = source_vocabulary_size or vocabulary_size
        self.max_sequence_length = max_sequence_length
        self.source = TokenEmbedding(self.source_vocabulary_size, hidden_dim, name="source")
        self.target = TokenEmbedding(vocabulary_size, hidden_dim, name="target")
        self.outputs_of = Linear(vocabulary_size, name="output")
        self.source.build()
        self.target.build()
        self.outputs_of.build((None, hidden_dim))
        self.built = True

    def call(self, inputs: dict[str, Any], training: bool | None = None) -> Any:
        return self.logits(self.target_states(inputs["target_token_ids"], self.encode(inputs)))

    def encode(self, inputs: dict[str, Any], training: bool | None = None) -> dict[str, Any]:
        real = ops.cast(inputs["source_padding_mask"], self.compute_dtype)
        vectors = self.source(inputs["source_token_ids"]) * real[..., None]
        return {"mean": ops.sum(vectors, axis=1) / ops.sum(real, axis=1)[:, None], "real": real}

    def target_states(
        self, target_token_ids: Any, memory: dict[str, Any], training: bool | None = None
    ) -> Any:
        sums = ops.cumsum(self.target(target_token_ids), axis=1)
        return ops.tanh(memory["mean"][:, None] + sums)

    def logits(self, states: Any) -> Any:
        return ops.cast(self.outputs_of(states), "float32")

    def start_decoding(
        self, memory: dict[str, Any], slots: int = 1, capacity: int | None = None
    ) -> Any:
        # Room for K slots from the beginning; the first step reads slot 0.
        sums = ops.repeat(ops.zeros_like(memory["mean"])[:, None], slots, axis=1)
        return {"sums": sums, "mean": memory["mean"]}

    def decode_step(self, token_ids: Any, time: Any, slots: Any, state: Any) -> tuple[Any, Any]:
        before = ops.take(slots, ops.maximum(time - 1, 0), axis=2)
        parents = ops.where(time > 0, before, 0)
        sums = ops.take_along_axis(state["sums"], parents[:, :, None], axis=1)
        sums = sums + self.target(token_ids)
        room = ops.shape(state["sums"])[1] - ops.shape(sums)[1]
        logits = self.logits(ops.tanh(state["mean"][:, None] + sums))
        return logits, {**state, "sums": ops.pad(sums, ((0, 0), (0, room), (0, 0)))}

    def memory_scores(self, target_token_ids: Any, memory: dict[str, Any]) -> list[Any]:
        equal = memory["real"] / ops.sum(memory["real"], axis=1, keepdims=True)
        steps = ops.ones_like(target_token_ids, dtype=self.compute_dtype)
        return [(steps[:, :, None] * equal[:, None])[:, None]]

    def get_config(self) -> dict[str, Any]:
        keys = ("vocabulary_size", "hidden_dim", "source_vocabulary_size", "max_sequence_length")
        return {**super().get_config(), **{key: getattr(self, key) for key in keys}}
