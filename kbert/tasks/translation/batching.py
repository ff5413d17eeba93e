"""Raw sentences for a translator: pairs in batches to train on, and sources in chunks to translate.

Shapes: B rows, k rows of one chunk.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from kbert.data.batches.packed_examples import pack_examples, token_rows
from kbert.data.translation.parallel_pipeline import PackedPairs, parallel_dataset
from kbert.pipelines.batching import Batching, check_targets
from kbert.pipelines.text_inputs import (
    checked_texts,
    listed,
    read_columns,
    read_single_texts,
)
from kbert.tasks.translation.loop_weights import loop_weights
from kbert.text.graph_functions import map_in_chunks, places_in_chunks

# Positions of a batch, pairs times longest side.
TRAINING_TOKENS = 4096


class PairBatching(Batching):
    """Batches of sentences with their translations; `predict` translates sentences."""

    is_cut_by_rows = False
    whole = {"batch_tokens": 1 << 40}

    def training_cut(self, batch_size: int | None, batch_tokens: int | None) -> dict[str, Any]:
        rows = {} if batch_size is None else {"batch_size": batch_size}  # refused with texts
        return {"batch_tokens": batch_tokens or TRAINING_TOKENS, **rows}

    def pack(self, sources: Any, targets: Any) -> PackedPairs:
        """Tokenizes n sentences and their translations, str or bytes, once for all epochs.

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
        """Returns length-bucketed batches of pairs from `pack`, as `parallel_dataset` makes them.

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
        if isinstance(x, tf.data.Dataset):
            return None
        if y is None:
            x = read_columns(x, ("source", "target"), ("source",), ("text",))
            if isinstance(x, dict) and set(x) == {"source", "target"}:
                x, y = x["source"], x["target"]
        sources = read_single_texts(x, "source", "text")
        if sources is None:
            return None
        if "batch_size" in cut:
            raise ValueError(
                "`batch_size` must be None for pairs of sentences, which are batched by "
                f"`batch_tokens`. Received: batch_size={cut['batch_size']}"
            )
        targets = None if y is None else checked_texts("y", listed(y))
        check_targets(len(sources), targets)
        return self.dataset(self.pack(sources, targets), **cut)

    def predict(self, x: Any, **kwargs: Any) -> Any:
        """Translates texts to a list of str, in their order, or predicts logits for token ids.

        Raises:
            ValueError: `x` is a single text.
        """
        x = self.read(x, kwargs.get("batch_size"))
        texts = read_single_texts(x, "source", "text")
        if texts is None:
            return self.model.predict_numbers(x, **kwargs)
        return self.model.translations(texts)


# Positions of the source, rows times longest row, of one chunk.
_CHUNK_CELLS = 2048
_WHITE_SPACE = r"[\s\p{Z}]*"
# Chunks that are translated in parallel.
_CHUNKS_AT_ONCE = 2


class SourceChunks:
    """Raw strings (B,) as inputs of a translator's encoder; texts of similar length are together.

    One of white space alone is an empty one.

    Attributes:
        inputs: the inputs of the transformer's `encode`.
        beside: the inputs of a fused model's BERT; otherwise empty.
        lengths: int32 (B,), pieces of each source, the end token included.
        truncated: bool (B,), whether a text was truncated, for the BERT of a fused model too.
        sizes: int32 (B,), the longer of both tokenizations where there is a BERT: a text of few
            pieces can have many tokens for it.
    """

    def __init__(self, translator: Any, text: Any) -> None:
        self._translator = translator
        # Not all rules of SentencePiece take tabs and line breaks for blanks.
        text = tf.where(tf.strings.regex_full_match(text, _WHITE_SPACE), "", text)
        self.inputs, self.lengths, self.truncated = translator.source_inputs(text)
        self.sizes = self.lengths
        self.beside: dict[str, Any] = {}
        if translator.bert_tokenizer is not None:
            self.beside, is_cut = translator.bert_inputs(text)
            self.truncated |= is_cut
            self.sizes = tf.maximum(self.lengths, _counts(self.beside["bert_padding_mask"]))

    def take(self, chosen: tf.Tensor) -> tuple[dict[str, Any], tf.Tensor]:
        """Returns the rows `chosen`, int (k,), as wide as the longest, and their lengths."""
        counts = tf.gather(self.lengths, chosen)
        longest = tf.reduce_max(counts)
        some = {key: tf.gather(value[:, :longest], chosen) for key, value in self.inputs.items()}
        if self.beside:
            longest = tf.reduce_max(tf.gather(_counts(self.beside["bert_padding_mask"]), chosen))
            some |= {k: tf.gather(value[:, :longest], chosen) for k, value in self.beside.items()}
        return some, counts

    def map(
        self, run: Callable[[Any], Sequence[tf.Tensor]], specs: list[tf.TensorSpec]
    ) -> list[tf.Tensor]:
        """Maps rows int (k,) to tensors, which are concatenated in the order of the chunks."""
        with loop_weights(self._translator.transformer):
            return map_in_chunks(run, self.sizes, _CHUNK_CELLS, specs, _CHUNKS_AT_ONCE)

    @property
    def places(self) -> tf.Tensor:
        """Int (B,), the place of each row in the outputs of `map`."""
        return places_in_chunks(self.sizes)


def _counts(mask: Any) -> tf.Tensor:
    """Returns the number of real tokens of each row, int32 (B,)."""
    return tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)
