"""One worker alone; two are in `test_team.py`, where they train and one of them dies."""

from kbert.training.distributed.collectives import all_gather, any_signal, barrier


def test_one_worker_gathers_its_own_numbers():
    assert all_gather([3, 4]) == [[3, 4]]
    barrier()


def test_one_worker_has_its_own_signal():
    assert any_signal(None) is None
    assert any_signal("SIGTERM") == "SIGTERM"
