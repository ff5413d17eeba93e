"""Training of a translator on raw sentence pairs, and translation of raw sentences."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import pack_examples
from kbert.data.batches.text_tensor import text_tensor
from kbert.data.batches.token_rows import token_rows
from kbert.data.translation.parallel_pipeline import PackedPairs, parallel_dataset
from kbert.models.encoder_task import configured
from kbert.pipelines.base.text_batches import TextBatches, check_targets
from kbert.pipelines.base.text_inputs import (
    checked_texts,
    listed,
    read_columns,
    read_single_texts,
)
from kbert.pipelines.base.text_model import text_specs
from kbert.pipelines.inference.size_batches import size_batches
from kbert.pipelines.replication.replicated_model import ReplicatedModel
from kbert.tasks.base.answers import plain_values
from kbert.tasks.translation.answers import json_answer
from kbert.tasks.translation.head import Translation
from kbert.text.cached_graph import cached_graph
from kbert.text.subword.subword import Subword
from kbert.text.wordpiece.wordpiece import WordPiece

# Positions of a batch, pairs times longest side.
TRAINING_TOKENS = 4096
# Sentences per call of the graph.
_ROWS_AT_A_TIME = 1024
# Settings that a search depends on, besides the weights.
_SEARCH = (
    *("beam_size", "length_penalty", "alpha", "nbest", "length_ratio", "length_extra"),
    "patience",
)


class ParallelTextModel(TextBatches, ReplicatedModel, Translation):
    """Adds raw sentences to a translation model on token ids.

    `fit` and `evaluate` take pairs of them, `translations` and `answers` sentences to translate; a
    subclass implements `translate`, which maps sentences to translations as graph code.
    """

    source_subwords: Subword
    target_subwords: Subword
    bert_tokenizer: WordPiece | None
    translate: Callable[[Any], dict[str, Any]]
    is_cut_by_rows = False
    whole = {"batch_tokens": 1 << 40}

    def pack(self, sources: Any, targets: Any) -> PackedPairs:
        """Tokenizes n sentences and their translations, once for all epochs; see `dataset`.

        Args:
            sources: n str or bytes.
            targets: n str or bytes.

        Raises:
            ValueError: sources and targets differ in number.
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
        """Returns length-bucketed batches of sentence pairs.

        Args:
            pairs: the pairs, from `pack`.
            **kwargs: arguments of `kbert.data.translation.parallel_pipeline.parallel_dataset`.

        Raises:
            ValueError: `bert_states` are given, and the BERT that they come from is trained; or
                sizes do not fit.
        """
        if kwargs.get("bert_states") is not None and getattr(self.transformer, "train_bert", False):
            raise ValueError(
                "`bert_states` must be left out where BERT learns, since its states change with "
                "each update. Received: bert_states, with train_bert=True"
            )
        return parallel_dataset(pairs, **kwargs)

    def compile(self, *args: Any, jit_compile: Any = False, **kwargs: Any) -> None:
        """Prepares the model for training, without XLA, which would recompile for each length.

        Args:
            *args: optimizer, loss and metrics, each the task's own where it is None or left out.
            jit_compile: True for XLA; worthwhile only where all batches have one shape.
            **kwargs: the same by name, and further arguments of Keras' `compile`.
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
        """Runs Keras' `fit`, also on raw sentences.

        Args:
            x: sentences (a list, array, iterator or column of str), a table with `source` and
                `target`, or what Keras' `fit` takes.
            y: their translations; None where a table has them.
            batch_size: rows a batch of token id arrays; sentences are batched by `batch_tokens`.
            epochs: passes over the data.
            verbose: 0 is silent, 1 draws a bar, 2 prints a line an epoch; "auto" is 1 as a rule.
            batch_tokens: the most positions of a batch of sentences, pairs times longest side.
            validation_data: (x, y) in the same forms, or a dataset of batches.
            shuffle: whether to shuffle, differently in each epoch.
            seed: seed of the shuffling.
            **kwargs: further arguments of Keras' `fit`.

        Returns:
            Keras' history.

        Raises:
            ValueError: sentences and translations differ in number, or there are none.
        """
        cut = {"batch_tokens": batch_tokens, "shuffle": shuffle, "seed": seed}
        kwargs |= {"epochs": epochs, "verbose": verbose, "validation_data": validation_data}
        return self.fit_texts(x, y, batch_size, cut=cut, shuffle=shuffle, **kwargs)

    def text_batches(self, x: Any, y: Any = None, **cut: Any) -> Any:
        """Returns batches of raw sentence pairs, or None if `x` is something else.

        Args:
            x: sentences in the forms of `fit`, or anything else.
            y: their translations; None where a table has them.
            **cut: arguments of `dataset`, such as `batch_tokens`, `shuffle` and `seed`.
        """
        if isinstance(x, tf.data.Dataset):
            return None
        if y is None:
            x = read_columns(x, ("source", "target"), ("source",), ("text",))
            if isinstance(x, dict) and set(x) == {"source", "target"}:
                x, y = x["source"], x["target"]
        sources = read_single_texts(x, "source", "text")
        if sources is None:
            return None
        targets = None if y is None else checked_texts("y", listed(y))
        check_targets(len(sources), targets)
        return self.dataset(self.pack(sources, targets), **cut)

    def translation_columns(self, texts: Sequence[Any]) -> dict[str, np.ndarray]:
        """Returns the outputs of `translate` for n texts, in their order; strings are bytes.

        Args:
            texts: n str or bytes. Those of similar length share a call of the graph.

        Raises:
            ValueError: `texts` is a single text, or something else.
        """
        read = read_single_texts(listed(texts), "source", "text")
        if read is None:
            raise ValueError(
                f"`texts` must be a list of str or bytes. Received: a {type(texts).__name__}"
            )
        settings = [getattr(self, name) for name in _SEARCH]
        translate = cached_graph(self, self.translate, settings, text_specs(False))
        sizes = np.array([len(text) for text in read], "int64")
        # Without texts, an empty batch provides the shapes of the outputs.
        batches = size_batches(sizes, _ROWS_AT_A_TIME) or [np.zeros(0, "int64")]
        found = [translate(text_tensor([read[i] for i in rows])) for rows in batches]
        back = np.argsort(np.concatenate(batches), kind="stable")
        return {
            name: np.concatenate([columns[name].numpy() for columns in found])[back]
            for name in found[0]
        }

    def translations(self, texts: Sequence[Any]) -> list[str]:
        """Returns the best translation of each of n texts.

        Args:
            texts: n str or bytes.

        Raises:
            ValueError: `texts` is a single text, or something else.
        """
        return [text.decode() for text in self.translation_columns(texts)["translation"]]

    def answers(self, texts: Sequence[Any]) -> list[dict[str, Any]]:
        """Translates texts, and returns plain Python values.

        Args:
            texts: n str or bytes.

        Returns:
            A dict a text: `translation`, `score`, `nbest` (dicts of `translation` and `score`, the
            best first) and `truncated`, whether the text was longer than the model reads.

        Raises:
            ValueError: `texts` is a single text, or something else.
        """
        found = self.translation_columns(texts)
        return [
            json_answer(plain_values({name: found[name][i] for name in sorted(found)}))
            for i in range(len(found["translation"]))
        ]

    def get_config(self) -> dict[str, Any]:
        serialized = keras.saving.serialize_keras_object
        is_joint = self.target_subwords == self.source_subwords
        return {
            **super().get_config(),
            "source_subwords": serialized(self.source_subwords),
            # Each holds a whole vocabulary: one that both sides share is written once.
            "target_subwords": None if is_joint else serialized(self.target_subwords),
            "bert_tokenizer": serialized(self.bert_tokenizer),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Makes the model of a configuration from `get_config`."""
        names = ("source_subwords", "target_subwords", "bert_tokenizer")
        with configured(cls):
            loaded = {name: keras.saving.deserialize_keras_object(config[name]) for name in names}
            if loaded["target_subwords"] is None:
                loaded["target_subwords"] = loaded["source_subwords"]
            return super().from_config({**config, **loaded})
