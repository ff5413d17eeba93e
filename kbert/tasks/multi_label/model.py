"""Several labels a text: raw strings in, names of labels out."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.metrics.label_sets import best_thresholds, is_chosen
from kbert.models.encoder import Encoder
from kbert.pipelines.batching import check_targets
from kbert.pipelines.inference import packed_chunks
from kbert.pipelines.saved_pipeline import load_pipeline
from kbert.pipelines.signatures import Signature, label_maps, text_specs, token_inputs, token_specs
from kbert.tasks.classification.model import distinct_names
from kbert.tasks.multi_label.head import MultiLabelClassification
from kbert.tasks.multi_label.inputs import LabelSetBatching
from kbert.tasks.multi_label.task import PROBLEM_TYPE, THRESHOLD, label_answer
from kbert.text.tokenizer import Tokenizer


@keras.saving.register_keras_serializable("kbert")
class MultiLabelClassifier(MultiLabelClassification):
    """Assigns each text, or pair of texts, any number of C labels, none included.

    Called with token ids it returns logits; `predict` returns probabilities float32 (n, C), each
    the sigmoid of its own logit, and `answers` the names of those that reach their thresholds.
    Source: `BertForSequenceClassification` of transformers with the `problem_type`
    "multi_label_classification", whose folders are read and written.

    Args:
        encoder: an encoder such as `Bert`.
        tokenizer: the tokenizer of the encoder's vocabulary.
        labels: the C names.
        max_sequence_length: longer texts are cut, in tokens with the special ones.
        head: "pooler" or "two_layer", see `kbert.tasks.classification.head.SequenceHead`; None for
            the one that the encoder was published with.
        dropout: rate of the head's dropout.
        pair: whether it reads two texts; this decides the inputs of its export.
        threshold: the probability in (0, 1) from which on a label is named: a number, C of them, or
            a dict from names to numbers, where other labels have 0.5. It can be set later, and is
            saved with the model; an export keeps the one that it was made with.

    Raises:
        ValueError: `labels` are not distinct or none, `threshold` does not fit them or is not in
            (0, 1), or tokenizer or length do not fit the encoder.
    """

    arguments = ("labels", "max_sequence_length", "head", "dropout", "pair", "threshold")
    batching_type = LabelSetBatching
    huggingface_architecture = "BertForSequenceClassification"
    problem_types = (PROBLEM_TYPE,)

    def __init__(
        self,
        encoder: Encoder,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        max_sequence_length: int = 128,
        head: str | None = None,
        dropout: float = 0.1,
        pair: bool = False,
        threshold: float | Sequence[float] | Mapping[str, float] = THRESHOLD,
        **kwargs: Any,
    ) -> None:
        names = distinct_names(labels, 1)
        kwargs.setdefault("name", "multi_label_classifier")
        super().__init__(encoder, len(names), head, dropout, **kwargs)
        self.tokenizer = tokenizer
        self.label_names = names
        self.max_sequence_length = max_sequence_length
        self.pair = pair
        self.threshold = threshold
        self.batching.check()

    @property
    def labels(self) -> list[str]:
        """The names of the labels, in the order of the probabilities."""
        return list(self.label_names)

    @property
    def threshold(self) -> float | list[float]:
        """The threshold of all labels, or a list of C."""
        first, *others = self._thresholds
        return first if all(one == first for one in others) else list(self._thresholds)

    @threshold.setter
    def threshold(self, threshold: float | Sequence[float] | Mapping[str, float]) -> None:
        self._thresholds = checked_thresholds(threshold, self.label_names)

    @property
    def thresholds(self) -> dict[str, float]:
        """The threshold of each label by its name."""
        return dict(zip(self.label_names, self._thresholds))

    def tune_thresholds(self, x: Any, y: Any) -> dict[str, float]:
        """Sets each label's threshold to the one with the largest F1 on examples, and returns them.

        The examples should not be those of training, nor those that the model is measured on.

        Args:
            x: texts, or pairs for a model with pair=True, in the forms of `fit`.
            y: their labels, in the forms of `fit`.

        Raises:
            ValueError: texts and labels do not fit each other or the model.
        """
        targets = self.encode_targets(y)
        predictions = self.predict(x)
        check_targets(len(predictions), targets)
        self.threshold = best_thresholds(targets, predictions)
        return self.thresholds

    @classmethod
    def default_settings(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        """Returns the threshold that a folder of Hugging Face's in `checkpoint` may have."""
        found = checkpoint.source_config.get("threshold")
        return {} if found is None else {"threshold": found}

    @classmethod
    def from_pretrained(
        cls,
        name_or_directory: str | os.PathLike[str],
        labels: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> "MultiLabelClassifier":
        """Loads a saved classifier, or puts a new head on an encoder.

        Args:
            name_or_directory: a known name ("bert-base-uncased", "all-MiniLM-L6-v2", ...), an
                `org/name` of the Hugging Face hub, or a directory with a checkpoint; one with a
                head for several labels (kbert's or Hugging Face's) yields a model that is ready to
                use.
            labels: the names of the labels; required for an encoder alone, and a replacement for
                the names in the directory.
            **kwargs: arguments of the constructor, or of `Bert`; or `from_other_task=True`, to take
                the encoder of another task's model, with a new head.

        Raises:
            ValueError: there is neither a head nor `labels`, the head has another size, or it
                chooses one of several classes.
        """
        return load_pipeline(cls, name_or_directory, labels=labels, **kwargs)

    def huggingface_config(self) -> dict[str, Any]:
        """Returns the task's entries of a Hugging Face configuration.

        `threshold` is kbert's own; transformers keeps it and does not read it.
        """
        own = {} if self.threshold == THRESHOLD else {"threshold": self.threshold}
        return {
            **label_maps(self.label_names),
            "problem_type": PROBLEM_TYPE,
            "classifier_dropout": self.dropout,
            **own,
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
        return ops.sigmoid(self(inputs, training=False))

    def empty_prediction(self) -> np.ndarray:
        """Returns the prediction for no texts, (0, C)."""
        return np.zeros((0, self.num_labels), "float32")

    def named(self, probabilities: Any) -> dict[str, Any]:
        """Adds names, and whether each label is there, to probabilities (B, C), as graph code.

        Args:
            probabilities: float32 (B, C), in the order of `labels`.

        Returns:
            `labels` string (B, C), `probabilities` (B, C), `chosen` bool (B, C).
        """
        return {
            "labels": tf.broadcast_to(tf.constant(self.labels), tf.shape(probabilities)),
            "probabilities": probabilities,
            "chosen": probabilities >= tf.constant(self._thresholds, tf.float32),
        }

    def classify(self, text_a: Any, text_b: Any = None) -> dict[str, Any]:
        """Classifies raw strings (B,): outputs of `named`, and `truncated` bool (B,); graph code.

        Args:
            text_a: string (B,), the texts, or the first texts of pairs.
            text_b: string (B,), the second texts; None for single texts.
        """
        packed = self.batching.preprocess(text_a, text_b)
        found = packed_chunks(self.scores, packed, self.num_labels)
        return {**self.named(found), "truncated": packed.truncated}

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
            A dict a text: `labels`, the names whose probability reaches their threshold, the most
            likely first; `probabilities` of all labels by name; and `truncated`, whether the text
            was too long and cut.
        """
        predictions, truncated = self.batching.predict_texts(x)
        chosen = is_chosen(predictions, self._thresholds)
        return [
            {**label_answer(self.label_names, row.tolist(), named.tolist()), "truncated": cut}
            for row, named, cut in zip(predictions, chosen, truncated)
        ]


def checked_thresholds(threshold: Any, names: Sequence[str]) -> tuple[float, ...]:
    """Returns a threshold for each label.

    Raises:
        ValueError: a name is unknown, there are not as many as labels, or one is not in (0, 1).
    """
    given = threshold
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ValueError(
                f"`threshold` must have labels of {list(names)} as keys. Received: {unknown[:10]}"
            )
        given = [given.get(name, THRESHOLD) for name in names]
    elif not isinstance(given, Sequence | np.ndarray):
        given = [given] * len(names)
    is_right = [isinstance(v, int | float | np.floating) and 0 < v < 1 for v in given]
    if len(given) != len(names) or not all(is_right):
        raise ValueError(
            f"`threshold` must be a number in (0, 1), or one for each of {len(names)} labels. "
            f"Received: threshold={threshold!r:.100}"
        )
    return tuple(float(value) for value in given)
