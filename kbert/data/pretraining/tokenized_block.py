"""The documents of a block as sentences of token ids."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import tensorflow as tf

from kbert.data.batches.packed_examples import text_tensor
from kbert.data.pretraining.corpus import Block
from kbert.text.sentences import joined_lines, split_sentences
from kbert.text.wordpiece.wordpiece import WordPiece


@dataclass(frozen=True)
class TokenizedBlock:
    """Token ids of a block, without special tokens.

    Attributes:
        token_ids: int32, all sentences one after the other.
        sentences: int64 (s + 1,): the tokens of sentence i are `sentences[i]` to
            `sentences[i + 1]`; none is empty.
        documents: int64 (d + 1,): the sentences of document j are `documents[j]` to
            `documents[j + 1]`; none is empty.
    """

    token_ids: np.ndarray
    sentences: np.ndarray
    documents: np.ndarray

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


class BlockTokenizer:
    """Splits blocks into sentences, and these into tokens.

    Args:
        tokenizer: the tokenizer. A "[MASK]" or "[SEP]" in a block is read as plain text, even if
            this tokenizer reads special tokens in texts, as for models that fill masks.
    """

    def __init__(self, tokenizer: WordPiece) -> None:
        self.tokenizer = _of_plain_text(tokenizer)
        self._tokenize = _compiled(self.tokenizer)

    def __call__(self, block: Block) -> TokenizedBlock:
        """Tokenizes a block. Sentences and documents without tokens are left out."""
        documents = [split_sentences(joined_lines(text)) for text in block.documents]
        counts = np.array([len(document) for document in documents], "int64")
        texts = [sentence for document in documents for sentence in document]
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
def _of_plain_text(tokenizer: WordPiece) -> WordPiece:
    if not tokenizer.special_tokens_in_text:
        return tokenizer
    return WordPiece.from_config({**tokenizer.get_config(), "special_tokens_in_text": False})


# A run evaluates held-out text repeatedly: one graph a tokenizer, not one each time.
@lru_cache(maxsize=2)
def _compiled(tokenizer: WordPiece) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    """Compiles a map from texts (B,) to their concatenated token ids, and each text's offsets."""

    def tokenize(texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        # Not on a GPU, which would have to copy all of it there and back.
        with tf.device("CPU:0"):
            found = tokenizer.tokenize(texts)
            return found.values, found.row_splits

    signature = [tf.TensorSpec((None,), tf.string)]
    return tf.function(tokenize, autograph=False, input_signature=signature)
