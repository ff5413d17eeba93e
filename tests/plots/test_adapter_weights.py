import numpy as np
import pytest
from matplotlib.colors import to_rgb

from kbert.plots.adapter_weights import plot_adapter_weights

WEIGHTS = np.array([[0.125, 0.875], [0.5, 0.5], [1.0, 0.0]])


def test_a_row_for_each_layer_from_the_top():
    figure = plot_adapter_weights(["mnli", "sick"], WEIGHTS, "mean weight\n3 examples")
    axes, scale = figure.axes[0], figure.axes[0].child_axes[0]
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array(), WEIGHTS)
    assert image.get_clim() == (0.0, 1.0) and image.origin == "upper"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "2", "3"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["mnli", "sick"]
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {0.0}
    assert axes.get_title() == "mean weight\n3 examples"
    assert [label.get_text() for label in scale.get_yticklabels()] == ["0.0", "0.5", "1.0"]


def test_the_number_of_each_cell():
    axes = plot_adapter_weights(["a", "b"], WEIGHTS).axes[0]
    found = {text.get_position(): text for text in axes.texts}
    for (layer, adapter), weight in np.ndenumerate(WEIGHTS):
        text = found.pop((adapter, layer))
        assert text.get_text() == f"{weight:.2f}"
        is_largest = weight == WEIGHTS[layer].max()
        assert text.get_fontweight() == ("bold" if is_largest else "normal")
        # Legible where colours are shades of grey: by the contrast of WCAG 2, at least 3 : 1.
        behind = axes.images[0].cmap(weight)[:3]
        one, other = sorted(map(luminance, (behind, to_rgb(text.get_color()))))
        assert (other + 0.05) / (one + 0.05) > 3
    assert not found


def luminance(color):
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
    return np.dot(parts, (0.2126, 0.7152, 0.0722))


def test_shades_fall_with_the_weight():
    axes = plot_adapter_weights(["a", "b"], WEIGHTS).axes[0]
    shades = [luminance(axes.images[0].cmap(weight)[:3]) for weight in np.linspace(0, 1, 20)]
    assert all(one > other for one, other in zip(shades, shades[1:]))


def test_long_and_odd_names():
    names = ["a-folder-with-a-long-name", "$x\n"]
    labels = plot_adapter_weights(names, WEIGHTS).axes[0].get_xticklabels()
    assert [label.get_text() for label in labels] == [names[0], "$x\\n"]
    assert {label.get_rotation() for label in labels} == {40.0}


@pytest.mark.parametrize("weights", [WEIGHTS.T, WEIGHTS[0], WEIGHTS[:0]])
def test_the_shape_must_fit(weights):
    with pytest.raises(ValueError, match=r"must have the shape \(layers, 2\), .* Received: \("):
        plot_adapter_weights(["a", "b"], weights)
