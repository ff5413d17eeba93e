"""Batches of good and bad images: every row has its own answer, in a SavedModel and in threads."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from kbert.images.decoding import decoded
from kbert.serving.format.servable import check_export, least_server
from kbert.serving.loading.session_loader import Session
from tests.c_compiler import needs_compiler
from tests.images.image_files import (
    HEIGHT,
    WIDTH,
    encoded,
    few_colors,
    photograph,
    png_file,
    reference,
    transparent,
)

GOOD = [
    encoded(photograph(), "JPEG"),
    encoded(transparent(), "PNG"),
    encoded(few_colors(8), "GIF", save_all=True, append_images=[few_colors(8).rotate(30)]),
    encoded(few_colors(16), "BMP"),
    encoded(photograph(1, 1), "PNG"),
]
BAD = [
    b"",
    b"a text",
    bytes(range(256)),
    GOOD[0][:-300],
    GOOD[1][:100],
    GOOD[2][:100],
    GOOD[3][:100],
    b"RIFF\0\0\0\0WEBPVP8 ",
    png_file(20_000, 20_000, b""),
]
MIXED = [content for pair in zip(BAD, [*GOOD, *GOOD]) for content in pair]


@pytest.fixture(scope="module")
def expected() -> tuple[np.ndarray, np.ndarray]:
    pixels, problems = decoded(MIXED, HEIGHT, WIDTH)
    return pixels.numpy(), problems.numpy()


def test_rows_keep_their_places(expected):
    pixels, problems = expected
    assert pixels.shape == (18, HEIGHT, WIDTH, 3) and pixels.dtype == np.float32
    for row, content in enumerate(MIXED):
        if content in GOOD:
            assert problems[row] == b""
            assert np.abs(pixels[row] - reference(content)).max() < 1.01
        else:
            assert problems[row].decode().count(" must ") == 1
            assert not pixels[row].any()


def test_a_row_is_the_same_beside_any_other(expected):
    for row in range(len(MIXED)):
        pixels, problems = decoded(MIXED[row : row + 1], HEIGHT, WIDTH)
        assert np.array_equal(pixels[0], expected[0][row]) and problems[0] == expected[1][row]


def test_no_rows_and_bad_rows_alone():
    pixels, problems = decoded(tf.constant([], tf.string), HEIGHT, WIDTH)
    assert pixels.shape == (0, HEIGHT, WIDTH, 3) and problems.shape == (0,)
    pixels, problems = decoded(BAD, HEIGHT, WIDTH)
    assert not np.any(pixels) and b"" not in problems.numpy()


def test_the_limit_is_an_argument():
    files = [encoded(photograph(60, 80), "JPEG"), encoded(photograph(60, 81), "JPEG")]
    problems = decoded(files, 3, 2, max_pixels=4800)[1].numpy().tolist()
    assert problems == [b"", b"the image must have at most 4800 pixels. Received: 60 x 81 pixels"]
    with pytest.raises(ValueError, match="`max_pixels` must be at least 1. Received: max_pixels=0"):
        decoded(files, 3, 2, max_pixels=0)


def test_cropping():
    # The center of 60 x 80 is 60 x 60; at half the size every pixel is the filter's.
    image = photograph()
    pixels, _ = decoded([encoded(image, "PNG")], 30, 30, fit="crop")
    expected = reference(encoded(image, "PNG"), 30, 40)[:, 5:35]
    assert np.abs(pixels[0] - expected).max() < 1.01


def test_pixels_are_resized():
    pixels = np.asarray(photograph())[np.newaxis]
    found, problems = decoded(np.concatenate([pixels, pixels[:, ::-1]]), HEIGHT, WIDTH)
    alone, _ = decoded([encoded(photograph(), "PNG")], HEIGHT, WIDTH)
    assert problems.numpy().tolist() == [b"", b""]
    assert np.array_equal(found[0], alone[0])
    assert decoded(np.zeros((0, 5, 5, 3), np.uint8), HEIGHT, WIDTH)[0].shape == (0, 24, 32, 3)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 5, 5, 3), np.float32), "dtype=float32, shape=(2, 5, 5, 3)"),
        (np.zeros((5, 5, 3), np.uint8), "must have the shape (B, h, w, 3) where they are pixels"),
        (np.zeros((2, 5, 5, 4), np.uint8), "shape=(2, 5, 5, 4)"),
        (np.zeros((2, 0, 5, 3), np.uint8), "shape=(2, 0, 5, 3)"),
        (tf.constant(b"one"), "dtype=string, shape=()"),
        ([[b"one"], [b"two"]], "dtype=string, shape=(2, 1)"),
    ],
)
def test_wrong_arguments(images, message: str):
    with pytest.raises(ValueError, match="`images` must") as caught:
        decoded(images, HEIGHT, WIDTH)
    assert message in str(caught.value)


class Decoding(tf.Module):
    """What an export does first."""

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, name="images")])
    def serve(self, images):
        pixels, problems = decoded(images, HEIGHT, WIDTH)
        return {"pixels": pixels, "problems": problems}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("decoding") / "1"
    module = Decoding()
    tf.saved_model.save(module, str(path), signatures=module.serve)
    return path


def test_in_a_saved_model_from_several_threads(saved: Path, expected):
    serve = tf.saved_model.load(str(saved)).signatures["serving_default"]
    # The first call optimizes the graph, which each thread would do again.
    assert serve(images=tf.constant([], tf.string))["pixels"].shape == (0, HEIGHT, WIDTH, 3)
    orders = [np.random.default_rng(seed).permutation(len(MIXED)) for seed in range(12)]

    def answer(order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = serve(images=tf.constant([MIXED[row] for row in order]))
        return found["pixels"].numpy(), found["problems"].numpy()

    with ThreadPoolExecutor(6) as pool:
        for order, (pixels, problems) in zip(orders, pool.map(answer, orders)):
            assert np.array_equal(pixels, expected[0][order])
            assert np.array_equal(problems, expected[1][order])


def test_every_server_has_the_operations(saved: Path):
    report = check_export(saved)
    assert report.problems == ()
    assert report.text_ops == () and least_server(report.core_ops) == "2.16"


@needs_compiler
def test_without_python(saved: Path, expected):
    with Session(saved) as session:
        found = session.run("serving_default", {"images": np.array(MIXED, object)})
        assert np.array_equal(found["pixels"], expected[0])
        assert found["problems"].tolist() == expected[1].tolist()
