"""Captioning on the page, in a real Chromium: images that people choose, and the maps of words."""

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import requests
import tensorflow as tf

from kbert.data.samples.drawn_shapes import drawn_shapes
from kbert.local_server.limits import Limits
from kbert.local_server.server import LocalServer, ServerOptions
from tests.local_server.conftest import FREE
from tests.local_server.page_browser import Page

CAPTION = "a giant dög"
MOST = 60_000
# Drops a file on its place.
DROP = """
const files = new DataTransfer();
files.items.add(new File([arguments[0]], "dropped.txt"));
const options = { dataTransfer: files, bubbles: true, cancelable: true };
document.querySelector(".drop").dispatchEvent(new DragEvent("drop", options));
"""
# Calls functions of the page's modules.
CALL = """
const done = arguments[arguments.length - 1];
import(arguments[0])
  .then((all) => done(all[arguments[1]](...arguments[2])))
  .catch((error) => done(String(error)));
"""


@pytest.fixture(scope="module")
def url(tellers: Path) -> Iterator[str]:
    """A server of a model whose captions are known, and which takes small requests alone."""
    options = ServerOptions(**{**FREE, "grpc_port": -1}, web=True, limits=Limits(MOST))
    with LocalServer(tellers, options) as server:
        yield server.rest_url


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Images: a small one, a large one, one that is many bytes as it is, and a text."""
    small = np.full((48, 64, 3), 128, np.uint8)
    noise = np.random.default_rng(1).integers(0, 60, (200, 200, 3), np.uint8)
    (tmp_path / "it's small.png").write_bytes(tf.io.encode_png(small).numpy())
    large = np.zeros((1000, 2000, 3), np.uint8)
    (tmp_path / "large.jpg").write_bytes(tf.io.encode_jpeg(large).numpy())
    (tmp_path / "noise.png").write_bytes(tf.io.encode_png(noise).numpy())
    (tmp_path / "text.png").write_bytes(b"no image")
    return tmp_path


def choose(page: Page, file: Path) -> str:
    """Chooses a file, and returns what is told of it."""
    before = page.one(".told").text
    page.one("#field-image").send_keys(str(file))
    page.wait(lambda: page.one(".told").text != before)
    return page.one(".told").text


def call(page: Page, module: str, name: str, *arguments):
    return page.driver.execute_async_script(CALL, f"/web/{module}.js", name, arguments)


def pixel(page: Page, selector: str, across: float, down: float) -> list[int]:
    """The color of a canvas at a place, in shares of its size."""
    return page.driver.execute_script(
        "const one = document.querySelector(arguments[0]);"
        "const [x, y] = [one.width * arguments[1], one.height * arguments[2]];"
        "return [...one.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3)",
        selector,
        across,
        down,
    )


def test_an_image_has_a_caption(page: Page, files: Path):
    assert page.one("#input-title").text == "Your image"
    assert choose(page, files / "it's small.png").startswith("64 × 48 pixels, ")
    assert page.all(".preview canvas")
    page.ask()
    assert page.one(".headline").text == CAPTION
    assert page.one("#answer .quiet").text == "Score -0.250"
    # The third has no score: the search found no more.
    cells = page.texts("#answer .list tbody td")
    assert cells == [CAPTION, "-0.250", "64 x 48", "-1.500"]
    assert not [one for one in page.driver.get_log("browser") if one["level"] == "SEVERE"]


def test_the_map_of_a_word_lies_over_the_image(page: Page, files: Path):
    choose(page, files / "it's small.png")
    page.ask()
    assert page.texts(".word") == page.texts(".maps li") == ["a", "giant", "dög"]
    plain = [pixel(page, ".stage canvas", x, 0.75) for x in (0.17, 0.5)]
    assert plain[0] == plain[1]
    page.driver.execute_script("arguments[0].focus()", page.all(".word")[2])
    dark, light = (pixel(page, ".stage canvas", x, 0.75) for x in (0.17, 0.5))
    assert sum(light) > sum(dark) + 50
    # Both pieces of the word count; what lies between them does not.
    page.driver.execute_script("arguments[0].focus()", page.all(".word")[1])
    left, middle, right = (pixel(page, ".stage canvas", x, 0.2) for x in (0.17, 0.5, 0.83))
    assert left == right and sum(left) > sum(middle) + 50
    page.driver.execute_script("document.activeElement.blur()")
    assert [pixel(page, ".stage canvas", x, 0.75) for x in (0.17, 0.5)] == plain


def test_a_pressed_word_stays(page: Page, files: Path):
    choose(page, files / "it's small.png")
    page.ask()
    word = page.all(".word")[2]
    label = "return document.querySelector('.stage').getAttribute('aria-label')"
    for shown, is_pressed in (("The map of “dög” over the image", "true"), ("The image", "false")):
        word.click()
        page.driver.execute_script(
            "arguments[0].blur(); arguments[0].dispatchEvent(new Event('mouseleave'))", word
        )
        assert word.get_attribute("aria-pressed") == is_pressed
        assert page.driver.execute_script(label) == shown


def test_a_large_image_is_sent_smaller(page: Page, files: Path):
    told = choose(page, files / "large.jpg")
    assert told.startswith("Sent smaller, as JPEG: 1024 × 512 pixels, ")
    page.ask()
    assert page.texts("#answer .list tbody td")[2] == "1024 x 512"
    # Too many bytes for the server as it is.
    assert (files / "noise.png").stat().st_size > MOST
    assert choose(page, files / "noise.png").startswith("Sent smaller, as JPEG: 200 × 200 pixels")
    page.ask()
    assert page.texts("#answer .list tbody td")[2] == "200 x 200"


def test_what_is_no_image_has_a_problem_in_words(page: Page, files: Path):
    assert choose(page, files / "text.png") == "1 kB"
    page.ask()
    assert page.one(".headline").text == "There is no caption."
    words = "The model could not read it: it is no image of a known format."
    assert page.one("#answer .quiet").text == words
    assert not page.all(".word") and not page.all(".preview canvas")


def test_a_file_can_be_dropped(page: Page):
    page.driver.execute_script(DROP, "x" * 100)
    page.wait(lambda: page.one(".told").text == "1 kB")
    page.ask()
    assert page.one(".headline").text == "There is no caption."


def test_what_is_too_large_is_not_sent(page: Page):
    page.driver.execute_script(DROP, "x" * MOST)
    page.wait(lambda: page.one(".told").text.startswith("The file is too large: it has 60 kB"))
    assert "at most 45 kB" in page.one(".told").text
    page.ask()
    assert page.one("#error").text == page.one(".told").text


def test_nothing_is_chosen(page: Page):
    assert call(page, "images", "imageOf", "other") == "Error: Choose an image first."


def test_examples_are_drawn_shapes(page: Page):
    assert page.one("#field-image").get_attribute("value").endswith(".png")
    button = page.all("#examples button")[1]
    button.click()
    page.wait(lambda: page.all(".word"))
    _, captions = drawn_shapes(2, 4, 192, 1)
    assert button.get_attribute("title") == captions[1][0]
    assert page.texts("#answer .list tbody td")[2] == "192 x 192"


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is missing")
def test_the_call_for_a_shell_is_exact(page: Page, files: Path):
    commands = []
    for name in ("it's small.png", "noise.png"):
        choose(page, files / name)
        commands.append(page.one("#call").text)
    assert "base64 <" not in commands[0] and "base64 < 'noise.png'" in commands[1]
    (files / "noise.png").write_bytes((files / "large.jpg").read_bytes())  # that the server takes
    for command, second in zip(commands, ("64 x 48", "2000 x 1000")):
        done = subprocess.run(
            ["bash", "-c", command], cwd=files, capture_output=True, text=True, check=True
        )
        assert json.loads(done.stdout)["outputs"]["nbest_caption"][0][:2] == [CAPTION, second]


def test_the_server_gives_examples_to_models_of_images(url: str):
    found = requests.get(f"{url}/web/models", timeout=9).json()
    assert found["max_request_bytes"] == MOST
    model = found["models"][0]
    assert (model["task"], model["image_fit"]) == ("captioning", "squeeze")
    assert len(model["examples"]) == 3
    image = model["examples"][0]["image"]
    head, code = image["url"].split(",")
    assert head == "data:image/png;base64"
    pixels = tf.io.decode_png(base64.b64decode(code)).numpy()
    assert (pixels == drawn_shapes(1, 4, 192)[0][0]).all()


def test_pieces_become_words(page: Page):
    maps = [[[float(i), 0.0]] for i in range(6)]
    tokens = ["▁a", "▁", "gi", "ant", "▁New▁York", "</s>", ""]
    words = call(page, "captions", "captionWords", tokens, [*maps, [[9, 9]]])
    assert [word["text"] for word in words] == ["a", "giant", "New York"]
    assert [word["map"] for word in words] == [[[0, 0]], [[2, 0]], [[4, 0]]]
    # Without a mark of a word; a piece that is unknown; bytes that are not UTF-8.
    words = call(page, "captions", "captionWords", ["x", "▁<unk>", "▁", "<unk>", "<0xFF>"], maps)
    assert [word["text"] for word in words] == ["x", "<unk>", "⁇\ufffd"]
    assert call(page, "captions", "captionWords", ["</s>", ""], maps) == []


def test_maps_are_upscaled_as_tensorflow_does(page: Page):
    weights = np.random.default_rng(1).random((3, 5)).astype(np.float32)
    found = call(page, "captions", "upscaled", weights.tolist(), 7, 20)
    values = [found[str(i)] for i in range(140)] if isinstance(found, dict) else found
    expected = tf.image.resize(weights[..., None], (7, 20)).numpy().ravel()
    np.testing.assert_allclose(values, expected, atol=1e-6)


def test_sizes_and_parts(page: Page):
    assert call(page, "images", "fitted", 4000, 3000, 1024) == [1024, 768]
    assert call(page, "images", "fitted", 64, 48, 1024) == [64, 48]
    assert call(page, "images", "fitted", 64, 48, 512, True) == [512, 384]
    assert call(page, "images", "fitted", 9000, 2, 1024) == [1024, 1]
    assert call(page, "images", "sizeInWords", 1_250_000) == "1.3 MB"
    square = [[0.0] * 2] * 2
    assert call(page, "captions", "coveredPart", 300, 200, square, "squeeze") == [0, 0, 300, 200]
    assert call(page, "captions", "coveredPart", 300, 200, square, "crop") == [50, 0, 200, 200]
    assert call(page, "captions", "coveredPart", 200, 300, square, "crop") == [0, 50, 200, 200]
