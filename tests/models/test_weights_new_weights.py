"""What an encoder begins with, and that nothing is drawn where weights follow."""

import keras
import numpy as np

from kbert.models.bert import Bert
from kbert.models.weights import NewWeights, weights_follow
from tests.checkpoints.synthetic_bert import hf_tensors, write_hf
from tests.small_bert import small_bert


def test_random_outside_and_zero_inside():
    new = NewWeights(stddev=0.02, seed=3)
    expected = keras.initializers.TruncatedNormal(stddev=0.02, seed=3)((4, 5), "float32")
    np.testing.assert_array_equal(new((4, 5), "float32"), expected)
    with weights_follow(True):
        found = new((4, 5), "float16")
        assert found.dtype == "float16" and not np.any(found)
        with weights_follow(False):
            np.testing.assert_array_equal(new((4, 5), "float32"), expected)
    np.testing.assert_array_equal(new((4, 5), "float32"), expected)


def test_it_is_read_back():
    again = keras.initializers.get(keras.initializers.serialize(NewWeights(stddev=0.5)))
    assert type(again) is NewWeights and again.stddev == 0.5
    pooler = small_bert(initializer_range=0.3).pooler
    assert type(pooler.kernel_initializer) is NewWeights
    assert 0.1 < np.std(pooler.kernel) < 0.4


def test_a_checkpoint_is_drawn_for_only_where_it_lacks_the_pooler(tmp_path):
    whole = Bert.from_pretrained(write_hf(tmp_path / "whole", hf_tensors()))
    assert np.any(whole.pooler.kernel)
    tensors = {name: array for name, array in hf_tensors().items() if "pooler" not in name}
    assert np.any(Bert.from_pretrained(write_hf(tmp_path / "bare", tensors)).pooler.kernel)
