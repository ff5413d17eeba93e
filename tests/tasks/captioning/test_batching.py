"""Images and captions in all forms to batches, and what training on them does."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import tensorflow as tf

from kbert.models.weights import encoder_arrays
from kbert.tasks.captioning.batching import images_and_captions, is_numbers
from tests.small_captioner import files_of, shapes, shared_captioner, small_captioner

IMAGES, CAPTIONS = shapes()


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("images")
    found = []
    for number, file in enumerate(files_of(IMAGES)):
        found.append(folder / f"{number}.png")
        found[-1].write_bytes(file)
    return found


def content(dataset: Any) -> list[list[Any]]:
    return [
        [*(inputs[name].numpy().tolist() for name in sorted(inputs)), targets.numpy().tolist()]
        for inputs, targets in dataset
    ]


def test_all_forms_are_the_same_batches(paths: list[Path]):
    model = shared_captioner()
    names = [os.fspath(path) for path in paths]
    several = pandas.DataFrame({"image": names, "caption": CAPTIONS})
    known = content(model.batching.text_batches(IMAGES, CAPTIONS, batch_size=5))
    assert len(known) == 5 and sum(len(targets) for *_, targets in known) == 24
    for x, y in (
        (files_of(IMAGES), CAPTIONS),
        (paths, CAPTIONS),
        ({"image": paths, "caption": CAPTIONS}, None),
        (several, None),
        (several["image"], several["caption"]),
    ):
        found = content(model.batching.text_batches(x, y, batch_size=5))
        np.testing.assert_array_equal(found[0][0], known[0][0])
        assert [batch[1:] for batch in found] == [batch[1:] for batch in known]


def test_every_caption_of_an_image_is_learned(paths: list[Path]):
    model = shared_captioner()
    captions: list[Any] = ["A red Star", ["a star", "something red", "red"], b"it", []]
    packed = model.pack(IMAGES[:4], captions)
    assert packed.rows.tolist() == [0, 1, 1, 1, 2] and len(packed) == 5
    assert packed.images.shape == (4, 16, 6) and not packed.are_pixels
    texts = ["A red Star", "a star", "something red", "red", "it"]
    lengths = [len(model.subwords.tokens(text)) + 1 for text in texts]
    assert packed.captions.lengths.tolist() == lengths
    ids = packed.captions.token_ids[: lengths[0]]
    pieces = [model.subwords.pieces[number] for number in ids]
    assert pieces == [*model.subwords.tokens("a red star"), "</s>"]  # of nfkc_cf


def test_long_captions_are_cut_at_what_the_decoder_knows():
    packed = shared_captioner().pack(IMAGES[:1], ["red " * 100])
    assert packed.captions.lengths.tolist() == [40] and packed.captions.truncated.tolist() == [True]


def test_a_network_that_learns_takes_pixels():
    model = small_captioner(train_extractor=True)
    packed = model.pack(IMAGES[:3], CAPTIONS[:3])
    assert packed.are_pixels
    np.testing.assert_array_equal(packed.images, IMAGES[:3])
    (inputs, _), *_ = model.dataset(packed, batch_size=4)
    assert set(inputs) == {"pixels", "target_token_ids"} and inputs["pixels"].dtype == "uint8"


@pytest.mark.parametrize("learns", [False, True])
def test_which_weights_training_changes(learns: bool, paths: list[Path]):
    model = small_captioner(train_extractor=learns)
    model.compile("sgd", run_eagerly=True)
    before = encoder_arrays(model)
    assert any("second/kernel" in name for name in before)
    model.fit({"image": paths[:4], "caption": CAPTIONS[:4]}, batch_size=12, verbose=0)
    changed = {n for n, x in encoder_arrays(model).items() if not np.array_equal(x, before[n])}
    of_network = {name for name in before if "small_network" in name or "first" in name}
    of_network |= {name for name in before if "second" in name}
    of_decoder = set(before) - of_network
    assert len(of_network) == 4
    assert changed == (of_decoder | of_network if learns else of_decoder)


# Attention to one place is beside this: its gradients are tested with its losses.
@pytest.mark.parametrize("kind", ["soft", pytest.param("hard", marks=pytest.mark.slow), "image"])
def test_it_learns(kind: str):
    """One step after another on the same batch, of a table and of arrays."""
    model = small_captioner(kind)
    model.compile("adam", run_eagerly=False)
    model.optimizer.learning_rate.assign(0.02)
    packed = model.pack(IMAGES, CAPTIONS)
    (inputs, targets), *_ = model.dataset(packed, batch_size=24)
    before = model.test_on_batch(inputs, targets, return_dict=True)
    for _ in range(80):
        model.train_on_batch(inputs, targets)
    after = model.test_on_batch(inputs, targets, return_dict=True)
    assert after["loss"] < 0.6 * before["loss"]
    assert after["accuracy"] > before["accuracy"] + 0.1


def test_evaluation_of_all_forms_alike(paths: list[Path]):
    model = small_captioner()
    model.compile(run_eagerly=True)
    images, captions = IMAGES[:4], CAPTIONS[:4]
    wanted = model.evaluate(images, captions, verbose=0, return_dict=True)
    packed = model.pack(images, captions)
    for x, y in (
        (pandas.DataFrame({"image": paths[:4], "caption": captions}), None),
        (model.dataset(packed, batch_size=5), None),
    ):
        found = model.evaluate(x, y, verbose=0, return_dict=True)
        assert found == pytest.approx(wanted, rel=1e-4)
    # By hand: the mean over all pieces.
    total, count = 0.0, 0
    for inputs, targets in model.dataset(packed, batch_size=24):
        logs = tf.nn.log_softmax(model(inputs)["logits"]).numpy()
        rows, places = np.nonzero(targets.numpy() >= 0)
        total -= logs[rows, places, targets.numpy()[rows, places]].sum()
        count += len(rows)
    assert wanted["loss"] == pytest.approx(total / count, rel=1e-4)
    assert wanted["perplexity"] == pytest.approx(np.exp(total / count), rel=1e-3)


def test_logits_of_numbers():
    model = shared_captioner("mean")
    inputs = {"features": np.ones((3, 16, 6), "float32"), "target_token_ids": np.ones((3, 4), int)}
    found = model.predict(inputs, batch_size=2)
    assert found["logits"].shape == (3, 4, 60)
    assert is_numbers(inputs) and not is_numbers({"image": []}) and not is_numbers(IMAGES)


@pytest.mark.parametrize(
    "images, captions, error, message",
    [
        (IMAGES[:2], ["one"], ValueError, "as many as `images`.* Received: 1 and 2"),
        (IMAGES[:1], [[]], ValueError, "`captions` must hold at least one text. Received: none"),
        (IMAGES[:1], [[3]], TypeError, "must hold str or bytes only. Received: 3"),
        ([b"text"], ["one"], ValueError, "`images` must be images. Received 1 of 1"),
        (["gone.png"], ["one"], FileNotFoundError, "the image must be a file that exists"),
    ],
)
def test_what_does_not_fit(images: Any, captions: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        shared_captioner().pack(images, captions)


def test_wrong_calls():
    model = small_captioner()
    model.compile()
    with pytest.raises(ValueError, match="`batch_tokens` must be None for images"):
        model.fit(IMAGES, CAPTIONS, batch_tokens=100)
    with pytest.raises(ValueError):
        model.fit(IMAGES)  # without captions
    with pytest.raises(ValueError, match="must have the column image"):
        images_and_captions({"caption": ["a"]}, None)


def test_images_of_an_iterator_and_of_a_table_in_another_order(paths: list[Path]):
    model = shared_captioner()
    wanted = model.predict(paths[:3])
    assert model.predict(path for path in paths[:3]) == wanted
    pixels = (image for image in shapes()[0][:3])
    assert model.predict(pixels) == wanted
    with pytest.raises(TypeError, match="`images` must be several images, as a list. Received: "):
        model.predict(paths[0])


def test_broken_images_of_a_table_are_named_by_place(paths: list[Path], tmp_path: Path):
    (broken := tmp_path / "broken.png").write_bytes(b"no image")
    table = pandas.DataFrame({"image": [paths[0], broken], "caption": ["a star"] * 2}, [1, 0])
    with pytest.raises(ValueError, match=r"image 1 \(.*broken.png\)"):
        shared_captioner().pack(table["image"], table["caption"])
    with pytest.raises(TypeError, match=r"`captions\[1\]` must be a text or a list .*: nan"):
        shared_captioner().pack(paths[:2], ["a star", float("nan")])
