"""What trains a translator on raw sentence pairs, and asks it about raw sentences."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.parallel_pipeline import PackedPairs, parallel_dataset, token_rows
from kbert.data.pipeline import pack_examples
from kbert.data.text_tensor import text_tensor
from kbert.pipelines.epoch_teller import told_epochs
from kbert.pipelines.like_sizes import like_sizes
from kbert.pipelines.plain_answers import plain_answer
from kbert.pipelines.signatures import text_specs
from kbert.pipelines.text_inputs import as_list, is_texts
from kbert.tasks.translation import Translation
from kbert.text.subword import Subword
from kbert.text.wordpiece import WordPiece

# Cells of a batch, rows times longest side.
TRAINING_TOKENS = 4096
# Sentences that go through the graph at a time.
_ROWS_AT_A_TIME = 1024
# What a search depends on, beside the weights.
_SEARCH = (
    *("beam_size", "length_penalty", "alpha", "nbest", "length_ratio", "length_extra"),
    "patience",
)


@dataclass(frozen=True)
class _Traced:
    """A graph of `translate`, and the settings that it was traced with."""

    settings: tuple[Any, ...]
    function: Callable[..., dict[str, tf.Tensor]]


class ParallelTextModel(Translation):
    """Adds raw sentences to a translation model on token ids.

    `fit` and `evaluate` take pairs of them, `translations` and `answers` sentences to translate; a
    subclass has `translate`, from sentences to translations as graph code.
    """

    source_subwords: Subword
    target_subwords: Subword
    bert_tokenizer: WordPiece | None
    translate: Callable[[Any], dict[str, Any]]

    def pack(self, sources: Any, targets: Any) -> PackedPairs:
        """Tokenizes n sentences and their translations, once and for all; see `dataset`.

        Args:
            sources: n str or bytes.
            targets: n str or bytes.

        Raises:
            ValueError: the two differ in number.
        """
        if len(sources) != len(targets):
            raise ValueError(
                "`targets` must be as many as `sources`. Received: "
                f"{len(targets)} targets and {len(sources)} sources"
            )
        most = self.transformer.max_sequence_length
        bert = None
        if self.bert_tokenizer is not None:
            positions = self.transformer.bert.max_sequence_length
            bert = pack_examples(self.bert_tokenizer, sources, max_sequence_length=positions)
        return PackedPairs(
            token_rows(self.source_subwords, sources, most),
            token_rows(self.target_subwords, targets, most),
            bert,
        )

    def dataset(self, pairs: PackedPairs, **kwargs: Any) -> tf.data.Dataset:
        """Batches of like length; see `kbert.data.parallel_pipeline.parallel_dataset`."""
        return parallel_dataset(pairs, **kwargs)

    def compile(self, *args: Any, jit_compile: Any = False, **kwargs: Any) -> None:
        """As the task's `compile`, without XLA: it would compile anew for each length of a batch.

        Args:
            *args: as in the task's.
            jit_compile: True for XLA; wise only where all batches have one shape.
            **kwargs: as in the task's.
        """
        super().compile(*args, jit_compile=jit_compile, **kwargs)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        *,
        batch_tokens: int = TRAINING_TOKENS,
        validation_data: Any = None,
        shuffle: bool = True,
        seed: int = 0,
        **kwargs: Any,
    ) -> Any:
        """Keras' `fit`, which also takes raw sentences.

        Args:
            x: sentences (list or array of str), or what Keras' `fit` takes.
            y: their translations.
            batch_size: of arrays of token ids; sentences are batched by `batch_tokens`.
            epochs: passes over the data.
            verbose: as in Keras' `fit`.
            batch_tokens: the most cells, rows times longest side, of a batch of sentences.
            validation_data: (x, y) in the same forms, or a dataset of batches.
            shuffle: whether to shuffle, anew each epoch.
            seed: of the shuffling.
            **kwargs: further arguments of Keras' `fit`.

        Returns:
            Keras' history.

        Raises:
            ValueError: sentences and translations differ in number, or there are none.
        """
        if isinstance(validation_data, tuple):
            held_out = self._batches(*validation_data[:2])
            validation_data = validation_data if held_out is None else held_out
        cut = {"batch_tokens": batch_tokens, "shuffle": shuffle, "seed": seed}
        dataset = self._batches(x, y, **cut)
        kwargs |= {"epochs": epochs, "verbose": verbose, "validation_data": validation_data}
        callbacks = told_epochs(x if dataset is None else dataset, kwargs.pop("callbacks", None))
        kwargs["callbacks"] = callbacks
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
        """Keras' `evaluate`, teacher-forced, which also takes raw sentences; see `fit`."""
        dataset = self._batches(x, y)
        if dataset is None:
            return super().evaluate(x, y, batch_size, verbose, **kwargs)
        return super().evaluate(dataset, verbose=verbose, **kwargs)

    def translation_columns(self, texts: Sequence[Any]) -> dict[str, np.ndarray]:
        """The outputs of `translate` for n texts, in their order; strings are bytes.

        Args:
            texts: n str or bytes. Those of like length go through the graph together.
        """
        translate = self._traced()
        sizes = np.array([len(text) for text in texts], "int64")
        # An empty batch, where there is no other, tells the shapes of the outputs.
        batches = like_sizes(sizes, _ROWS_AT_A_TIME) or [np.zeros(0, "int64")]
        found = [translate(text_tensor([texts[i] for i in rows])) for rows in batches]
        back = np.argsort(np.concatenate(batches), kind="stable")
        return {
            name: np.concatenate([columns[name].numpy() for columns in found])[back]
            for name in found[0]
        }

    def translations(self, texts: Sequence[Any]) -> list[str]:
        """The best translation of each of n texts.

        Args:
            texts: n str or bytes.
        """
        return [text.decode() for text in self.translation_columns(texts)["translation"]]

    def answers(self, texts: Sequence[Any]) -> list[dict[str, Any]]:
        """What people want to know of each text.

        Args:
            texts: n str or bytes.

        Returns:
            A dict a text: `translation`, `score`, `nbest` (dicts of `translation` and `score`, the
            best first) and `truncated`, whether the text was longer than the model reads.
        """
        found = self.translation_columns(texts)
        return [
            plain_answer({name: found[name][i] for name in sorted(found)})
            for i in range(len(texts))
        ]

    def _traced(self) -> Callable[..., dict[str, tf.Tensor]]:
        """`translate` as a graph, which is made anew only where settings have changed."""
        settings = tuple(getattr(self, name) for name in _SEARCH)
        traced: _Traced | None = getattr(self, "_graph_of_translate", None)
        if traced is None or traced.settings != settings:
            function = tf.function(self.translate, input_signature=text_specs(False))
            traced = self._graph_of_translate = _Traced(settings, function)
        return traced.function

    def _batches(self, x: Any, y: Any = None, **cut: Any) -> Any:
        """Batches of raw sentence pairs, or None if `x` is something else."""
        if isinstance(x, str | bytes):
            raise ValueError(f"`x` must be a list of texts. Received: x={x[:80]!r}, a single one")
        if isinstance(x, tf.data.Dataset) or not is_texts(x):
            return None
        if y is None:
            raise ValueError("`y` must be given with texts. Received: y=None")
        sources, targets = as_list(x), as_list(y)
        if not len(sources):
            raise ValueError("`x` must hold at least one text. Received: none")
        if len(sources) != len(targets):
            raise ValueError(
                f"`y` must have one entry a text. Received: {len(targets)} for "
                f"{len(sources)} texts"
            )
        return self.dataset(self.pack(sources, targets), **cut)
