import numpy as np
import pytest

from kbert.tasks.translation.alignment import TextAlignment, alignment_of_text
from tests.small_translator import shared_translator
from tests.tasks.translation.test_alignment import LONG, aligned_once


@pytest.mark.parametrize(
    "fused, layer", [(False, -1), pytest.param(True, None, marks=pytest.mark.slow)]
)
def test_the_mean_is_the_alignment(fused, layer):
    model = shared_translator(fused, 2, alignment_layer=layer)
    found, wanted = alignment_of_text(model, LONG), aligned_once(model, [LONG])
    assert found.translation.encode() == wanted["translation"][0]
    assert [token.encode() for token in found.source] == wanted["source_tokens"][0].tolist()
    assert [token.encode() for token in found.target] == wanted["target_tokens"][0].tolist()
    assert found.layer == (None if layer is None else 1)
    np.testing.assert_allclose(found.mean(found.layer), wanted["alignment"][0], atol=1e-5)
    heads = [found.mean(0, head) for head in range(2)]
    np.testing.assert_allclose(np.mean(heads, axis=0), found.mean(0), atol=1e-6)


def test_an_empty_text():
    found = alignment_of_text(shared_translator(beam_size=2), "")
    assert (found.translation, found.source, found.target) == ("", ["</s>"], [])
    words = found.in_words()
    assert words.target == [] and words.mean(0).shape == (0, 1)


def test_words():
    """By hand: what goes to pieces of a source word is added, of a target word is averaged."""
    source = ["\u2581a", "\u2581gar", "den", "</s>"]
    target = ["\u2581ein", "\u2581Gart", "en", "</s>"]
    head = [[1, 0, 0, 0], [0, 0.5, 0.25, 0.25], [0.5, 0.25, 0.25, 0], [0, 0, 0, 1]]
    pieces = TextAlignment("ein Garten", source, target, [np.array([head])], 0)
    words = pieces.in_words()
    assert words.source == ["a", "garden", "</s>"] and words.target == ["ein", "Garten", "</s>"]
    wanted = [[1, 0, 0], [0.25, 0.625, 0.125], [0, 0, 1]]
    np.testing.assert_array_equal(words.mean(0), wanted)
    assert (words.translation, words.layer) == ("ein Garten", 0)


def test_what_is_cut():
    found = alignment_of_text(shared_translator(beam_size=2), " ".join(["garden"] * 50))
    assert len(found.source) == 40 and found.layers[0].shape[2] == 40
