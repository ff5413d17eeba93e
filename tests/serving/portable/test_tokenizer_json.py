"""The tokenizer's file: Hugging Face's `tokenizers` makes the ids of kbert's own batches."""

import numpy as np
import pytest
import tensorflow as tf
from tokenizers import Tokenizer

from kbert.pipelines.signatures import model_inputs
from kbert.serving.portable.tokenizer_json import tokenizer_json
from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
from kbert.text.sequences.packing import pack
from kbert.text.vocabulary import ROBERTA_TOKENS, Vocabulary, byte_characters
from kbert.text.wordpiece.wordpiece import WordPiece
from tests.small_pipelines import (
    TOKENIZER,
    VOCABULARY,
    small_question_answerer,
    special_tokenizer,
)

TEXTS = [
    "a good film",
    "",
    "  Very, VERY bad!\t\n",
    "gé 中文 film \U0001f600 goodness",
    "[CLS] [SEP] [MASK] <mask> <s>",
    "film " * 40,
    "x" * 101,
]
TYPED = 4  # the number of the text with special tokens
MERGES = [("f", "i"), ("l", "m"), ("fi", "lm"), ("Ġ", "film"), ("Ġ", "a")]
BYTES = [*byte_characters(), *("".join(merge) for merge in MERGES)]


def byte_level(**settings):
    """A byte-level BPE of five merges."""
    vocabulary = Vocabulary([*ROBERTA_TOKENS.names, *BYTES], ROBERTA_TOKENS)
    return ByteLevelBPE(vocabulary, MERGES, **settings)


TOKENIZERS = {
    "wordpiece": lambda: TOKENIZER,
    "special tokens": special_tokenizer,
    "cased": lambda: WordPiece(VOCABULARY, lowercase=False, handle_cjk=False),
    "byte level": byte_level,
    "byte level special": lambda: byte_level(special_tokens_in_text=True, add_prefix_space=True),
}


def compare(found, ragged, vocabulary):
    """Batches of `tokenizers` beside those of kbert, of ragged ids of one text or two."""
    inputs = model_inputs(pack(ragged, vocabulary, 24))
    np.testing.assert_array_equal([one.ids for one in found], inputs["token_ids"])
    np.testing.assert_array_equal([one.type_ids for one in found], inputs["segment_ids"])
    np.testing.assert_array_equal([one.attention_mask for one in found], inputs["padding_mask"])


@pytest.mark.parametrize("make", TOKENIZERS.values(), ids=TOKENIZERS)
def test_texts_and_pairs_become_the_same_batches(make):
    tokenizer = make()
    vocabulary, special = tokenizer.vocabulary, tokenizer.special_tokens_in_text
    file = Tokenizer.from_str(tokenizer_json(tokenizer, 24))
    ids = tokenizer.tokenize(tf.constant(TEXTS))
    compare(file.encode_batch(TEXTS), [ids], vocabulary)
    # Pairs of which both are cut are apart: see `kbert.text.sequences.packing.pack`.
    seconds = tf.gather(ids, [0] * len(TEXTS))
    pairs = [(text, TEXTS[0]) for text in TEXTS]
    compare(file.encode_batch(pairs), [ids, seconds], vocabulary)
    # What is typed in a text is a special token only where the tokenizer takes it so.
    assert (vocabulary.mask_id in ids[TYPED].numpy()) == special


def test_windows_of_a_long_text_are_those_of_the_reader():
    model = small_question_answerer()
    question, context = "a good film", "the very bad film and the good film of it " * 3
    file = Tokenizer.from_str(tokenizer_json(model.tokenizer, 24, model.stride, True))
    first = file.encode(question, context)
    found = [first, *first.overflowing]
    windows = model.batching.windows([context], [question])
    lengths = np.diff([*windows.packed.starts, windows.packed.tokens])
    assert len(found) == len(lengths) > 2
    assert [sum(one.attention_mask) for one in found] == lengths.tolist()
