"""Examples to pretrain on, from a block of a corpus: `[CLS] a [SEP] b [SEP]` or `[CLS] a [SEP]`.

A block is split into sentences of token ids, and these make examples. Source: Devlin et al. 2019,
"BERT", section 3.1 and appendix A.2; google-research/bert `create_pretraining_data.py`. Tokens are
masked later, see `kbert.text.sequences.masking`.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.packed_examples import text_tensor
from kbert.data.pretraining.corpus import Block
from kbert.data.pretraining.sentence_chunks import (
    Target,
    full_sentences,
    paired_chunks,
    single_chunks,
)
from kbert.text.sentences import joined_lines, split_sentences
from kbert.text.sequences.stateless_random import row_seeds
from kbert.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class TokenizedBlock:
    """Token ids of a block, without special tokens. No sentence and no document is empty."""

    token_ids: np.ndarray  # int32, all sentences one after the other
    sentences: np.ndarray  # int64 (s + 1,), offsets of sentences among the tokens, and the end
    documents: np.ndarray  # int64 (d + 1,), offsets of documents among the sentences, likewise

    def with_sentences_of(self, most: int) -> "TokenizedBlock":
        """Returns the block with sentences above `most` tokens cut into parts of similar size."""
        lengths = np.diff(self.sentences)
        parts = -(-lengths // most)
        if (parts <= 1).all():
            return self
        first = np.cumsum(parts) - parts  # number of each sentence's first part
        part = np.arange(parts.sum()) - np.repeat(first, parts)
        begin = np.repeat(self.sentences[:-1], parts)
        begin = begin + part * np.repeat(lengths, parts) // np.repeat(parts, parts)
        sentences = np.append(begin, self.sentences[-1])
        documents = np.append(first, parts.sum())[self.documents]
        return TokenizedBlock(self.token_ids, sentences, documents)

    def with_ends_of_documents(self, separator: int) -> "TokenizedBlock":
        """Returns the block with a separator, of this id, after the last sentence of a document.

        The last document has none.
        """
        ends = self.documents[1:-1]  # the sentence after each
        token_ids = np.insert(self.token_ids, self.sentences[ends], separator)
        more = np.searchsorted(ends, np.arange(len(self.sentences)), side="right")
        return TokenizedBlock(token_ids, self.sentences + more, self.documents)


class BlockTokenizer:
    """Splits blocks into sentences, and these into tokens.

    A "[MASK]" or "[SEP]" in a block is read as plain text, even if the tokenizer reads special
    tokens in texts, as for models that fill masks.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer: Tokenizer = _of_plain_text(tokenizer)
        self._tokenize = _compiled(self.tokenizer)

    def __call__(self, block: Block) -> TokenizedBlock:
        """Tokenizes a block. Sentences and documents without tokens are left out."""
        documents = [split_sentences(joined_lines(text)) for text in block.documents]
        counts = np.array([len(document) for document in documents], "int64")
        # In running text a space precedes a sentence, which tokens of bytes hold.
        space = " " if self.tokenizer.vocabulary.special_tokens.byte_level else ""
        texts = [
            space + sentence if number else sentence
            for document in documents
            for number, sentence in enumerate(document)
        ]
        if not texts:
            return TokenizedBlock(np.zeros(0, "int32"), np.zeros(1, "int64"), np.zeros(1, "int64"))
        with tf.device("CPU:0"):
            values, splits = (part.numpy() for part in self._tokenize(text_tensor(texts)))
        has_tokens = np.diff(splits) > 0
        before = np.concatenate([[0], np.cumsum(has_tokens)])
        documents_end = before[np.cumsum(counts)]
        return TokenizedBlock(
            values,
            np.concatenate([[0], splits[1:][has_tokens]]),
            np.unique(np.concatenate([[0], documents_end])),
        )


@lru_cache(maxsize=2)  # its tables take half a second to build
def _of_plain_text(tokenizer: Any) -> Any:
    if not tokenizer.special_tokens_in_text:
        return tokenizer
    return type(tokenizer).from_config({**tokenizer.get_config(), "special_tokens_in_text": False})


# A run evaluates held-out text repeatedly: one graph a tokenizer, not one each time.
@lru_cache(maxsize=2)
def _compiled(tokenizer: Any) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    """Compiles a map from texts (B,) to their concatenated token ids, and each text's offsets."""

    def tokenize(texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # Not on a GPU, which would have to copy all of it there and back.
        with tf.device("CPU:0"):
            found = tokenizer.tokenize(texts)
            return found.values, found.row_splits

    signature = [tf.TensorSpec((None,), tf.string)]
    return tf.function(tokenize, autograph=False, input_signature=signature)


@dataclass(frozen=True)
class PretrainingExamples:
    """Examples as token ids, one after the other, without padding."""

    token_ids: np.ndarray  # int32 (tokens of all examples), special tokens included
    lengths: np.ndarray  # int32 (n,), tokens of each example
    # int32 (n,), how many of these are `[CLS] a [SEP]`, with the segment id 0
    first_lengths: np.ndarray
    # int32 (n,), 1 where b does not follow a; 0 where it does, or without b
    is_random_next: np.ndarray
    seeds: np.ndarray  # int64 (n,), a seed of each example, for masking

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def _starts(self) -> np.ndarray:
        return np.cumsum(self.lengths, dtype="int64") - self.lengths

    def select(self, rows: np.ndarray | slice) -> "PretrainingExamples":
        """Returns some of the examples, by their indices (k,) or a slice."""
        columns = {name: getattr(self, name)[rows] for name in _OF_EXAMPLES}
        cells = _ranges(self._starts[rows], columns["lengths"])
        return PretrainingExamples(self.token_ids[cells], **columns)

    @staticmethod
    def join(parts: Sequence["PretrainingExamples"]) -> "PretrainingExamples":
        """Concatenates examples; at least one part."""
        names = [field.name for field in fields(PretrainingExamples)]
        columns = ([getattr(part, name) for part in parts] for name in names)
        return PretrainingExamples(*(np.concatenate(column) for column in columns))


FULL_SENTENCES = "full_sentences"
PACKINGS = ("documents", FULL_SENTENCES)
_OF_EXAMPLES = ("lengths", "first_lengths", "is_random_next", "seeds")


class ExampleMaker:
    """Makes examples from blocks.

    They are a function of the block, the seed and the epoch, not of other blocks, their order or
    the number of workers.

    A pair that is too long is cut as in the original: the longer text loses a token at its
    beginning or its end, at random, until both fit. A sentence that is too long for an example
    counts as several.

    Args:
        max_sequence_length: the most tokens of an example, special ones included.
        short_share: the share of examples that are shorter, by a random number of tokens.
        next_sentence: whether an example has two texts, of which the second follows the first in
            half of the examples; otherwise it has one.
        packing: of examples of one text, "documents": any tokens of one document; or
            "full_sentences": whole sentences, over the ends of documents, with a separator there.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_sequence_length: int = 128,
        short_share: float = 0.1,
        next_sentence: bool = True,
        packing: str = PACKINGS[0],
    ) -> None:
        if packing not in PACKINGS or (next_sentence and packing != PACKINGS[0]):
            wanted = PACKINGS[:1] if next_sentence else PACKINGS
            raise ValueError(
                f"`packing` must be {' or '.join(wanted)} with next_sentence={next_sentence}. "
                f"Received: packing={packing!r}"
            )
        if max_sequence_length < 5:
            raise ValueError(
                "`max_sequence_length` must be at least 5, two tokens and three special ones. "
                f"Received: max_sequence_length={max_sequence_length}"
            )
        if not 0.0 <= short_share <= 1.0:
            raise ValueError(
                f"`short_share` must be from 0 to 1. Received: short_share={short_share}"
            )
        if next_sentence and not tokenizer.vocabulary.special_tokens.has_segments:
            raise ValueError(
                "`next_sentence` must be False with a tokenizer whose pairs have no segments, as "
                f"that of RoBERTa. Received: next_sentence={next_sentence}"
            )
        self.max_sequence_length = max_sequence_length
        self.short_share = short_share
        self.next_sentence = next_sentence
        self.packing = packing
        self.vocabulary = tokenizer.vocabulary
        self.tokenize = BlockTokenizer(tokenizer)

    def make(self, block: Block, seed: int, epoch: int) -> PretrainingExamples:
        """Makes the examples of a block, others for each seed and each epoch."""
        return self.make_from_tokens(self.tokenize(block), seed, epoch, block.run, block.number)

    def make_from_tokens(self, block: TokenizedBlock, *numbers: int) -> PretrainingExamples:
        """Makes the examples of a block; `numbers`, at least 0, seed everything random."""
        room = self.max_sequence_length - (3 if self.next_sentence else 2)
        if self.packing == FULL_SENTENCES:
            block = block.with_sentences_of(room - 1)  # and a separator
            block = block.with_ends_of_documents(self.vocabulary.sep_id)
        else:
            block = block.with_sentences_of(room)
        sentences, documents = block.sentences.tolist(), block.documents.tolist()
        # Python's generator is the same in all versions, and drawing one at a time costs little.
        uniform = random.Random("kbert examples " + " ".join(map(str, numbers))).random
        target = Target(room, self.short_share, uniform)
        if self.next_sentence:
            chunks = list(paired_chunks(sentences, documents, target, uniform))
        elif self.packing == FULL_SENTENCES:
            chunks = list(full_sentences(sentences, target))
        else:
            chunks = list(single_chunks(sentences, documents, target))
        places = np.array(chunks, "int64").reshape(-1, 5)
        begins, ends = _cut_to_fit(places[:, [0, 2]], places[:, [1, 3]], room, numbers)
        lengths = ends - begins
        special = [self.vocabulary.cls_id] + [self.vocabulary.sep_id] * (1 + self.next_sentence)
        specials = np.tile(np.array(special, "int32"), (len(chunks), 1))
        token_ids = _laid_out(block.token_ids, begins, lengths, specials)
        counts = lengths + [2, 1] if self.next_sentence else lengths + [2, 0]
        return PretrainingExamples(
            token_ids,
            counts.sum(axis=1).astype("int32"),
            counts[:, 0].astype("int32"),
            places[:, 4].astype("int32"),
            row_seeds(*numbers, count=len(chunks)),
        )


def _cut_to_fit(
    begins: np.ndarray, ends: np.ndarray, room: int, numbers: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Truncates pairs that are too long at both ends; arguments and results are int64 (n, 2)."""
    full = ends - begins
    # `_truncate_seq_pair` in closed form, as in kbert.text.sequences.packing.
    first = np.minimum(full[:, 0], np.maximum(room - full[:, 1], (room + 1) // 2))
    kept = np.stack([first, np.minimum(full[:, 1], room - first)], axis=1)
    cut = full - kept
    off_front = np.random.default_rng((*numbers, 1)).binomial(cut, 0.5)
    return begins + off_front, ends - (cut - off_front)


def _laid_out(
    tokens: np.ndarray, begins: np.ndarray, lengths: np.ndarray, specials: np.ndarray
) -> np.ndarray:
    """Interleaves special tokens and texts, all examples one after the other."""
    texts = specials.shape[1] - 1
    pieces = np.ones((len(specials), 2 * texts + 1), "int64")  # tokens of each special or text
    pieces[:, 1::2] = lengths[:, :texts]
    starts = np.empty_like(pieces)  # offset of each in the block's tokens and, behind, the specials
    starts[:, 1::2] = begins[:, :texts]
    starts[:, 0::2] = len(tokens) + np.arange(specials.size).reshape(specials.shape)
    found = np.concatenate([tokens, specials.ravel()])
    return found[_ranges(starts.ravel(), pieces.ravel())].astype("int32", copy=False)


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Concatenates the ranges `[start, start + length)`."""
    before = np.cumsum(lengths, dtype="int64") - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())
