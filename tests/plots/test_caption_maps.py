import numpy as np
import pytest

from kbert.plots.caption_maps import plot_caption

PIXELS = np.arange(4 * 6 * 3, dtype="uint8").reshape(4, 6, 3)
MAPS = np.array([[[0.0, 0.5], [0.25, 0.25]], [[1.0, 0.0], [0.0, 0.0]]], "float32")


def test_the_image_and_a_panel_for_each_word():
    figure = plot_caption(PIXELS, ["a", "$5 dog\n"], MAPS, "a $5 dog")
    whole, first, second = figure.axes
    np.testing.assert_array_equal(whole.images[0].get_array(), PIXELS)
    assert [axes.get_title() for axes in (first, second)] == ["a", "$5 dog\\n"]
    assert figure.get_suptitle() == "a $5 dog"
    image, shade = first.images
    np.testing.assert_array_equal(image.get_array(), PIXELS)
    # Black: the less weight, the more of it; the place of the largest weight is not covered.
    np.testing.assert_array_equal(shade.get_array()[..., :3], 0.0)
    np.testing.assert_allclose(shade.get_array()[..., 3], [[0.8, 0.0], [0.4, 0.4]], atol=1e-6)
    assert shade.get_extent() == [-0.5, 5.5, 3.5, -0.5]  # over all of the image


def test_many_words_are_in_several_rows():
    words = list("abcdefgh")
    figure = plot_caption(PIXELS, words, np.ones((8, 2, 2)))
    assert len(figure.axes) == 10 and not figure.get_suptitle()
    assert [axes.get_title() for axes in figure.axes[1:9]] == words
    assert not figure.axes[9].axison


@pytest.mark.parametrize("words, maps", [(["a"], MAPS), ([], MAPS[:0]), (["a"], MAPS[0])])
def test_a_map_for_each_word(words, maps):
    with pytest.raises(ValueError, match="`maps` must have a map for each word, at least one. Rec"):
        plot_caption(PIXELS, words, maps)
