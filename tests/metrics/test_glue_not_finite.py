"""What a model's overflow raises can be told from other errors by its class."""

import numpy as np
import pytest

from kbert.metrics.answers import squad2_metrics
from kbert.metrics.glue import NotFiniteError, classification_metrics, regression_metrics


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_numbers_that_overflowed(number):
    for measure in (
        lambda: classification_metrics([0], [0], ["a", "b"], [[number, 0.0]]),
        lambda: regression_metrics([0.5], [number]),
        lambda: squad2_metrics({"a": ["x"]}, {"a": "x"}, {"a": number}),
    ):
        with pytest.raises(NotFiniteError, match="must be finite numbers"):
            measure()


def test_other_errors_are_of_another_class():
    for measure in (
        lambda: regression_metrics([0.5], ["no number"]),
        lambda: regression_metrics([0.5], [0.5, 0.5]),
    ):
        with pytest.raises(ValueError) as caught:
            measure()
        assert not isinstance(caught.value, NotFiniteError)
