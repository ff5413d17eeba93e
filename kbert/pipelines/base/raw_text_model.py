"""Base of Keras models on raw texts: strings become batches of token ids on the host."""

from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.epochs import with_epoch_counter
from kbert.data.batches.packed_examples import PackedExamples
from kbert.pipelines.base.raw_text_batches import EVALUATION_TOKENS, RawTextBatches, weight_array
from kbert.pipelines.base.text_inputs import listed


class RawTextModel(RawTextBatches):
    """Adds `fit`, `evaluate` and `predict` on raw strings to a model with an `encoder`."""

    training_rows = 32

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        *,
        batch_tokens: int | None = None,
        validation_data: Any = None,
        shuffle: bool = True,
        sample_weight: Any = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> Any:
        """Runs Keras' `fit`, also on raw texts; returns Keras' history.

        Args:
            x: texts (a list, array, iterator or column of str), pairs (a tuple of two), a dict or
                table of columns {"text"} or {"text_a", "text_b"}, a dataset of batches of these
                with targets, or what Keras' `fit` takes.
            y: a target a text.
            batch_size: texts a batch; 32 by default.
            epochs: passes over the data.
            verbose: 0 is silent, 1 draws a bar, 2 prints a line an epoch; "auto" is 1 as a rule.
            batch_tokens: the most positions of a batch, padding included, instead of `batch_size`.
            validation_data: (x, y) or (x, y, weights) in the same forms, or a dataset.
            shuffle: whether to shuffle, differently in each epoch.
            sample_weight: a weight a text.
            seed: seed of the shuffling.
            **kwargs: further arguments of Keras' `fit`. With texts, `validation_split` holds out
                the last of them, as Keras does with arrays.

        Raises:
            ValueError: texts and targets differ in number, a target is unknown, or single texts are
                given to a model of pairs, or the reverse.
            TypeError: an entry of `x` is neither str nor bytes.
        """
        kwargs |= {"epochs": epochs, "verbose": verbose}
        kwargs["validation_data"] = self._held_out(validation_data)
        kwargs["class_weight"] = self.encode_class_weight(kwargs.get("class_weight"))
        if isinstance(x, tf.data.Dataset):
            kwargs["callbacks"] = with_epoch_counter(x, kwargs.get("callbacks"))
            kwargs |= {"y": y, "sample_weight": sample_weight}  # which Keras refuses
            return super().fit(self._numbers(x), shuffle=False, **kwargs)
        x = listed(x)
        texts = self.read_inputs(x)
        if texts is None:
            kwargs |= {"shuffle": shuffle, "sample_weight": weight_array(sample_weight)}
            return super().fit(x, self._targets(y), batch_size, **kwargs)
        columns = self._columns(texts, y, sample_weight)
        held_out = kwargs.pop("validation_split", 0.0)
        if held_out and validation_data is None:
            kept = int(len(texts) * (1.0 - held_out))
            kwargs["validation_data"] = self.batches(tuple(column[kept:] for column in columns))
            columns = tuple(column[:kept] for column in columns)
        rows = None if batch_tokens else batch_size or self.training_rows
        dataset = self.batches(columns, rows, batch_tokens, shuffle=shuffle, seed=seed)
        kwargs["callbacks"] = with_epoch_counter(dataset, kwargs.get("callbacks"))
        return super().fit(dataset, shuffle=False, **kwargs)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Computes loss and metrics, also on raw texts.

        Args:
            x: texts: a list, array, iterator or column of str; a tuple of two for pairs; a dict or
                table with `text`, or `text_a` and `text_b`; a dataset of batches of these; or what
                Keras takes.
            y: a target a text; None where a dataset has them.
            batch_size: texts a batch; None for as many as fill a budget of positions, padding
                included.
            verbose: 0 is silent, 1 draws a bar, 2 prints a line; "auto" is 1 as a rule.
            sample_weight: a weight a text, or None.
            **kwargs: further arguments of Keras' `evaluate`, such as `return_dict`.
        """
        kwargs["verbose"] = verbose
        if isinstance(x, tf.data.Dataset):
            kwargs |= {"y": y, "sample_weight": sample_weight}
            return super().evaluate(self._numbers(x), **kwargs)
        x = listed(x)
        texts = self.read_inputs(x)
        if texts is None:
            kwargs["sample_weight"] = weight_array(sample_weight)
            return super().evaluate(x, self._targets(y), batch_size, **kwargs)
        columns = self._columns(texts, y, sample_weight)
        return super().evaluate(self.batches(columns, batch_size), **kwargs)

    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = 0, **kwargs: Any
    ) -> Any:
        """Predicts texts, in the order of `x`.

        Args:
            x: texts: a list, array, iterator or column of str; a tuple of two for pairs; a dict or
                table with `text`, or `text_a` and `text_b`; a dataset of batches of these; or what
                Keras takes.
            batch_size: texts a batch; by default as many as fill a budget of positions.
            verbose: 0 is silent, 1 draws a bar, 2 prints a line; "auto" is 1 as a rule.
            **kwargs: further arguments of Keras' `predict`.

        Returns:
            The outputs of the model's `predict_step` for all texts.
        """
        if isinstance(x, tf.data.Dataset):
            return super().predict(self._numbers(x), verbose=verbose, **kwargs)
        x = listed(x)
        texts = self.read_inputs(x)
        if texts is None:
            return super().predict(x, batch_size, verbose=verbose, **kwargs)
        packed = self.pack(texts.text_a, texts.text_b)
        return self.predict_packed(packed, verbose, batch_size, **kwargs)

    def predict_packed(
        self,
        packed: PackedExamples,
        verbose: Any = 0,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Predicts tokenized examples, longest first, and restores their order.

        Args:
            packed: the examples, from `pack`.
            verbose: 0 is silent, 1 draws a bar, 2 prints a line; "auto" is 1 as a rule.
            batch_size: examples a batch; None for as many as fill a budget of positions, padding
                included.
            **kwargs: further arguments of Keras' `predict`.
        """
        if not len(packed):
            return self.empty_prediction()
        budget = None if batch_size else EVALUATION_TOKENS
        dataset = self.dataset(packed, batch_size=batch_size, batch_tokens=budget)
        found = super().predict(dataset, verbose=verbose, **kwargs)
        order = np.argsort(-packed.lengths, kind="stable")  # as `batch_plan` orders unshuffled rows
        answers = np.empty_like(found)
        answers[order] = found
        return answers

    def predict_texts(self, x: Any) -> tuple[Any, list[bool]]:
        """Returns the predictions for texts or pairs, and whether each was truncated.

        Args:
            x: texts, or pairs for a model with pair=True, in the forms of `fit`.

        Raises:
            ValueError: `x` is something else.
        """
        x = listed(x)
        texts = self.read_inputs(x)
        if texts is None:
            held = f" that begins with {x[0]!r:.80}" if isinstance(x, list) and x else ""
            raise ValueError(
                f"`x` must be texts or pairs of texts. Received: {type(x).__name__}{held}"
            )
        packed = self.pack(texts.text_a, texts.text_b)
        return self.predict_packed(packed), packed.truncated.tolist()

    def empty_prediction(self) -> np.ndarray:
        """Returns the prediction for no texts."""
        return np.zeros((0,), "float32")
