import json

import pytest

from kbert.training.resumable_record import ResumableRecord
from kbert.training.run_log import RunLog
from kbert.training.translation_config import TranslationConfig
from tests.training.test_epoch_record import Model, Prepared, kept


def record_of(tmp_path, values, **config):
    least = {"train": "a.tsv", "validation": "v.tsv", "output": "o"}
    made = TranslationConfig.from_dict({**least, "epochs": 9, **config})
    folder = tmp_path / "kept"
    journal = tmp_path / "epochs.json"
    record = ResumableRecord(journal, made, Prepared(values), "accuracy", 100, folder, RunLog())
    record.set_model(Model())
    return record


def run(record, epochs):
    for epoch in epochs:
        record.on_epoch_begin(epoch)
        record.on_epoch_end(epoch, {"loss": 1.0})
    return record


def restored(tmp_path, done, values, **config):
    record = record_of(tmp_path, values, **config)
    record.restore(done)
    return record


def test_what_was_done_and_the_best_of_it_are_known_again(tmp_path):
    whole = run(record_of(tmp_path / "a", [0.5, 0.7, 0.6, 0.8]), range(4))
    run(record_of(tmp_path, [0.5, 0.7]), range(2))
    again = run(restored(tmp_path, 2, [0.6, 0.8]), [2, 3])
    assert [epoch["validation"] for epoch in again.epochs] == [
        epoch["validation"] for epoch in whole.epochs
    ]
    assert (again.best_epoch, again.best_value) == (whole.best_epoch, whole.best_value) == (4, 0.8)
    assert set(kept(tmp_path)) == {"epoch-4"}


def test_an_epoch_beyond_the_state_is_done_again(tmp_path):
    run(record_of(tmp_path, [0.5, 0.7]), range(2))
    again = run(restored(tmp_path, 1, [0.7]), [1])
    assert len(again.epochs) == 2 and again.best_epoch == 2 and set(kept(tmp_path)) == {"epoch-2"}
    better = run(restored(tmp_path, 1, [0.9]), [1])  # where sums are not the same bits again
    assert (better.best_epoch, better.best_value) == (2, 0.9) and set(kept(tmp_path)) == {"epoch-2"}


def test_weights_without_an_entry_in_the_journal_are_made_anew(tmp_path):
    """Killed when the new best was written and the one before it gone, but not the journal."""
    run(record_of(tmp_path, [0.5]), [0])
    (tmp_path / "kept" / "epoch-1").rename(tmp_path / "kept" / "epoch-2")
    again = restored(tmp_path, 1, [0.4])
    assert (again.best_epoch, kept(tmp_path)) == (0, {})
    assert run(again, [1]).best_epoch == 2 and set(kept(tmp_path)) == {"epoch-2"}


def test_patience_goes_on(tmp_path):
    run(record_of(tmp_path, [0.5, 0.4], early_stopping=3), range(2))
    again = restored(tmp_path, 2, [0.3, 0.2], early_stopping=3)
    assert not again.is_over(2)
    run(again, [2, 3])
    assert again.model.stop_training and again.is_over(4)
    assert restored(tmp_path, 4, [], early_stopping=3).is_over(4)


def test_nothing_to_take_up(tmp_path):
    record = restored(tmp_path, 0, [])
    assert (record.epochs, record.best_epoch) == ([], 0) and not record.is_over(0)


def test_a_record_without_weights(tmp_path):
    record = record_of(tmp_path, [0.5])
    record._folder = None
    run(record, [0])
    assert json.loads((tmp_path / "epochs.json").read_text())["best_epoch"] == 1
    assert not (tmp_path / "kept").exists()
    with pytest.raises(ValueError, match="`folder` must be given"):
        record.kept
