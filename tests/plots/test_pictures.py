import numpy as np
import pytest

from kbert.plots.pictures import plot_attention


def test_a_row_for_each_query():
    scores = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
    axes = plot_attention(["x", "y"], ["a", "b", "c"], scores).axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), scores)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y"]


def test_the_shape_must_fit():
    with pytest.raises(ValueError, match=r"must have the shape \(1, 2\), queries by keys. Rec"):
        plot_attention(["x"], ["a", "b"], np.zeros((2, 1)))


def test_a_long_text_keeps_within_a_page():
    tokens = [f"t{i}" for i in range(2048)]
    figure = plot_attention(tokens, tokens, np.eye(2048))
    assert max(figure.get_size_inches()) < 42
