import numpy as np
import pytest

from kbert.tasks.regression.task import TASK


def test_metrics_of_scores_by_hand():
    found = TASK.measure_predictions(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    assert found["pearson"] == pytest.approx(1.0) and found["mse"] == pytest.approx(14 / 3)
    assert TASK.monitors(None)[0] == "pearson"


def test_it_is_the_one_of_glue_with_scores():
    assert TASK.is_of_glue("stsb") and not TASK.is_of_glue("sst2")
