"""The one shape of a translation's batches on a TPU."""

import pytest

from kbert.data.translation.parallel_batches import Bucket
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.translation.inputs import train_buckets, translation_bucket


def config(**values):
    return TranslationConfig(train="x.tsv", output="o", **values)


def test_by_hand():
    # 127 pieces and the end: 128; 16384 / 128 rows. 20 and the end: 24; 1000 // 24 = 41, then 40.
    found = translation_bucket(config(max_length=127, batch_tokens=16384))
    assert found == Bucket(128, 128)
    assert translation_bucket(config(max_length=20, batch_tokens=1000)) == Bucket(40, 24)
    assert translation_bucket(config(max_length=20, batch_tokens=50)) == Bucket(2, 24)


def test_no_more_than_the_model_has_positions_for():
    found = translation_bucket(config(max_sequence_length=64, batch_tokens=640))
    assert found == Bucket(8, 64)


def test_positions_that_are_no_multiple_of_eight():
    found = translation_bucket(config(max_sequence_length=100, batch_tokens=3300))
    assert found == Bucket(32, 100)  # 33 rows would fit
    assert translation_bucket(config(max_length=99, max_sequence_length=100)).length == 100


def test_a_model_that_was_trained_before_has_its_own_positions():
    assert train_buckets(config(strategy="tpu", batch_tokens=640), 64) == [Bucket(8, 64)]
    told = config(strategy="tpu", max_length=7, batch_tokens=640)
    assert train_buckets(told, 64) == [Bucket(80, 8)]


def test_elsewhere_batches_are_of_like_length():
    assert train_buckets(config()) is None
    assert train_buckets(config(strategy="tpu", max_length=7)) == [Bucket(512, 8)]


def test_replicas_share_the_rows():
    # 768 // 128 = 6 rows; 4 of them are one for each of 4, 6 three for each of 2.
    told = config(max_length=127, batch_tokens=768)
    assert [translation_bucket(told, replicas=n).rows for n in (1, 2, 4, 5)] == [6, 6, 4, 5]
    # 41 rows: a multiple of 8 and of 3 is 24; of 32 it is 32. 12 of 12 are no multiple of 8.
    told = config(max_length=20, batch_tokens=1000)
    assert [translation_bucket(told, replicas=n).rows for n in (3, 32)] == [24, 32]
    assert translation_bucket(config(max_length=7, batch_tokens=96), replicas=12).rows == 12


def test_each_replica_has_a_pair():
    message = "`batch_tokens` must be at least 512, a pair of 128 tokens for each of 4 cores. Rec"
    with pytest.raises(ValueError, match=message):
        translation_bucket(config(max_length=127, batch_tokens=511), replicas=4)


def test_a_pair_must_fit():
    with pytest.raises(ValueError, match="`batch_tokens` must be at least 104, a pair of 104 tok"):
        translation_bucket(config(max_length=99, batch_tokens=100))
