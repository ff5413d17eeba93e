import math

import numpy as np
import pytest

from kbert.training.callbacks.state_saver import BadBatch, pieces_of
from kbert.training.runs.train_state import Position

TOKENS = ("[PAD]", "a", "b")


def batches(position):
    for number in range(position.batch, 9):
        ids = np.array([[number % 3, 1], [2, 0]], "int32")
        yield {"token_ids": ids}, np.array([0, number]), np.array([1.0, 0.5])


def test_what_is_kept_of_a_batch(tmp_path):
    bad = BadBatch(tmp_path / "run", batches, {"token_ids": pieces_of(TOKENS), "other": repr})
    bad.check(0.5, Position(10, 0, 4))
    assert not (tmp_path / "run").exists()
    with pytest.raises(FloatingPointError) as raised:
        bad.check(math.nan, Position(10, 0, 4))
    path = tmp_path / "run" / "bad-batch-step-11.npz"
    assert "Received: nan at step 11. Try a lower learning_rate. Its" in str(raised.value)
    assert f"{path} (token_ids, targets, weights, token_ids_text)" in str(raised.value)
    with np.load(path) as kept:
        assert kept["token_ids"].tolist() == [[1, 1], [2, 0]]
        assert kept["token_ids_text"].tolist() == ["a a", "b [PAD]"]
        assert kept["targets"].tolist() == [0, 4] and kept["weights"].tolist() == [1.0, 0.5]


def test_of_steps_that_were_one_call_all_batches_are_kept(tmp_path):
    bad = BadBatch(tmp_path, batches, {"token_ids": pieces_of(TOKENS)})
    with pytest.raises(FloatingPointError) as raised:
        bad.check(math.inf, Position(10, 0, 4), steps=3)
    path = tmp_path / "bad-batch-steps-11-13.npz"
    assert "Received: inf at one of the steps 11 to 13. Try a lower" in str(raised.value)
    told = f"Their batches are in {path} (token_ids, targets, weights, token_ids_text)"
    assert told in str(raised.value)
    with np.load(path) as kept:
        assert len(kept.files) == 3 * 4
        found = [kept[f"step-{step}/targets"].tolist() for step in (11, 12, 13)]
        assert found == [[0, 4], [0, 5], [0, 6]]
        assert kept["step-12/token_ids_text"].tolist() == ["b a", "b [PAD]"]


def test_rows_of_any_shape_and_ids_that_are_none():
    decode = pieces_of(TOKENS)
    found = decode(np.array([[[1, 2], [2, -1]]]))
    assert found.tolist() == [["a b", "b"]]
