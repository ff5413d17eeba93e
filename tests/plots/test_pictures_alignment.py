import warnings

import numpy as np
import pytest

from kbert.plots.figures import write_figure
from kbert.plots.pictures import plot_alignment

WEIGHTS = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])


def labels(ticks):
    return [label.get_text() for label in ticks]


def test_a_row_for_each_word_of_the_translation():
    figure = plot_alignment(["a", "b", "c"], ["x", "y"], WEIGHTS, "layer 2")
    axes = figure.axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), WEIGHTS)
    assert labels(axes.get_xticklabels()) == ["a", "b", "c"]
    assert labels(axes.get_yticklabels()) == ["x", "y"]
    assert axes.get_ylim() == (1.5, -0.5)  # the first word is at the top
    assert figure.get_suptitle() == "layer 2"


def test_black_is_nothing_and_white_the_most():
    image = plot_alignment(["a", "b"], ["x"], np.array([[0.75, 0.25]])).axes[0].images[0]
    colors = image.to_rgba(np.array([0.0, 0.75]))
    np.testing.assert_array_equal(colors[:, :3], [[0, 0, 0], [1, 1, 1]])


def test_any_script_and_any_character(tmp_path):
    """Boxes may be drawn; nothing may fail."""
    source = ["မင်္ဂလာပါ", "你好", "مرحبا", "\n"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No installed font has all letters of")
        figure = plot_alignment(source, ["$", "a\0"], np.full((2, 4), 0.25))
        assert write_figure(figure, tmp_path / "a.png").stat().st_size > 1000


def test_a_long_text_keeps_within_a_page(tmp_path):
    figure = plot_alignment(["word"] * 400, ["wort"] * 300, np.full((300, 400), 1 / 400))
    assert max(figure.get_size_inches()) < 45


def test_errors():
    message = r"`weights` must have the shape \(1, 2\), target by source. Received: \(2, 1\)"
    with pytest.raises(ValueError, match=message):
        plot_alignment(["a", "b"], ["x"], np.zeros((2, 1)))
    with pytest.raises(ValueError, match="`target` must have a word. Received: none"):
        plot_alignment(["</s>"], [], np.zeros((0, 1)))
