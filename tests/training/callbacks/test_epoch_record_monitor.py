import pytest

from kbert.tasks.registry import finetuned_task
from kbert.training.callbacks.epoch_record import is_better, losses


def test_better_is_higher_but_for_losses():
    def compared(metric, value, best):
        return is_better(metric, {metric: value}, {metric: best})

    assert is_better("accuracy", {"accuracy": 0.1}, None)
    assert compared("accuracy", 0.6, 0.5) and not compared("accuracy", 0.4, 0.5)
    assert compared("mse", 0.4, 0.5) and not compared("cross_entropy", 0.6, 0.5)
    assert not compared("accuracy", 0.5, 0.5) and not compared("loss", 0.5, 0.5)


@pytest.mark.parametrize("loss", ["loss", "cross_entropy", "mse"])
def test_the_loss_decides_between_equal_metrics_and_no_others(loss):
    best = {"f1": 0.5, loss: 0.7}
    assert is_better("f1", {"f1": 0.5, loss: 0.6}, best)
    assert not is_better("f1", {"f1": 0.5, loss: 0.7}, best)
    assert not is_better("f1", {"f1": 0.5, loss: 0.8}, best)
    assert is_better("f1", {"f1": 0.6, loss: 0.8}, best)
    assert not is_better("f1", {"f1": 0.4, loss: 0.1}, best)
    assert not is_better("f1", {"f1": 0.5}, best)


def test_the_names_of_losses_are_those_of_the_tasks():
    assert losses() == ("loss", "cross_entropy", "mse")


def test_a_task_says_which_of_its_metrics_fall(monkeypatch):
    found, best = {"error": 0.4}, {"error": 0.5}
    assert not is_better("error", found, best)
    monkeypatch.setattr(finetuned_task("regression"), "falling", ("error",))
    assert is_better("error", found, best)
    assert losses() == ("loss", "cross_entropy", "error")
