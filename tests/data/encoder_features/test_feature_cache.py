"""Features on disk. The encoder of these tests is by hand: the states of a token with id i at
place p of a text are (i, p, i + p / 2)."""

import json
import logging
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.encoder_features import feature_cache
from kbert.data.encoder_features.feature_cache import cached_features, feature_key
from kbert.data.encoder_features.frozen_encoder import FrozenEncoder
from kbert.storage.growing_file import DATA, RECORD

TEXTS = [[3, 1], [7, 8, 9, 2], [5], [3, 1], [6, 2, 4, 4], [5], [], [1, 3]]
DIFFERENT, TOKENS = 6, 4 + 4 + 2 + 2 + 1


def packed(texts=TEXTS, segments=0) -> PackedExamples:
    lengths = np.array([len(text) for text in texts], "int32")
    ids = np.array([i for text in texts for i in text], "int32")
    starts = np.cumsum(lengths, dtype="int64") - lengths
    return PackedExamples(
        ids, np.full_like(ids, segments), starts, lengths, np.zeros(len(texts), bool)
    )


class Encoder:
    """Counts what it is asked, and can be told to stop."""

    def __init__(self, fingerprint="weights 1", stop_after=None):
        self.batches: list[list[list[int]]] = []
        self._stop_after = stop_after
        description = {"class": "ByHand"}
        self.frozen = FrozenEncoder(self._encode, 3, fingerprint, description)

    def _encode(self, inputs):
        if len(self.batches) == self._stop_after:
            raise KeyboardInterrupt("stopped")
        ids, real = inputs["token_ids"], inputs["padding_mask"]
        self.batches.append([row[mask].tolist() for row, mask in zip(ids, real)])
        places = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
        return np.stack([ids, places, ids + places / 2], axis=-1).astype("float32")


def expected(text):
    return [[i, p, i + p / 2] for p, i in enumerate(text)]


def check(features, texts=TEXTS):
    assert len(features) == len(texts)
    for row, text in enumerate(texts):
        found = features.batch([row])[0]
        np.testing.assert_array_equal(found.astype("float64"), np.reshape(expected(text), (-1, 3)))
    width = max(map(len, texts), default=0)
    together = features.batch(np.arange(len(texts)), width + 1)
    for row, text in zip(together, texts):
        np.testing.assert_array_equal(row[len(text) :], 0)
        np.testing.assert_array_equal(row[: len(text)], np.reshape(expected(text), (-1, 3)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_made_once_and_then_read(tmp_path, dtype):
    first, second = Encoder(), Encoder()
    features, report = cached_features(packed(), first.frozen, tmp_path / "new", dtype)
    check(features)
    assert features.states.dtype == tf.as_dtype(dtype).as_numpy_dtype
    size = TOKENS * 3 * {"float32": 4}.get(dtype, 2)
    assert report.texts == len(TEXTS) and report.distinct_texts == DIFFERENT
    assert report.tokens == report.encoded_tokens == TOKENS
    assert report.file_bytes == size == os.path.getsize(report.folder / DATA)
    assert report.tokens_per_second > 0
    again, reread = cached_features(packed(), second.frozen, tmp_path / "new", dtype)
    check(again)
    assert not second.batches and reread.encoded_tokens == 0 == reread.tokens_per_second
    assert reread.folder == report.folder


def test_batches_of_like_length_and_equal_texts_once(tmp_path):
    encoder = Encoder()
    cached_features(packed(), encoder.frozen, tmp_path, batch_tokens=4)
    assert encoder.batches == [[[7, 8, 9, 2]], [[6, 2, 4, 4]], [[3, 1], [1, 3]], [[5]]]


def test_the_folder_says_what_it_was_made_of(tmp_path):
    _, report = cached_features(packed(), Encoder().frozen, tmp_path)
    key = feature_key(packed(), "weights 1", "float16")
    assert report.folder == tmp_path / key
    record = json.loads((report.folder / RECORD).read_text())
    assert record["made_of"] == {
        "format": "kbert text features 1",
        "key": key,
        "texts": len(TEXTS),
        "distinct_texts": DIFFERENT,
        "tokens": TOKENS,
        "hidden_dim": 3,
        "dtype": "float16",
        "encoder": {"class": "ByHand", "fingerprint": "weights 1"},
    }
    assert sorted(path.name for path in report.folder.iterdir()) == [RECORD, DATA]


def test_the_report_in_words(tmp_path):
    _, report = cached_features(packed(), Encoder().frozen, tmp_path)
    assert "features of 8 texts, 6 of them different, with 13 tokens: 78 bytes; 13 tok" in str(
        report
    )
    _, report = cached_features(packed(), Encoder().frozen, tmp_path)
    assert str(report).endswith("78 bytes; all were there")


OTHERS = {
    "an id": (packed([[3, 2], *TEXTS[1:]]), "weights 1", "float16"),
    "order": (packed([TEXTS[1], TEXTS[0], *TEXTS[2:]]), "weights 1", "float16"),
    "a border": (packed([[3], [1, 7, 8, 9, 2], *TEXTS[2:]]), "weights 1", "float16"),
    "a text less": (packed(TEXTS[:-1]), "weights 1", "float16"),
    "segments": (packed(segments=1), "weights 1", "float16"),
    "weights": (packed(), "weights 2", "float16"),
    "dtype": (packed(), "weights 1", "bfloat16"),
    "where a name ends": (packed(), "weights 1f", "loat16"),
}


def test_the_key_is_another_for_anything_else():
    keys = [feature_key(*given) for given in OTHERS.values()]
    keys.append(feature_key(packed(), "weights 1", "float16"))
    assert len(set(keys)) == len(keys)
    assert keys[-1] == feature_key(packed(), "weights 1", "float16")


@pytest.mark.parametrize("name", ["an id", "order", "segments", "weights"])
def test_others_do_not_get_what_is_there(tmp_path, name):
    texts, fingerprint, dtype = OTHERS[name]
    cached_features(packed(), Encoder().frozen, tmp_path)
    encoder = Encoder(fingerprint)
    _, report = cached_features(texts, encoder.frozen, tmp_path, dtype)
    assert encoder.batches and report.encoded_tokens == report.tokens
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 2


def test_no_texts_and_none_with_tokens(tmp_path):
    for texts in ([], [[], []]):
        encoder = Encoder()
        features, report = cached_features(packed(texts), encoder.frozen, tmp_path)
        check(features, texts)
        assert report.file_bytes == 0 and not encoder.batches


@pytest.mark.parametrize("stop_after", [0, 1, 2, 3])
def test_a_stopped_one_goes_on(tmp_path, stop_after):
    whole = Encoder()
    _, undisturbed = cached_features(packed(), whole.frozen, tmp_path / "whole", batch_tokens=4)
    options = {"batch_tokens": 4, "record_seconds": 0}
    stopped = Encoder(stop_after=stop_after)
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        cached_features(packed(), stopped.frozen, tmp_path / "x", **options)
    key = undisturbed.folder.name
    assert not (tmp_path / "x" / key).exists()  # nothing to see before all is there
    rest = Encoder()
    told = []
    features, report = cached_features(
        packed(), rest.frozen, tmp_path / "x", **options, progress=lambda *at: told.append(at)
    )
    check(features)
    assert stopped.batches + rest.batches == whole.batches
    done = sum(len(text) for batch in stopped.batches for text in batch)
    assert report.encoded_tokens == TOKENS - done
    assert told[0] == (done, TOKENS) and told[-1] == (TOKENS, TOKENS)
    assert len(told) == 1 + len(rest.batches)
    for name in (DATA, RECORD):
        assert (report.folder / name).read_bytes() == (undisturbed.folder / name).read_bytes()


def test_what_was_not_recorded_is_computed_again(tmp_path):
    stopped, rest = Encoder(stop_after=3), Encoder()
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        cached_features(packed(), stopped.frozen, tmp_path, batch_tokens=4)  # no record in 10 s
    features, report = cached_features(packed(), rest.frozen, tmp_path, batch_tokens=4)
    check(features)
    assert report.encoded_tokens == TOKENS


def test_a_stopped_one_goes_on_in_other_batches(tmp_path):
    stopped, rest = Encoder(stop_after=2), Encoder()
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        cached_features(
            packed(), stopped.frozen, tmp_path, batch_tokens=4, record_seconds=0
        )
    features, _ = cached_features(packed(), rest.frozen, tmp_path, batch_tokens=100)
    check(features)
    assert rest.batches == [[[3, 1], [1, 3], [5]]]


def truncated(folder: Path) -> None:
    os.truncate(folder / DATA, 40)


def longer(folder: Path) -> None:
    with (folder / DATA).open("ab") as file:
        file.write(b"\0" * 6)


def other_byte(folder: Path) -> None:
    with (folder / DATA).open("r+b") as file:
        file.seek(17)
        file.write(b"\x55")


def other_json(folder: Path) -> None:
    record = json.loads((folder / RECORD).read_text())
    record["made_of"]["encoder"]["fingerprint"] = "weights 2"
    (folder / RECORD).write_text(json.dumps(record))


def broken_json(folder: Path) -> None:
    (folder / RECORD).write_bytes(b"\xff{")


def no_json(folder: Path) -> None:
    (folder / RECORD).unlink()


def no_data(folder: Path) -> None:
    (folder / DATA).unlink()


def of_other_texts(folder: Path) -> None:
    other = packed([[9, 9], *TEXTS[1:]])
    _, report = cached_features(other, Encoder().frozen, folder.parent)
    shutil.rmtree(folder)
    os.rename(report.folder, folder)


def a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("in the way")


@pytest.mark.parametrize(
    "damage",
    [
        truncated,
        longer,
        other_byte,
        other_json,
        broken_json,
        no_json,
        no_data,
        of_other_texts,
        a_file,
    ],
)
def test_what_is_damaged_is_made_anew_and_never_served(tmp_path, damage, caplog):
    _, before = cached_features(packed(), Encoder().frozen, tmp_path)
    content = (before.folder / DATA).read_bytes()
    damage(before.folder)
    encoder = Encoder()
    with caplog.at_level(logging.WARNING):
        features, report = cached_features(packed(), encoder.frozen, tmp_path)
    check(features)
    assert report.encoded_tokens == TOKENS
    assert (report.folder / DATA).read_bytes() == content
    assert [m for m in caplog.messages if "are damaged, and are made anew" in m] == caplog.messages
    assert len(caplog.messages) == 1
    _, report = cached_features(packed(), encoder.frozen, tmp_path)
    assert report.encoded_tokens == 0


def test_a_damaged_beginning_is_begun_anew(tmp_path, caplog):
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        cached_features(
            packed(), Encoder(stop_after=2).frozen, tmp_path, batch_tokens=4, record_seconds=0
        )
    (partial,) = tmp_path.glob(".*.partial")
    other_byte(partial)
    with caplog.at_level(logging.WARNING):
        features, report = cached_features(packed(), Encoder().frozen, tmp_path)
    check(features)
    assert report.encoded_tokens == TOKENS
    assert "cannot be continued, and is begun anew" in caplog.text


def test_of_two_at_once_one_computes(tmp_path, caplog):
    encoders = [Encoder(), Encoder()]
    inside, results = threading.Barrier(2), {}
    slow = threading.Event()

    def run(number):
        inside.wait(20)
        results[number] = cached_features(
            packed(),
            encoders[number].frozen,
            tmp_path,
            batch_tokens=4,
            progress=lambda done, total: slow.wait(0.1),
        )

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    with caplog.at_level(logging.WARNING):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    for features, _ in results.values():
        check(features)
    encoded = sorted(report.encoded_tokens for _, report in results.values())
    assert encoded == [0, TOKENS]
    assert "another process makes" in caplog.text and "waiting for it" in caplog.text


def test_a_whole_cache_is_read_where_nothing_can_be_written(tmp_path, monkeypatch):
    cached_features(packed(), Encoder().frozen, tmp_path)

    def locked(*args):
        pytest.fail("nothing needs to be written")

    monkeypatch.setattr(feature_cache, "file_lock", locked)
    check(cached_features(packed(), Encoder().frozen, tmp_path)[0])


def test_readers_keep_what_is_made_anew_beside_them(tmp_path):
    features, report = cached_features(packed(), Encoder().frozen, tmp_path)
    no_json(report.folder)
    cached_features(packed(), Encoder().frozen, tmp_path)
    check(features)


def test_numbers_that_the_type_cannot_hold(tmp_path):
    big = FrozenEncoder(lambda i: np.full((*i["token_ids"].shape, 1), 7e4, "float32"), 1, "big")
    message = "must be one that holds states up to 70000. Received: dtype='float16'"
    with pytest.raises(ValueError, match=message):
        cached_features(packed(), big, tmp_path)
    features, _ = cached_features(packed(), big, tmp_path, "bfloat16")
    # bfloat16 has 8 significant bits: between 2^16 and 2^17 every 512th number, 136.7 * 512.
    np.testing.assert_array_equal(features.batch([2]), [[[137 * 512]]])


def test_an_unknown_type(tmp_path):
    with pytest.raises(ValueError, match=r"`dtype` must be one of .*Received: dtype='int8'"):
        cached_features(packed(), Encoder().frozen, tmp_path, "int8")
