"""Multiple choice: the pair head on each choice, softmax over the choices."""

from typing import Any

import keras
from keras import ops

from kbert.tasks.classification.head import SequenceClassification


@keras.saving.register_keras_serializable("kbert")
class ChoiceSelection(SequenceClassification):
    """Predicts a logit for each of K choices; the choices of an example share one softmax.

    Source: Devlin et al. 2019, section 4.4 (SWAG).

    Args:
        encoder: a `Bert`.
        head: "pooler" or "two_layer".
        dropout: rate of the head's dropout.
    """

    def __init__(
        self, encoder: Any, head: str = "pooler", dropout: float = 0.1, **kwargs: Any
    ) -> None:
        super().__init__(encoder, 1, head, dropout, **kwargs)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Scores the choices.

        Args:
            inputs: `token_ids`, `segment_ids`, `padding_mask`, each (B, K, T): the context with
                each of the K choices.
            training: whether dropout is on.

        Returns:
            float32 logits (B, K).
        """
        shape = ops.shape(inputs["token_ids"])
        flat = {name: ops.reshape(x, (-1, x.shape[-1] or shape[2])) for name, x in inputs.items()}
        return ops.reshape(super().call(flat, training=training), (shape[0], shape[1]))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["num_labels"]
        return config
