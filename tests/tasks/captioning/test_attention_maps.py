from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from kbert.tasks.captioning.attention_maps import word_maps
from tests.small_captioner import SIZE, shapes, shared_captioner, small_captioner, small_subwords

PIECES = ("\u2581a", "\u2581s", "he", "<s>", "\u2581t", "</s>", "")
MAPS = np.random.default_rng(1).dirichlet(np.ones(4), len(PIECES)).reshape(-1, 2, 2)


def teller(problem: bytes = b"") -> SimpleNamespace:
    """What a captioner says of every image."""
    columns = {
        "caption": np.array([b"a she t"], object),
        "tokens": np.array([[piece.encode() for piece in PIECES]], object),
        "attention": MAPS[None].astype("float32"),
        "problem": np.array([problem], object),
    }
    return SimpleNamespace(
        subwords=small_subwords(),
        extractor=SimpleNamespace(image_size=(SIZE, SIZE)),
        image_fit="squeeze",
        caption_columns=lambda images, maps: columns,
    )


def test_the_map_of_a_word_is_the_mean_of_its_pieces():
    image = shapes()[0][0]
    found = word_maps(teller(), image)
    assert (found.caption, found.words) == ("a she t", ["a", "she", "t"])
    np.testing.assert_array_equal(found.pixels, image)  # of the network's own size
    wanted = [MAPS[0], (MAPS[1] + MAPS[2]) / 2, MAPS[4]]  # without what has no text
    np.testing.assert_allclose(found.maps, wanted, atol=1e-6)


def test_a_larger_image_is_shown_as_the_model_sees_it():
    large = np.repeat(np.repeat(shapes()[0][1], 2, axis=0), 3, axis=1)
    found = word_maps(teller(), tf.io.encode_png(large).numpy())
    assert found.pixels.shape == (SIZE, SIZE, 3) and found.pixels.dtype == np.uint8
    assert abs(found.pixels.astype(int) - shapes()[0][1]).mean() < 2


def test_what_has_no_maps():
    with pytest.raises(ValueError, match="`image` must be an image: it is broken"):
        word_maps(teller(b"it is broken"), b"no image")
    with pytest.raises(ValueError, match="by the attention to its image. Received: a decoder with"):
        word_maps(shared_captioner("mean"), shapes()[0][0])


@pytest.mark.slow
def test_of_a_captioner():
    model, image = small_captioner(beam_size=1), shapes()[0][0]
    biases = np.full(len(model.subwords), -20.0, "float32")
    biases[4:10] = 0.0  # beginnings of words, and other pieces
    model.decoder.output_layer.bias.assign(biases)
    found = word_maps(model, image)
    assert [found.caption] == model.predict([image])
    assert " ".join(found.words) == found.caption and len(found.words) > 1
    np.testing.assert_allclose(found.maps.sum(axis=(1, 2)), 1.0, atol=1e-5)


def test_an_empty_caption_has_no_maps():
    model = small_captioner(beam_size=1)
    ends = 99.0 * np.eye(len(model.subwords))[model.subwords.end_id]
    model.decoder.output_layer.bias.assign(ends)
    found = word_maps(model, shapes()[0][0])
    assert found.words == [] and found.maps.shape == (0, 4, 4)
