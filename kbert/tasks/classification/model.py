"""Text classification: raw strings in, class names out."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from kbert.models.encoder import Encoder
from kbert.pipelines.inference import packed_chunks
from kbert.pipelines.saved_pipeline import load_pipeline
from kbert.pipelines.signatures import Signature, label_maps, text_specs, token_inputs, token_specs
from kbert.tasks.classification.head import SequenceClassification
from kbert.tasks.classification.inputs import LabelBatching
from kbert.text.tokenizer import Tokenizer


@keras.saving.register_keras_serializable("kbert")
class Classifier(SequenceClassification):
    """Assigns each text, or pair of texts, one of C classes.

    Called with token ids it returns logits float32 (B, C); `predict` returns probabilities (n, C),
    `answers` names. As `y` of n texts, `fit` takes names, ids or probabilities (n, C).

    Args:
        encoder: an encoder such as `Bert`.
        tokenizer: the tokenizer of the encoder's vocabulary.
        labels: the C class names.
        max_sequence_length: longer texts are cut, in tokens with the special ones.
        head: "pooler" or "two_layer", see `kbert.tasks.classification.head.SequenceHead`; None for
            the one that the encoder was published with.
        dropout: rate of the head's dropout.
        pair: whether it reads two texts; this decides the inputs of its export.

    Raises:
        ValueError: `labels` are not distinct or fewer than two, or tokenizer or length do not fit
            the encoder.
    """

    arguments = ("labels", "max_sequence_length", "head", "dropout", "pair")
    batching_type = LabelBatching
    huggingface_architecture = "BertForSequenceClassification"

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        max_sequence_length: int = 128,
        head: str | None = None,
        dropout: float = 0.1,
        pair: bool = False,
        **kwargs: Any,
    ) -> None:
        names = distinct_names(labels)
        kwargs.setdefault("name", "classifier")
        super().__init__(encoder, len(names), head, dropout, **kwargs)
        self.tokenizer = tokenizer
        self.label_names = names
        self.max_sequence_length = max_sequence_length
        self.pair = pair
        self.batching.check()

    @property
    def labels(self) -> list[str]:
        """The class names, in the order of the scores."""
        return list(self.label_names)

    @classmethod
    def from_pretrained(
        cls,
        name_or_directory: str | os.PathLike[str],
        labels: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> "Classifier":
        """Loads a saved classifier, or puts a new head on an encoder.

        Args:
            name_or_directory: a known name ("bert-base-uncased", "all-MiniLM-L6-v2", ...), an
                `org/name` of the Hugging Face hub, or a directory with a checkpoint; one with a
                classification head (kbert's or Hugging Face's) yields a classifier that is ready to
                use.
            labels: class names; needed where there is no head, and otherwise a replacement for the
                names in the directory.
            **kwargs: arguments of the constructor, or of `Bert`; or `from_other_task=True`, to take
                the encoder of another task's model, with a new head.

        Raises:
            ValueError: there is neither a head nor `labels`, or the head has another size.
        """
        return load_pipeline(cls, name_or_directory, labels=labels, **kwargs)

    def huggingface_config(self) -> dict[str, Any]:
        """Returns the task's entries of a Hugging Face configuration."""
        return {
            **label_maps(self.label_names),
            "problem_type": "single_label_classification",
            "classifier_dropout": self.dropout,
        }

    def batch_outputs(self, inputs: Any) -> Any:
        """Returns the probabilities (B, C) of one batch of token ids, `inputs`."""
        return self.scores(inputs)

    def scores(self, inputs: dict[str, Any]) -> Any:
        """Returns probabilities float32 (B, C) for the inputs of `Bert`, as graph code.

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
        """
        return ops.softmax(self(inputs, training=False), axis=-1)

    def empty_prediction(self) -> np.ndarray:
        """Returns the prediction for no texts, (0, C)."""
        return np.zeros((0, self.num_labels), "float32")

    def named(self, scores: Any) -> dict[str, Any]:
        """Adds the names of the classes to scores (B, C), as graph code.

        Args:
            scores: float32 (B, C), in the order of `labels`.

        Returns:
            `label` string (B,), `score` (B,), `scores` (B, C), `labels` string (B, C).
        """
        names = tf.constant(self.labels)
        best = tf.argmax(scores, axis=-1)
        return {
            "label": tf.gather(names, best),
            "score": tf.reduce_max(scores, axis=-1),
            "scores": scores,
            "labels": tf.broadcast_to(names, tf.shape(scores)),
        }

    def classify(self, text_a: Any, text_b: Any = None) -> dict[str, Any]:
        """Classifies raw strings (B,): outputs of `named`, and `truncated` bool (B,); graph code.

        Args:
            text_a: string (B,), the texts, or the first texts of pairs.
            text_b: string (B,), the second texts; None for single texts.
        """
        packed = self.batching.preprocess(text_a, text_b)
        scores = packed_chunks(self.scores, packed, self.num_labels)
        return {**self.named(scores), "truncated": packed.truncated}

    def classify_tokens(self, token_ids: Any, segment_ids: Any, lengths: Any) -> dict[str, Any]:
        """Classifies token ids (B, T) with lengths (B,): outputs of `named`; graph code.

        Args:
            token_ids: int (B, T).
            segment_ids: int (B, T), 1 in the second text of a pair, otherwise 0.
            lengths: int (B,), the number of real tokens of each row.
        """
        return self.named(self.scores(token_inputs(token_ids, segment_ids, lengths)))

    def signatures(self) -> dict[str, Signature]:
        """Returns the functions of an export and the specs of their inputs."""
        return {
            "serving_default": (self.classify, text_specs(self.pair)),
            "tokens": (self.classify_tokens, token_specs()),
        }

    def answers(self, x: Any) -> list[dict[str, Any]]:
        """Classifies texts, and returns plain Python values.

        Args:
            x: texts, or pairs for a model with pair=True, in the forms of `fit`.

        Returns:
            A dict a text: `label`, `score`, `scores` by name, and `truncated`, whether the text was
            too long and cut.
        """
        predictions, truncated = self.batching.predict_texts(x)
        return [
            {
                "label": self.label_names[int(np.argmax(row))],
                "score": float(np.max(row)),
                "scores": dict(zip(self.label_names, row.tolist())),
                "truncated": cut,
            }
            for row, cut in zip(predictions, truncated)
        ]


def distinct_names(labels: Any, least: int = 2) -> tuple[str, ...]:
    """Returns names of classes or labels, of which there are `least` or more, as a tuple.

    Raises:
        ValueError: they are no names, empty, not distinct without blanks around them, or too few.
    """
    # A string is a sequence too, of its letters.
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise ValueError(
            "`labels` must be the names of the classes, such as ['negative', 'positive']. "
            f"Received: labels={labels!r}"
        )
    if isinstance(labels, set | frozenset):
        raise ValueError(
            "`labels` must be in an order, which is that of the scores. Received: a set, which has "
            "none; sorted(labels) has one"
        )
    if strange := [one for one in labels if not isinstance(one, str | int | np.generic)]:
        raise ValueError(f"`labels` must be texts or whole numbers. Received: {strange[0]!r}")
    names = tuple(map(str, labels))
    if len(names) < least or len(set(names)) < len(names):
        expected = "at least two different names" if least > 1 else "different names, one or more"
        raise ValueError(f"`labels` must be {expected}. Received: labels={list(names)}")
    bare = [name.strip() for name in names]
    if not all(bare) or len(set(bare)) < len(bare):
        raise ValueError(
            "`labels` must not be empty, nor differ only in the blanks around them. "
            f"Received: labels={list(names)}"
        )
    return names
