"""BERT with bottleneck adapters, for fine-tuning with few new weights."""

from typing import Any

import keras

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.layers.bert.adapters import AdapterEncoderBlock
from kbert.models.bert import Bert
from kbert.models.encoder_arrays import weight_name

_ADAPTER = "/adapter/"
_DOWN = "/adapter/down/kernel"


@keras.saving.register_keras_serializable("kbert")
class AdapterBert(Bert):
    """A `Bert` whose blocks have adapters; only these and the LayerNorms of the blocks train.

    Source: Houlsby et al. 2019. With m = `adapter_dim`, an encoder of L layers and width D has
    2 L (2 D m + m + D) weights more.

    Args:
        *args: positional arguments of `Bert`.
        adapter_dim: m, the width of the adapters.
        **kwargs: further arguments of `Bert`.
    """

    def __init__(self, *args: Any, adapter_dim: int = 64, **kwargs: Any) -> None:
        self.adapter_dim = adapter_dim
        super().__init__(*args, **kwargs)
        self._freeze_body()

    @property
    def trainable(self) -> bool:
        """Returns whether adapters and LayerNorms are trainable; the rest never is."""
        return bool(Bert.trainable.fget(self))

    @trainable.setter
    def trainable(self, value: bool) -> None:
        Bert.trainable.fset(self, value)
        self._freeze_body()

    def _freeze_body(self) -> None:
        for variable in self.trainable_variables:
            if not is_adapted(variable.path):
                variable.trainable = False

    def _block(self, index: int) -> AdapterEncoderBlock:
        return AdapterEncoderBlock(
            self.adapter_dim,
            self.num_heads,
            self.intermediate_dim,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation=self.activation,
            epsilon=self.layer_norm_epsilon,
            kernel_initializer=self._initializer(),
            dtype=self.dtype_policy,
            name=f"encoder_block_{index}",
        )

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, **kwargs: Any) -> "AdapterBert":
        """Makes an encoder with the weights of a checkpoint, and its adapters or new ones."""
        if checkpoint.adapters:
            width = {a.shape[1] for n, a in checkpoint.adapters.items() if n.endswith(_DOWN)}
            kwargs = {**kwargs, "adapter_dim": width.pop()}
        model = super().from_checkpoint(checkpoint, **kwargs)
        expected = {weight_name(model, v) for v in model.weights if _ADAPTER in v.path}
        missing = sorted(expected - set(checkpoint.adapters))
        if checkpoint.adapters and missing:
            raise ValueError(
                f"`checkpoint.adapters` must be all or none of the model's. Missing: {missing}"
            )
        return model

    @staticmethod
    def may_be_absent(name: str) -> bool:
        """Returns whether a checkpoint may lack a weight; those of adapters come from elsewhere."""
        return _ADAPTER in name or Bert.may_be_absent(name)

    def to_checkpoint(self) -> Checkpoint:
        """Returns the weights as a checkpoint, the adapters apart from the encoder's weights."""
        checkpoint = super().to_checkpoint()
        del checkpoint.config["adapter_dim"]
        arrays = checkpoint.arrays
        checkpoint.adapters = {n: a for n, a in arrays.items() if _ADAPTER in n}
        checkpoint.arrays = {n: a for n, a in arrays.items() if _ADAPTER not in n}
        return checkpoint

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "adapter_dim": self.adapter_dim}


def is_adapted(path: str) -> bool:
    """Returns whether a variable of an `AdapterBert` is trainable, by its path."""
    return _ADAPTER in path or ("/layer_norm/" in path and "/embeddings/" not in path)
