"""Keras' methods for one batch, and the call of a model, on raw texts."""

from typing import Any

import keras
import numpy as np

from kbert.pipelines.base.text_inputs import holds_texts


class BatchCalls(keras.Model):
    """Adds raw texts to `train_on_batch`, `test_on_batch`, `predict_on_batch` and to a call.

    A subclass implements `one_batch`, and `call_inputs` where a call can take texts.
    """

    def one_batch(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, ...]:
        """Makes one batch of numbers of texts with their targets and weights.

        Args:
            x: raw texts, or what Keras takes, which stays as it is.
            y: a target a text, or None.
            sample_weight: a weight a text, or None.

        Returns:
            Inputs, targets, and weights if there are any.
        """
        # A subclass without it is a bug, raised at its first use.
        raise NotImplementedError(f"{type(self).__name__} must say what a batch of texts is")

    def call_inputs(self, x: Any) -> Any:
        """Tokenizes texts for a call of the model.

        Args:
            x: raw texts.

        Raises:
            ValueError: a text may become several sequences, or needs a target with it.
        """
        raise ValueError(
            f"`inputs` of a call must be token ids for a {type(self).__name__}. Received: texts, "
            "which `predict` and `answers` take"
        )

    def encode_class_weight(self, weights: Any) -> Any:
        """Encodes weights of classes, as users write them, by class id.

        Args:
            weights: a dict from class to weight, or None.
        """
        return weights

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args and holds_texts(args[0]):
            args = (self.call_inputs(args[0]), *args[1:])
        return super().__call__(*args, **kwargs)

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Runs one training step on one batch.

        Args:
            x: texts in the forms of `fit`, all of them one batch, or arrays of token ids.
            y: a target a text.
            sample_weight: a weight a text.
            class_weight: a dict of weights of the classes, by their ids or, in classification, by
                their names.
            return_dict: whether to return a dict instead of a list.

        Returns:
            The loss and the metrics of the batch.
        """
        x, y, *weights = self.one_batch(x, y, sample_weight)
        weight = weights[0] if weights else None
        class_weight = self.encode_class_weight(class_weight)
        return super().train_on_batch(x, _numpy(y), weight, class_weight, return_dict)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """Evaluates one batch.

        Args:
            x: texts in the forms of `fit`, all of them one batch, or arrays of token ids.
            y: a target a text.
            sample_weight: a weight a text.
            return_dict: whether to return a dict instead of a list.

        Returns:
            The loss and the metrics of the batch.
        """
        x, y, *weights = self.one_batch(x, y, sample_weight)
        return super().test_on_batch(x, y, weights[0] if weights else None, return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """Predicts one batch.

        Args:
            x: texts in the forms of `fit`, or arrays of token ids.

        Returns:
            The predictions, in the form of `predict`.
        """
        return self.predict(x) if holds_texts(x) else super().predict_on_batch(x)


def _numpy(y: Any) -> Any:
    """Converts targets to arrays, by which Keras looks up weights of classes."""
    return None if y is None else keras.tree.map_structure(np.asarray, y)
