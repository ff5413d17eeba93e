"""Multiple choice: a context and K choices in, the best choice out (SWAG)."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from kbert.models.encoder import Encoder
from kbert.pipelines.signatures import Signature, model_inputs
from kbert.tasks.multiple_choice.head import ChoiceSelection
from kbert.tasks.multiple_choice.inputs import ChoiceBatching
from kbert.text.tokenizer import Tokenizer


@keras.saving.register_keras_serializable("kbert")
class MultipleChoice(ChoiceSelection):
    """Chooses the best of K continuations of a context.

    `x` in `fit`, `evaluate` and `predict` is a tuple (contexts, choices): n str, and n lists of K
    str, the same K for all; or a dict or table of both. `y` is the index of the right choice.
    `predict` returns the probabilities (n, K) of the choices.

    Args:
        encoder: an encoder such as `Bert`.
        tokenizer: the tokenizer of the encoder's vocabulary.
        max_sequence_length: context and choice together are cut to this many tokens.
        head: "pooler" or "two_layer", see `kbert.tasks.classification.head.SequenceHead`; None for
            the one that the encoder was published with.
        dropout: rate of the head's dropout.

    Raises:
        ValueError: tokenizer or length do not fit the encoder.
    """

    huggingface_architecture = "BertForMultipleChoice"
    pair = True
    arguments = ("max_sequence_length", "head", "dropout")
    batching_type = ChoiceBatching

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        max_sequence_length: int = 128,
        head: str | None = None,
        dropout: float = 0.1,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "multiple_choice")
        super().__init__(encoder, head, dropout, **kwargs)
        self.tokenizer = tokenizer
        self.max_sequence_length = max_sequence_length
        self.batching.check()

    def huggingface_config(self) -> dict[str, Any]:
        """Returns the task's entries of a Hugging Face configuration."""
        return {"classifier_dropout": self.dropout}

    def batch_outputs(self, inputs: Any) -> Any:
        """Returns the probabilities (B, K) of one batch of token ids, `inputs`."""
        return self.scores(inputs)

    def scores(self, inputs: dict[str, Any]) -> Any:
        """Returns probabilities float32 (B, K) for token ids (B, K, T), as graph code.

        Args:
            inputs: dict of `token_ids`, `segment_ids` and `padding_mask`, each (B, K, T).
        """
        return ops.softmax(self(inputs, training=False), axis=-1)

    def choose(self, context: Any, choices: Any) -> dict[str, Any]:
        """Chooses among choices (B, K) for contexts (B,), as graph code.

        Args:
            context: string (B,).
            choices: string (B, K).

        Returns:
            `choice` int32 (B,), `score` (B,), `scores` (B, K), `truncated` bool (B,).
        """
        packed = self.batching.preprocess(context, choices)
        scores = self.scores(model_inputs(packed))
        return {
            "choice": tf.argmax(scores, axis=-1, output_type=tf.int32),
            "score": tf.reduce_max(scores, axis=-1),
            "scores": scores,
            "truncated": tf.reduce_any(packed.truncated, axis=-1),
        }

    def signatures(self) -> dict[str, Signature]:
        """Returns the function of an export and the specs of its inputs."""
        specs = [
            tf.TensorSpec((None,), tf.string, name="context"),
            tf.TensorSpec((None, None), tf.string, name="choices"),
        ]
        return {"serving_default": (self.choose, specs)}

    def answers(self, x: Any) -> list[dict[str, Any]]:
        """Returns a dict with `choice`, `score` and `scores` for each example of `x`.

        Args:
            x: a tuple of n contexts and of n lists of K choices, or a dict or table of both.
        """
        return [
            {"choice": int(np.argmax(r)), "score": float(np.max(r)), "scores": r.tolist()}
            for r in self.predict(x)
        ]
