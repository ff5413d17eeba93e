"""What is no image harms no other row; and where the pieces of a caption were looked for."""

import io
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from kbert.serving.export.export import export
from kbert.serving.loading.exported import load_export
from kbert.tasks.captioning.model import Captioner
from tests.small_captioner import files_of, shapes, shared_captioner

IMAGES, _ = shapes()
GOOD = files_of(IMAGES[:3])


def encoded(image: Image.Image, format: str) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format)
    return stream.getvalue()


def hostile() -> dict[str, bytes]:
    picture = Image.fromarray(IMAGES[4])
    jpeg = encoded(picture, "JPEG")
    return {
        "broken JPEG": jpeg[: len(jpeg) // 2],
        "JPEG with a broken middle": jpeg[:20] + bytes(40) + jpeg[60:],
        "empty": b"",
        "text": b"a red circle on a blue background",
        "zeros": bytes(1000),
        "header of a PNG": GOOD[0][:30],
        "a thousand gigapixels": GOOD[0][:16] + b"\x00\x0f\x42\x40" * 2 + GOOD[0][24:],
    }


def unusual() -> dict[str, bytes]:
    """Images that are well."""
    picture = Image.fromarray(IMAGES[4])
    alpha = picture.copy()
    alpha.putalpha(100)
    return {
        "one pixel": encoded(picture.resize((1, 1)), "PNG"),
        "alpha": encoded(alpha, "PNG"),
        "CMYK": encoded(picture.convert("CMYK"), "JPEG"),
        "gray": encoded(picture.convert("L"), "PNG"),
        "wide": encoded(picture.resize((300, 7)), "GIF"),
    }


@pytest.fixture(scope="module")
def model() -> Captioner:
    return shared_captioner(nbest=2)


@pytest.fixture(scope="module")
def mixed() -> tuple[list[bytes], np.ndarray]:
    """Files, the good ones among the others, and which are broken."""
    bad, odd = [*hostile().values()], [*unusual().values()]
    files = [bad[0], GOOD[0], *bad[1:4], *odd, GOOD[1], *bad[4:], GOOD[2]]
    return files, np.array([file in bad for file in files])


def check_rows(found: dict[str, np.ndarray], good: dict[str, np.ndarray], mixed: object) -> None:
    files, is_bad = mixed
    np.testing.assert_array_equal([len(problem) > 0 for problem in found["problem"]], is_bad)
    rows = [files.index(file) for file in GOOD]
    for name in found:
        if found[name].dtype == object:
            assert found[name][rows].tolist() == good[name].tolist(), name
        else:
            np.testing.assert_allclose(found[name][rows], good[name], atol=1e-5, err_msg=name)
    assert found["caption"][is_bad].tolist() == [b""] * is_bad.sum()
    np.testing.assert_array_equal(found["score"][is_bad], 0.0)
    assert np.isfinite(found["score"]).all() and (found["score"][~is_bad] < 0).all()


def test_good_rows_are_as_they_are_alone(model: Captioner, mixed: tuple[list[bytes], np.ndarray]):
    found, good = model.caption_columns(mixed[0]), model.caption_columns(GOOD)
    assert len(set(good["caption"].tolist())) > 1
    check_rows(found, good, mixed)
    assert (found["nbest_caption"][mixed[1]] == b"").all()


def test_a_batch_without_any_good_one(model: Captioner):
    found = model.caption_columns([*hostile().values()])
    assert all(found["problem"].tolist()) and not any(found["caption"].tolist())
    maps = model.caption_columns([b"", b"no"], maps=True)
    assert maps["tokens"].shape == (2, 0) and maps["attention"].shape == (2, 0, 4, 4)
    none = model.caption_columns([], maps=True)
    assert none["tokens"].shape == (0, 0) and none["attention"].shape == (0, 0, 4, 4)


def test_warnings_and_answers_name_the_rows(model: Captioner):
    with pytest.warns(UserWarning) as told:
        texts = model.captions([GOOD[0], b"", GOOD[1], b"text"])
    rows = [str(one.message).split(":")[0] for one in told]
    assert rows == ["`images`, row 1", "`images`, row 3"]
    assert all("its caption is empty" in str(one.message) for one in told)
    assert texts[1] == texts[3] == "" and texts[0] and texts[2]
    answer = model.answers([b"text"])[0]
    assert answer["caption"] == "" and answer["score"] == 0.0 and answer["problem"]


def test_unusual_images_look_as_they_should(model: Captioner):
    """CMYK, nearly the same pixels: features near those of the picture; alpha is on white."""
    pixels = {
        name: np.asarray(Image.open(io.BytesIO(file)).convert("RGB").resize((32, 32)))
        for name, file in unusual().items()
        if name in ("CMYK", "gray")
    }
    for name, known in pixels.items():
        found = model.caption_columns([unusual()[name]])
        wanted = model.caption_columns(known[None])
        assert abs(found["score"][0] - wanted["score"][0]) < 0.05, name
    assert model.answers([unusual()["one pixel"]])[0]["problem"] == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["soft", "image"])
def test_maps_of_attention(kind: str, mixed: tuple[list[bytes], np.ndarray]):
    model = shared_captioner(kind, nbest=2)
    files, is_bad = mixed
    found = model.caption_columns(files, maps=True)
    captions = model.caption_columns(files)
    assert found["caption"].tolist() == captions["caption"].tolist()
    np.testing.assert_allclose(found["score"], captions["score"], atol=1e-5)
    np.testing.assert_array_equal([len(one) > 0 for one in found["problem"]], is_bad)
    tokens, maps = found["tokens"], found["attention"]
    assert maps.shape == (*tokens.shape, 4, 4)
    is_real = tokens != b""
    sums = maps.sum(axis=(2, 3))
    np.testing.assert_allclose(sums[is_real], 1.0, atol=1e-5)
    np.testing.assert_array_equal(maps[~is_real], 0.0)
    assert is_real[~is_bad].any(axis=1).all() and not is_real[is_bad].any()
    ids = {piece: number for number, piece in enumerate(model.subwords.pieces)}
    for row in np.flatnonzero(~is_bad):
        spelled = [piece.decode() for piece in tokens[row][is_real[row]]]
        spelled = spelled[:-1] if spelled[-1] == "</s>" else spelled
        numbers = [[ids[piece] for piece in spelled]]
        text = model.subwords.detokenize(tf.constant(numbers, tf.int32, (1, len(spelled))))
        assert text.numpy()[0] == found["caption"][row]
    # Padding is at the end, and the maps are those of the same row alone.
    assert (np.diff(is_real.astype(int), axis=1) <= 0).all()
    row = files.index(GOOD[1])
    alone = model.caption_columns([GOOD[1]], maps=True)["attention"][0]
    np.testing.assert_allclose(maps[row, : len(alone)], alone, atol=1e-5)


def test_the_maps_are_the_decoders(model: Captioner):
    """The weights of `memory_scores` for the found caption, place by place."""
    found = model.caption_columns(GOOD[:1], maps=True)
    pieces = [piece for piece in found["tokens"][0].tolist() if piece]
    ids = [model.subwords.pieces.index(piece.decode()) for piece in pieces]
    memory = model.decoder.encode({"features": model.extractor(IMAGES[:1])})
    read = np.array([[model.subwords.start_id, *ids[:-1]]])
    (weights,) = model.decoder.memory_scores(read, memory)
    known = np.reshape(weights, (len(ids), 4, 4))
    np.testing.assert_allclose(found["attention"][0, : len(ids)], known, atol=1e-5)


def test_the_mean_of_all_places_has_no_maps(tmp_path: Path):
    model = shared_captioner("mean")
    with pytest.raises(ValueError, match="drawn by the attention to its image"):
        model.caption_columns(GOOD, maps=True)
    assert set(model.signatures()) == {"serving_default"}
    assert set(shared_captioner(nbest=2).signatures()) == {"serving_default", "attention"}


@pytest.mark.slow
def test_the_export_answers_as_the_model_does(
    model: Captioner, mixed: tuple[list[bytes], np.ndarray], tmp_path: Path
):
    loaded = load_export(export(model, tmp_path, max_batch_size=4))
    assert loaded.metadata["class"] == "Captioner"
    good = {
        "serving_default": model.caption_columns(GOOD),
        "attention": model.caption_columns(GOOD, maps=True),
    }
    assert set(loaded.metadata["signatures"]) == set(good)
    found = loaded.run({"image": mixed[0]})
    check_rows(found, good["serving_default"], mixed)
    whole = model.caption_columns(mixed[0])
    assert found["problem"].tolist() == whole["problem"].tolist()
    maps = loaded.run({"image": GOOD}, "attention")
    np.testing.assert_allclose(maps["attention"], good["attention"]["attention"], atol=1e-5)
    assert maps["tokens"].tolist() == good["attention"]["tokens"].tolist()
    assert loaded.answers(GOOD)[0]["caption"] == model.answers(GOOD)[0]["caption"]
