"""Batches of raw sentence pairs for a translator."""

from typing import Any

import tensorflow as tf

from kbert.data.batches.packed_examples import pack_examples, token_rows
from kbert.data.translation.parallel_pipeline import PackedPairs, parallel_dataset
from kbert.pipelines.base.batching import Batching, check_targets
from kbert.pipelines.base.text_inputs import (
    checked_texts,
    listed,
    read_columns,
    read_single_texts,
)

# Positions of a batch, pairs times longest side.
TRAINING_TOKENS = 4096


class PairBatching(Batching):
    """Batches of sentences with their translations; `predict` translates sentences."""

    is_cut_by_rows = False
    whole = {"batch_tokens": 1 << 40}

    def training_cut(self, batch_size: int | None, batch_tokens: int | None) -> dict[str, Any]:
        """Returns the options of `dataset` for `fit`'s sizes of a batch."""
        return {"batch_tokens": batch_tokens or TRAINING_TOKENS}

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
        model = self.model
        most = model.transformer.max_sequence_length
        bert = None
        if model.bert_tokenizer is not None:
            positions = model.transformer.bert.max_sequence_length
            bert = pack_examples(model.bert_tokenizer, sources, max_sequence_length=positions)
        return PackedPairs(
            token_rows(model.source_subwords, sources, most),
            token_rows(model.target_subwords, targets, most),
            bert,
        )

    def dataset(self, packed: PackedPairs, targets: Any = None, **kwargs: Any) -> tf.data.Dataset:
        """Returns length-bucketed batches of sentence pairs.

        Args:
            packed: the pairs, from `pack`.
            targets: None; the pairs have them.
            **kwargs: arguments of `kbert.data.translation.parallel_pipeline.parallel_dataset`.

        Raises:
            ValueError: `bert_states` are given, and the BERT that they come from is trained; or
                sizes do not fit.
        """
        learns = getattr(self.model.transformer, "train_bert", False)
        if learns and kwargs.get("bert_states") is not None:
            raise ValueError(
                "`bert_states` must be left out where BERT learns, since its states change with "
                "each update. Received: bert_states, with train_bert=True"
            )
        return parallel_dataset(packed, **kwargs)

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

    def predict(self, x: Any, **kwargs: Any) -> Any:
        """Translates texts in their order, or predicts token ids.

        Args:
            x: texts; or what Keras' `predict` takes, for logits.
            **kwargs: arguments of Keras' `predict`; not used for texts.

        Returns:
            A list of str for texts.

        Raises:
            ValueError: `x` is a single text.
        """
        x = listed(x)
        texts = read_single_texts(x, "source", "text")
        if texts is None:
            return self.model.predict_numbers(x, **kwargs)
        return self.model.translations(texts)
