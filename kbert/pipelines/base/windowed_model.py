"""Base of Keras models on long raw texts: they cut windows, run them in chunks and join them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import batched_dataset
from kbert.data.batches.text_tensor import text_tensor
from kbert.data.batches.windowed_examples import WindowedExamples, window_examples
from kbert.pipelines.base.raw_text_batches import EVALUATION_TOKENS
from kbert.pipelines.base.text_batches import TextBatches, check_targets
from kbert.pipelines.base.text_inputs import as_column, listed
from kbert.pipelines.base.text_model import TextModel, check_vocabulary
from kbert.pipelines.inference.size_batches import BYTES_AT_A_TIME, answers_of_rows
from kbert.text.cached_graph import cached_graph
from kbert.text.sequences.chunks import map_in_chunks
from kbert.text.sequences.windows import (
    Windows,
    WindowTokens,
    check_window_sizes,
    cut_windows,
    lay_out,
)
from kbert.text.wordpiece.offsets import TokenOffsets

# Windows of a batch in `fit`.
TRAINING_ROWS = 32
# The most rows per call of the graph in `predict`. `BYTES_AT_A_TIME` limits their bytes: while a
# text is read, its tokens need about eighty times its bytes.
PREDICTION_ROWS = 64


class WindowedModel(TextBatches, TextModel):
    """Adds windows to a model on token ids: contexts of any length, optionally with a question.

    A subclass has `encoder`, `tokenizer`, `max_sequence_length` and `stride`, and
    `max_question_length`, which is None where there are no questions.
    """

    stride: int
    max_question_length: int | None = None
    chunk_tokens = EVALUATION_TOKENS
    needs_pooler = False
    has_questions = False
    # Settings that graph functions depend on besides the weights; they may change at any time.
    graph_settings: tuple[str, ...] = (
        "max_sequence_length",
        "stride",
        "max_question_length",
        "chunk_tokens",
    )

    @classmethod
    def default_lengths(cls, positions: int) -> dict[str, int]:
        """Returns window sizes for a short encoder: a third is shared, as with a long one.

        Args:
            positions: the most tokens that the encoder takes.
        """
        if positions >= cls.default_sequence_length:
            return super().default_lengths(positions)
        lengths = {"max_sequence_length": positions, "stride": positions // 3}
        return {**lengths, "max_question_length": positions // 6} if cls.has_questions else lengths

    def check_windows(self) -> None:
        """Raises a ValueError if tokenizer or window sizes do not fit the encoder."""
        check_vocabulary(self.tokenizer, self.encoder)
        if self.max_sequence_length > self.encoder.max_sequence_length:
            raise ValueError(
                "`max_sequence_length` must be at most "
                f"{self.encoder.max_sequence_length}, the encoder's positions. Received: "
                f"max_sequence_length={self.max_sequence_length}"
            )
        check_window_sizes(self.max_sequence_length, self.stride, self.max_question_length)

    def windows(self, contexts: Sequence[Any], questions: Sequence[Any] | None = None) -> Any:
        """Tokenizes and cuts n contexts to train on; see `kbert.data.batches.windowed_examples`.

        Args:
            contexts: n str or bytes.
            questions: n str or bytes, or None for a task without questions.
        """
        return window_examples(
            self.tokenizer,
            contexts,
            questions,
            self.max_sequence_length,
            self.stride,
            self.max_question_length or 0,
        )

    def dataset(self, windows: WindowedExamples, targets: Any = None, **kwargs: Any) -> Any:
        """Returns length-bucketed windows; see `kbert.data.batches.dataset.batched_dataset`.

        Args:
            windows: the windows, from `examples`.
            targets: their targets, from `examples`, or None.
            **kwargs: arguments of `batched_dataset`, such as `batch_size`, `batch_tokens`,
                `shuffle` and `seed`.
        """
        return batched_dataset(windows.packed, targets, **kwargs)

    def read_inputs(self, x: Any) -> Any:
        """Reads `x` as raw texts; returns None if it is something else.

        Args:
            x: raw texts in the forms of `fit`, or anything else.
        """
        raise NotImplementedError(f"{type(self).__name__} must say what its texts are")

    def examples(self, inputs: Any, y: Any) -> tuple[WindowedExamples, Any]:
        """Returns windows to train on, and the targets of each.

        Args:
            inputs: n texts, from `read_inputs`.
            y: the targets of each.
        """
        raise NotImplementedError(f"{type(self).__name__} must say what its targets are")

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
        seed: int = 0,
        **kwargs: Any,
    ) -> Any:
        """Runs Keras' `fit`, also on raw texts.

        Args:
            x: raw texts as the task has them, or what Keras' `fit` takes.
            y: the targets of the texts.
            batch_size: windows a batch; 32 by default.
            epochs: passes over the data.
            verbose: 0 is silent, 1 draws a bar, 2 prints a line an epoch; "auto" is 1 as a rule.
            batch_tokens: the most positions of a batch, padding included, instead of `batch_size`.
            validation_data: (x, y) in the same forms, or a dataset of batches.
            shuffle: whether to shuffle, differently in each epoch.
            seed: seed of the shuffling.
            **kwargs: further arguments of Keras' `fit`.

        Returns:
            Keras' history.

        Raises:
            ValueError: texts and targets do not fit each other.
        """
        rows = None if batch_tokens else batch_size or TRAINING_ROWS
        cut = {"batch_size": rows, "batch_tokens": batch_tokens, "shuffle": shuffle, "seed": seed}
        kwargs |= {"epochs": epochs, "verbose": verbose, "validation_data": validation_data}
        return self.fit_texts(x, y, batch_size, cut=cut, shuffle=shuffle, **kwargs)

    def text_batches(self, x: Any, y: Any = None, **cut: Any) -> Any:
        """Returns batches of the windows of raw texts, or None if `x` is something else.

        Args:
            x: raw texts in the forms of `fit`, or anything else.
            y: a target a text.
            **cut: `batch_size` or `batch_tokens`, `shuffle` and `seed`; by default, batches as
                large as evaluation allows.
        """
        inputs = None if isinstance(x, tf.data.Dataset) else self.read_inputs(x)
        if inputs is None:
            return None
        y = as_column(listed(y))
        check_targets(len(inputs), y)
        windows, targets = self.examples(inputs, y)
        cut = cut or {"batch_size": None, "batch_tokens": EVALUATION_TOKENS}
        return self.dataset(windows, targets, **cut)

    def over_windows(
        self,
        offsets: TokenOffsets,
        questions: tf.RaggedTensor | None,
        read: Callable[[tf.Tensor, WindowTokens, Windows], Sequence[tf.Tensor]],
        outputs: Sequence[tf.TensorSpec],
    ) -> list[tf.Tensor]:
        """Runs the model over all windows of B rows, as graph code.

        Args:
            offsets: the tokens of the contexts (B, (tokens)).
            questions: ragged ids (B, (tokens)), or None.
            read: maps the logits, tokens and offsets of some windows to the tensors to keep.
            outputs: specs of those tensors; all windows' are concatenated, in any order.

        Returns:
            A tensor for each of `outputs`.
        """
        contexts = offsets.token_ids
        windows = cut_windows(
            contexts.row_lengths(),
            None if questions is None else questions.row_lengths(),
            self.max_sequence_length,
            self.stride,
            self.max_question_length or 0,
        )

        def run(chosen: tf.Tensor) -> Sequence[tf.Tensor]:
            some = windows.take(chosen)
            tokens = lay_out(some, contexts, questions, self.tokenizer.vocabulary)
            inputs = {
                "token_ids": tokens.token_ids,
                "segment_ids": tokens.segment_ids,
                "padding_mask": tokens.padding_mask,
            }
            return read(self(inputs, training=False), tokens, some)

        return map_in_chunks(run, windows.lengths, self.chunk_tokens, outputs)

    def predict_columns(
        self, function: Callable[..., dict[str, Any]], columns: Sequence[list[Any]]
    ) -> list[dict[str, Any]]:
        """Runs a graph function over rows of strings, in batches of similar length.

        Args:
            function: takes string tensors (B,), one for each column.
            columns: n str or bytes each.

        Returns:
            A dict of NumPy values for each row, in the order of the rows.
        """
        specs = [tf.TensorSpec((None,), tf.string) for _ in columns]
        compiled = self._compiled(function, specs)
        texts = [text_tensor(column) for column in columns]

        def run(rows: np.ndarray) -> dict[str, np.ndarray]:
            found = compiled(*(tf.gather(column, rows) for column in texts))
            return {name: values.numpy() for name, values in found.items()}

        sizes = tf.strings.length(texts[-1]).numpy()
        return answers_of_rows(run, sizes, PREDICTION_ROWS, BYTES_AT_A_TIME)

    def _compiled(self, function: Any, specs: list[tf.TensorSpec]) -> Any:
        """Returns the function as a graph, traced once, and again when a setting has changed."""
        settings = [getattr(self, name) for name in self.graph_settings]
        return cached_graph(self, function, settings, specs)
