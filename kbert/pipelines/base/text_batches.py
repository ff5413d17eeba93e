"""Keras' `fit` and `evaluate` on batches that a model makes of raw texts."""

from typing import Any

import tensorflow as tf

from kbert.data.batches.epochs import with_epoch_counter
from kbert.pipelines.base.batch_calls import BatchCalls
from kbert.pipelines.base.text_inputs import listed


class TextBatches(BatchCalls):
    """Adds raw texts to `fit` and `evaluate` of the next Keras model in the class hierarchy.

    A subclass implements `text_batches`.

    Attributes:
        is_cut_by_rows: whether `batch_size` applies to raw texts too.
    """

    is_cut_by_rows = True
    # All texts at once, for `one_batch`.
    whole: dict[str, Any] = {"batch_size": 1 << 30}

    def text_batches(self, x: Any, y: Any = None, **cut: Any) -> Any:
        """Makes batches of raw texts.

        Args:
            x: raw texts, or anything else.
            y: a target a text.
            **cut: batching options of `fit`; by default, batches as large as evaluation allows.

        Returns:
            A dataset of batches, or None if `x` is not raw texts.
        """
        # A subclass without it is a bug, raised at its first use.
        raise NotImplementedError(f"{type(self).__name__} must say what its texts are")

    def fit_texts(
        self,
        x: Any,
        y: Any,
        batch_size: int | None,
        *,
        cut: dict[str, Any],
        validation_data: Any,
        shuffle: bool,
        **kwargs: Any,
    ) -> Any:
        """Runs Keras' `fit`, on the model's own batches where `x` is raw texts.

        Args:
            x: raw texts, or what Keras' `fit` takes.
            y: a target a text.
            batch_size: examples a batch, of inputs other than raw texts.
            cut: batching options for raw texts, which `text_batches` takes.
            validation_data: (x, y) in the same forms, or a dataset of batches.
            shuffle: whether to shuffle inputs other than raw texts and datasets.
            **kwargs: further arguments of Keras' `fit`.

        Returns:
            Keras' history.
        """
        x = listed(x)
        if isinstance(validation_data, tuple):
            validation_data = self._held_out(validation_data)
        dataset = self.text_batches(x, y, **cut)
        if dataset is not None:
            check_no_weights(kwargs.pop("sample_weight", None))
        callbacks = with_epoch_counter(x if dataset is None else dataset, kwargs.get("callbacks"))
        kwargs |= {"validation_data": validation_data, "callbacks": callbacks}
        if dataset is not None:
            return super().fit(dataset, shuffle=False, **kwargs)
        is_dataset = isinstance(x, tf.data.Dataset)  # has an order of its own
        return super().fit(x, y, batch_size, shuffle=shuffle and not is_dataset, **kwargs)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        **kwargs: Any,
    ) -> Any:
        """Computes loss and metrics, also on raw texts.

        Args:
            x: raw texts in the forms of `fit`, a dataset of batches, or what Keras takes.
            y: a target a text; None where a dataset has them.
            batch_size: examples a batch; None for as many as may be evaluated at a time.
            verbose: 0 is silent, 1 draws a bar, 2 prints a line; "auto" is 1 as a rule.
            **kwargs: further arguments of Keras' `evaluate`, such as `return_dict`.
        """
        x = listed(x)
        cut = {"batch_size": batch_size} if batch_size and self.is_cut_by_rows else {}
        dataset = self.text_batches(x, y, **cut)
        if dataset is None:
            return super().evaluate(x, y, batch_size, verbose, **kwargs)
        check_no_weights(kwargs.pop("sample_weight", None))
        return super().evaluate(dataset, verbose=verbose, **kwargs)

    def _held_out(self, data: tuple[Any, ...]) -> Any:
        """Converts validation data to a form that Keras takes."""
        x = listed(data[0])
        dataset = self.text_batches(x, *data[1:2])
        if dataset is None:
            return (x, *data[1:])
        if len(data) > 2:
            raise ValueError(
                "`validation_data` of texts must be (x, y). "
                f"Received: {len(data)} entries; such texts have no sample weights"
            )
        return dataset

    def one_batch(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, ...]:
        """Makes one batch of texts with their targets; see `BatchCalls`.

        Args:
            x: raw texts in the forms of `fit`, or what Keras takes.
            y: a target a text, or None.
            sample_weight: None with texts, which have no weights.
        """
        x = listed(x)
        dataset = self.text_batches(x, y, **self.whole)
        if dataset is None:
            return x, y, sample_weight
        check_no_weights(sample_weight)
        return next(iter(dataset))


def check_no_weights(sample_weight: Any) -> None:
    """Raises a ValueError if texts that become several sequences, or pairs, are given weights.

    Args:
        sample_weight: the weights, or None.
    """
    if sample_weight is not None:
        raise ValueError(
            "`sample_weight` must be None with texts of this task, which have no weights. "
            f"Received: {len(sample_weight)} weights"
        )


def check_targets(count: int, y: Any) -> None:
    """Raises a ValueError unless there are texts, and a target for each.

    Args:
        count: the number of texts.
        y: their targets.
    """
    if y is None:
        raise ValueError(
            "`y` must be given with texts. Received: y=None (of a table, give a column)"
        )
    if len(y) != count:
        raise ValueError(f"`y` must have one entry a text. Received: {len(y)} for {count} texts")
    if not count:
        raise ValueError("`x` must hold at least one text. Received: none")
