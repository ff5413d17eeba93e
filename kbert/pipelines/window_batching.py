"""Batches of long raw texts, cut into windows, and graph code that runs a model over them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.mixtures import Columns
from kbert.data.batches.packed_examples import text_tensor
from kbert.data.batches.plans import BYTES_AT_A_TIME, answers_of_rows
from kbert.data.batches.windowed_examples import WindowedExamples, window_examples
from kbert.optimization.steps import adapter_states
from kbert.pipelines.batching import (
    EVALUATION_TOKENS,
    Batching,
    check_length,
    check_targets,
    check_vocabulary,
)
from kbert.pipelines.inference import map_side_by_side
from kbert.pipelines.signatures import model_inputs
from kbert.pipelines.text_inputs import as_column, listed
from kbert.text.graph_functions import cached_graph
from kbert.text.sequences.packing import (
    Windows,
    WindowTokens,
    check_window_sizes,
    cut_windows,
    lay_out,
)
from kbert.text.tokenizer import TokenOffsets

# The most rows per call of the graph in `predict`. `BYTES_AT_A_TIME` limits their bytes: while a
# text is read, its tokens need about eighty times its bytes.
PREDICTION_ROWS = 64


class WindowBatching(Batching):
    """Windows of contexts of any length, optionally with a question, for training and inference.

    The model has `encoder`, `tokenizer`, `max_sequence_length` and `stride`; with questions also
    `max_question_length`, and a class attribute `has_questions`. For training it has `read_inputs`,
    which reads raw texts, and `examples`, which makes windows and targets of them; for inference
    `text_columns`, which reads the columns of strings that the first function of its `signatures`
    takes. `graph_settings` are attributes that the function depends on besides weights and windows.
    """

    # Positions that the model reads at a time: enough for its products, and several fit beside it.
    chunk_tokens = 1024

    @staticmethod
    def default_lengths(model_class: Any, positions: int) -> dict[str, int]:
        """Returns window sizes for a short encoder: a third is shared, as with a long one."""
        if positions >= model_class.default_sequence_length:
            return Batching.default_lengths(model_class, positions)
        lengths = {"max_sequence_length": positions, "stride": positions // 3}
        if not model_class.has_questions:
            return lengths
        return {**lengths, "max_question_length": positions // 6}

    @property
    def max_question_length(self) -> int | None:
        """The most tokens of a question; None where there are none."""
        return self.model.max_question_length if self.model.has_questions else None

    def check(self) -> None:
        """Raises a ValueError if tokenizer or window sizes do not fit the encoder."""
        model = self.model
        check_vocabulary(model.tokenizer, model.encoder)
        check_length(model)
        check_window_sizes(
            model.max_sequence_length,
            model.stride,
            self.max_question_length,
            model.tokenizer.vocabulary.special_tokens.separators,
        )

    def windows(
        self, contexts: Sequence[Any], questions: Sequence[Any] | None = None
    ) -> WindowedExamples:
        """Tokenizes and cuts n contexts to train on; see `kbert.data.batches.windowed_examples`."""
        return window_examples(
            self.model.tokenizer,
            contexts,
            questions,
            self.model.max_sequence_length,
            self.model.stride,
            self.max_question_length or 0,
        )

    def as_columns(self, packed: WindowedExamples, targets: Any) -> Columns:
        """Returns windows, from `windows`, and their targets, as arrays."""
        return Columns(packed.packed, targets)

    def text_batches(self, x: Any, y: Any = None, **cut: Any) -> Any:
        inputs = None if isinstance(x, tf.data.Dataset) else self.model.read_inputs(x)
        if inputs is None:
            return None
        cut = cut or {"batch_size": None, "batch_tokens": EVALUATION_TOKENS}
        return self.dataset(*self._examples(inputs, y), **cut)

    def training_examples(self, x: Any, y: Any) -> tuple[Any, Any]:
        inputs = self.model.read_inputs(listed(x))
        if inputs is None:
            raise ValueError(f"`x` must be texts. Received: {type(x).__name__}")
        return self._examples(inputs, y)

    def _examples(self, inputs: Any, y: Any) -> tuple[WindowedExamples, Any]:
        y = as_column(listed(y))
        check_targets(len(inputs), y)
        found: tuple[WindowedExamples, Any] = self.model.examples(inputs, y)
        return found

    def predict(self, x: Any, **kwargs: Any) -> Any:
        """Answers texts in their order with the first signature, or predicts token ids.

        For each text there is a dict of what the signature's function returns, as NumPy values.
        """
        rows = kwargs.get("batch_size")
        x = self.read(x, rows)
        columns = self.model.text_columns(x)
        if columns is None:
            return self.model.predict_numbers(x, **kwargs)
        function = self.model.signatures()["serving_default"][0]
        return self.predict_columns(function, columns, rows or PREDICTION_ROWS)

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
            outputs: specs of those tensors, which are returned: all windows', in any order.
        """
        contexts = offsets.token_ids
        windows = cut_windows(
            contexts.row_lengths(),
            None if questions is None else questions.row_lengths(),
            self.model.max_sequence_length,
            self.model.stride,
            self.max_question_length or 0,
            self.model.tokenizer.vocabulary.special_tokens.separators,
        )

        def run(chosen: tf.Tensor) -> Sequence[tf.Tensor]:
            some = windows.take(chosen)
            tokens = lay_out(some, contexts, questions, self.model.tokenizer.vocabulary)
            return read(self.model(model_inputs(tokens), training=False), tokens, some)

        return map_side_by_side(run, windows.lengths, self.chunk_tokens, outputs)

    def predict_columns(
        self,
        function: Callable[..., dict[str, Any]],
        columns: Sequence[list[Any]],
        most_rows: int = PREDICTION_ROWS,
    ) -> list[dict[str, Any]]:
        """Runs a graph function over rows of strings, in batches of similar length.

        The function takes string tensors (B,), one for each column. Each row, in their order, has a
        dict of NumPy values.
        """
        specs = [tf.TensorSpec((None,), tf.string) for _ in columns]
        compiled = self._compiled(function, specs)
        texts = [text_tensor(column) for column in columns]

        def run(rows: np.ndarray) -> dict[str, np.ndarray]:
            found = compiled(*(tf.gather(column, rows) for column in texts))
            return {name: values.numpy() for name, values in found.items()}

        sizes = tf.strings.length(texts[-1]).numpy()
        return answers_of_rows(run, sizes, most_rows, BYTES_AT_A_TIME)

    def _compiled(self, function: Any, specs: list[tf.TensorSpec]) -> Any:
        """Returns the function as a graph, traced once, and again when a setting has changed."""
        names = ("max_sequence_length", "stride", *self.model.graph_settings)
        settings = [getattr(self.model, name) for name in names]
        settings += [self.max_question_length, self.chunk_tokens]
        settings += adapter_states(self.model)
        return cached_graph(self.model, function, settings, specs)
