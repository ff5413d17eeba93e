import numpy as np
import pytest
import tensorflow as tf

from kbert.tasks.captioning.attention_maps import word_maps
from tests.small_captioner import SIZE, shapes, shared_captioner, small_captioner


@pytest.fixture(scope="module")
def model():
    made = small_captioner(beam_size=1)
    biases = np.full(len(made.subwords), -20.0, "float32")
    biases[4:10] = 0.0  # beginnings of words, and other pieces
    made.decoder.output_layer.bias.assign(biases)
    return made


def test_the_map_of_a_word_is_the_mean_of_its_pieces(model):
    image = shapes()[0][0]
    found = word_maps(model, image)
    columns = model.caption_columns([image], maps=True)
    assert found.caption == columns["caption"][0].decode()
    assert " ".join(found.words) == found.caption and 1 < len(found.words)
    np.testing.assert_array_equal(found.pixels, image)  # of the network's own size
    pieces = [token.decode() for token in columns["tokens"][0]]
    real = [piece not in ("", "<s>", "</s>", "<pad>") for piece in pieces]
    # A piece that begins with the mark begins a word.
    numbers = np.cumsum([piece.startswith("\u2581") for piece in np.array(pieces)[real]])
    numbers -= numbers[0]
    weights = columns["attention"][0][real]
    for word, own in enumerate(found.maps):
        np.testing.assert_allclose(own, weights[numbers == word].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(found.maps.sum(axis=(1, 2)), 1.0, atol=1e-5)


def test_a_larger_image_is_shown_as_the_model_sees_it(model):
    large = np.repeat(np.repeat(shapes()[0][1], 2, axis=0), 3, axis=1)
    file = tf.io.encode_png(large).numpy()
    found = word_maps(model, file)
    assert found.pixels.shape == (SIZE, SIZE, 3) and found.pixels.dtype == np.uint8
    assert abs(found.pixels.astype(int) - shapes()[0][1]).mean() < 2


def test_what_has_no_maps(model):
    with pytest.raises(ValueError, match="`image` must be an image: the image must be the bytes"):
        word_maps(model, b"no image")
    with pytest.raises(ValueError, match="by the attention to its image. Received: a decoder with"):
        word_maps(shared_captioner("mean"), shapes()[0][0])
