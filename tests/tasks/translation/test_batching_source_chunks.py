"""Sources as chunks: which sizes they have, and which rows are taken."""

import numpy as np
import tensorflow as tf

from kbert.models.bert import Bert
from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
from kbert.tasks.translation.batching import SourceChunks
from kbert.tasks.translation.model import Translator
from tests.small_pipelines import TOKENIZER
from tests.small_translator import small_subwords, small_translator


def fused_translator():
    subwords = small_subwords()
    bert = Bert(len(TOKENIZER.vocabulary), 8, 1, 2, 16, max_sequence_length=20)
    transformer = BertFusedTransformer(len(subwords), 16, 1, 1, 2, 32, 40, bert=bert)
    return Translator(transformer, subwords, subwords, TOKENIZER)


def test_a_text_that_is_long_to_bert_alone_counts_as_long():
    model = fused_translator()
    # One unknown piece to the translator, a token a character to BERT.
    texts = tf.constant(["the old man", "\u4e2d\u56fd" * 6])
    _, lengths, _ = model.source_inputs(texts)
    chunks = SourceChunks(model, texts)
    beside, sizes = chunks.beside, chunks.sizes
    tokens = beside["bert_padding_mask"].numpy().sum(axis=1)
    assert lengths[1] < lengths[0] and tokens[1] == 14
    assert sizes.numpy().tolist() == [max(int(lengths[0]), tokens[0]), 14]
    alone = SourceChunks(small_translator(), texts)
    assert alone.beside == {} and alone.sizes is alone.lengths


def test_a_text_that_bert_alone_cannot_read_whole_is_truncated():
    # 18 of them and two special tokens are BERT's 20 positions.
    texts = tf.constant(["the old man", "\u4e2d" * 18, "\u4e2d" * 19])
    model = fused_translator()
    assert not model.source_inputs(texts)[2].numpy().any()
    assert SourceChunks(model, texts).truncated.numpy().tolist() == [False, False, True]


def test_a_text_of_white_space_is_an_empty_one():
    model = small_translator()
    texts = tf.constant(["", " ", "\t\t", "\r\n", "\u3000 \u00a0", "\t\ta"])
    chunks = SourceChunks(model, texts)
    assert chunks.lengths.numpy().tolist()[:5] == [1] * 5 and chunks.lengths[5] > 1
    assert {row["translation"] for row in model.answers(texts.numpy().tolist()[:5])} == {""}


def test_rows_are_taken_as_wide_as_the_longest():
    model = small_translator()
    chunks = SourceChunks(model, tf.constant(["the old man", "", "a ball"]))
    counts = chunks.lengths.numpy()
    assert counts[1] == 1 and counts[0] > counts[2]  # the end token alone
    some, lengths = chunks.take(tf.constant([2, 1]))
    assert lengths.numpy().tolist() == [counts[2], 1]
    for name, values in some.items():
        whole = chunks.inputs[name].numpy()
        np.testing.assert_array_equal(values, whole[[2, 1], : counts[2]])
    (found,) = chunks.map(
        lambda rows: [tf.gather(chunks.lengths, rows)], [tf.TensorSpec((None,), tf.int32)]
    )
    np.testing.assert_array_equal(found.numpy()[chunks.places], counts)
