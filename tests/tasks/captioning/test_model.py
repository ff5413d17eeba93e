"""Images to captions: row by row, in all forms of images, and what training does."""

import json
import os
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pandas
import pytest
import tensorflow as tf

from kbert.models.weights import encoder_arrays
from kbert.tasks.captioning.model import Captioner
from kbert.text.subword import Subword
from tests.small_captioner import (
    files_of,
    shapes,
    shared_captioner,
    small_captioner,
    small_network,
)

IMAGES, CAPTIONS = shapes()


@pytest.fixture(scope="module")
def files() -> list[bytes]:
    return files_of(IMAGES[:5])


@pytest.mark.parametrize(
    "kind", ["soft", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("hard", "image"))]
)
def test_a_row_does_not_depend_on_the_others(kind: str, files: list[bytes]):
    model = shared_captioner(kind, nbest=2)
    together = model.caption_columns(files)
    assert len(set(together["caption"].tolist())) > 1  # else this test would say little
    for row, file in enumerate(files):
        alone = model.caption_columns([file])
        for name, array in together.items():
            if array.dtype == object:
                assert array[row : row + 1].tolist() == alone[name].tolist()
            else:
                np.testing.assert_allclose(array[row], alone[name][0], atol=1e-5)


def test_more_images_than_a_chunk_and_none(files: list[bytes]):
    model = shared_captioner(nbest=2)
    few = [text.decode() for text in model.caption_columns(files)["caption"]]
    assert model.captions(files * 4) == few * 4  # a chunk is 16
    assert model.captions(files * 14) == few * 14  # a call is 64
    assert model.captions([]) == [] and model.answers([]) == []


def test_the_score_is_that_of_the_caption(files: list[bytes]):
    """The log-probability of its pieces and the end by the decoder, divided by their number."""
    model = shared_captioner(nbest=2)
    found = model.search(model.extractor(IMAGES[:5]))
    shown = model.caption_columns(files)
    for row in range(5):
        for place in range(2):
            count = int(found.lengths[row, place])
            ids = found.token_ids.numpy()[row, place, :count]
            read = np.array([[model.subwords.start_id, *ids[:-1]]])
            inputs = {"pixels": IMAGES[row : row + 1], "target_token_ids": read}
            logs = tf.nn.log_softmax(model(inputs)["logits"][0]).numpy()
            score = logs[np.arange(count), ids].sum() / count
            assert float(shown["nbest_score"][row, place]) == pytest.approx(score, abs=1e-4)
    assert (np.diff(shown["nbest_score"], axis=1) <= 0).all()
    np.testing.assert_array_equal(shown["score"], shown["nbest_score"][:, 0])
    np.testing.assert_array_equal(shown["caption"], shown["nbest_caption"][:, 0])


@pytest.mark.slow
def test_greedy_search_takes_the_likeliest_piece(files: list[bytes]):
    model = small_captioner(beam_size=1)
    biases = np.zeros(len(model.subwords))
    biases[model.subwords.end_id] = 11.0  # some captions end
    model.decoder.output_layer.bias.assign(biases)
    memory = model.decoder.encode({"features": model.extractor(IMAGES[:5])})
    ids = np.full((5, 1), model.subwords.start_id)
    ended, totals, counts = np.zeros(5, bool), np.zeros(5), np.zeros(5)
    for _ in range(model.max_length):
        states = model.decoder.target_states(ids, memory)
        logs = tf.nn.log_softmax(model.decoder.logits(states)[:, -1]).numpy()
        totals += np.where(ended, 0, logs.max(-1))
        counts += ~ended
        ids = np.concatenate([ids, logs.argmax(-1)[:, None]], axis=1)
        ended |= ids[:, -1] == model.subwords.end_id
    shown = model.caption_columns(files)
    assert ended.any() and len(set(counts[ended])) > 1
    np.testing.assert_allclose(shown["score"][ended], (totals / counts)[ended], atol=1e-4)


def test_all_forms_of_images(files: list[bytes], tmp_path: Path):
    model = shared_captioner(nbest=2)
    paths = []
    for number, file in enumerate(files):
        paths.append(tmp_path / f"{number}.png")
        paths[-1].write_bytes(file)
    known = model.predict(IMAGES[:5])
    assert len(known) == 5 and all(isinstance(text, str) for text in known)
    names = [os.fspath(path) for path in paths]
    for form in (
        *(files, paths, names, list(IMAGES[:5])),
        {"image": names, "caption": ["unused"] * 5},
        pandas.DataFrame({"image": names}),
        pandas.Series(names),
        [files[0], paths[1], names[2], IMAGES[3], files[4]],
    ):
        assert model.predict(form) == known
    assert model.predict_on_batch(files) == known
    with pytest.raises(FileNotFoundError, match=r"row 1: .*exists. Received: '.*gone.png'"):
        model.predict([names[0], str(tmp_path / "gone.png")])
    for one in (names[0], files[0]):
        with pytest.raises(TypeError, match="must be|must hold"):
            model.predict(one)
    with pytest.raises(ValueError, match=r"must have the column image.*\['caption'\]"):
        model.predict({"caption": ["a"]})


@pytest.mark.slow
def test_a_new_setting_or_weight_is_a_new_search(files: list[bytes]):
    model = small_captioner(beam_size=1)
    before = model.captions(files)
    model.max_length = 2
    assert model.captions(files) != before
    bias = np.zeros(len(model.subwords))
    bias[model.subwords.end_id] = 99.0
    model.decoder.output_layer.bias.assign(bias)
    assert model.captions(files) == [""] * 5


def test_answers(files: list[bytes]):
    model = shared_captioner(nbest=2)
    found = model.answers(files[:2])
    columns = model.caption_columns(files[:2])
    for row, answer in enumerate(found):
        assert list(answer) == ["caption", "score", "nbest", "problem"]
        assert answer["problem"] == "" and answer["nbest"][0] == {
            "caption": answer["caption"],
            "score": answer["score"],
        }
        assert answer["caption"] == columns["caption"][row].decode()
        assert len(answer["nbest"]) == 2
        assert type(answer["score"]) is float


@pytest.mark.slow
def test_a_life_in_a_file(tmp_path: Path):
    model = small_captioner(label_smoothing=0.1, beam_size=1)
    model.compile(run_eagerly=True)
    model.fit(IMAGES, CAPTIONS, batch_size=12, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert type(again) is Captioner
    assert json.dumps(again.get_config()) == json.dumps(model.get_config())
    assert again.predict(IMAGES[:4]) == model.predict(IMAGES[:4])
    before, after = (encoder_arrays(one) for one in (model, again))
    assert sorted(before) == sorted(after)
    for name in before:
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)
    assert int(again.optimizer.iterations) == 2


@pytest.mark.parametrize(
    "options, message",
    [
        ({"nbest": 3}, r"`nbest` must be in \[1, beam_size=2\]. Received: nbest=3"),
        ({"nbest": 0}, r"`nbest` must be in \[1, beam_size=2\]. Received: nbest=0"),
        ({"max_length": 41}, r"`max_length` must be in \[1, 40\].*Received: max_length=41"),
        ({"max_length": 0}, "`max_length` must be in"),
        ({"length_penalty": "linear"}, "linear"),
        ({"image_fit": "stretch"}, "`fit` must be one of|stretch"),
    ],
)
def test_wrong_settings(options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        small_captioner(**options)


def test_parts_that_do_not_fit(tmp_path: Path):
    model = small_captioner()
    other = type(model.extractor)(small_network(channels=5))
    with pytest.raises(ValueError, match="as wide as the extractor's. Received: 6 and 5"):
        Captioner(model.decoder, other, model.subwords)
    decoder = type(model.decoder)(61, 6, 8)
    message = "`subwords` must have as many pieces as the decoder has embeddings, 61. Received: 60"
    with pytest.raises(ValueError, match=message):
        Captioner(decoder, model.extractor, Subword(model.subwords.model))
