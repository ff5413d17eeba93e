"""What attempts of a launched command know of each other."""

from kbert.training.runs.stopped_runs import attempt_variables, is_begun, note_begun


def test_the_first_worker_notes_that_the_run_is_begun(tmp_path):
    note = tmp_path / "begun"
    second = attempt_variables(note, 1, False)
    note_begun(second)
    assert not note.exists() and not is_begun(second)
    first = attempt_variables(note, 0, False)
    note_begun(first)
    assert note.exists() and not is_begun(first)  # it stays as it was when the attempt started
    for worker in (0, 1):
        assert is_begun(attempt_variables(note, worker, True))


def test_without_a_launcher_nothing_was_begun(tmp_path):
    note_begun({})
    assert not is_begun({})
    note_begun(attempt_variables(tmp_path / "gone" / "begun", 0, False))
    assert list(tmp_path.iterdir()) == []
