import numpy as np
import pytest

from kbert.plots.pictures import plot_span


def test_bars_are_the_probabilities():
    start, end = np.array([0.1, 0.7, 0.2]), np.array([0.0, 0.1, 0.9])
    axes = plot_span(["a", "b", "c"], start, end, (1, 2), "who?").axes[0]
    assert [bar.get_height() for bar in axes.patches[1:]] == [*start, *end]  # first the answer
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c"]
    assert axes.get_title() == "who?"


def test_a_long_text_is_shown_around_the_start():
    start = np.zeros(1000)
    start[700] = 1.0
    axes = plot_span([str(i) for i in range(1000)], start, start, None).axes[0]
    shown = [int(label.get_text()) for label in axes.get_xticklabels()]
    assert 700 in shown and len(shown) == 120


def test_no_tokens():
    assert plot_span([], np.zeros(0), np.zeros(0), None).axes


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="a value for each token. Received: 1 tokens, 2 and 1"):
        plot_span(["a"], np.zeros(2), np.zeros(1), None)
