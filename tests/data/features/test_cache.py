"""Features on disk. The encoder of these tests is by hand: the states of a token with id i at
place p of a text are (i, p, i + p / 2)."""

import errno
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
from kbert.data.features import cache as feature_cache
from kbert.data.features.cache import (
    ABOUT,
    cache_key,
    cached_features,
    text_digests,
)
from kbert.data.features.text_features import FrozenEncoder

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


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def expected(text):
    return [[i, p, i + p / 2] for p, i in enumerate(text)]


def check(features, texts=TEXTS):
    assert len(features) == len(texts)
    for row, text in enumerate(texts):
        found = features.batch([row])[0]
        np.testing.assert_array_equal(found.astype("float64"), np.reshape(expected(text), (-1, 3)))
    together = features.batch(np.arange(len(texts)))
    for row, text in zip(together, texts):
        np.testing.assert_array_equal(row[len(text) :], 0)
        np.testing.assert_array_equal(row[: len(text)], np.reshape(expected(text), (-1, 3)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_made_once_and_then_read(tmp_path, dtype):
    first, second = Encoder(), Encoder()
    features, report = cached_features(packed(), first.frozen, tmp_path / "new", dtype)
    check(features)
    assert features.dtype == tf.as_dtype(dtype).as_numpy_dtype
    size = TOKENS * 3 * {"float32": 4}.get(dtype, 2)
    assert report.texts == len(TEXTS) and report.distinct_texts == DIFFERENT
    assert report.tokens == report.encoded_tokens == TOKENS
    assert report.file_bytes == size
    (shard,) = shards(report.folder)
    # Beside the states: at most 20 bytes a text, and a header.
    assert size < shard.stat().st_size < size + 20 * DIFFERENT + 400
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
    assert report.folder == tmp_path / cache_key("weights 1", "float16")
    assert json.loads((report.folder / ABOUT).read_text()) == {
        "format": "kbert text features 2",
        "hidden_dim": 3,
        "dtype": "float16",
        "encoder": {"class": "ByHand", "fingerprint": "weights 1"},
    }
    (shard,) = shards(report.folder)
    assert sorted(path.name for path in report.folder.iterdir()) == sorted([ABOUT, shard.name])


def test_the_report_in_words(tmp_path):
    _, report = cached_features(packed(), Encoder().frozen, tmp_path)
    assert "features of 8 texts, 6 of them different, with 13 tokens: 78 bytes; 13 tok" in str(
        report
    )
    _, report = cached_features(packed(), Encoder().frozen, tmp_path)
    assert str(report).endswith("78 bytes; all were there")


# Other texts or another encoder, and the number of texts that must be computed for them.
OTHERS = {
    "an id": (packed([[3, 2], *TEXTS[1:]]), "weights 1", "float16", 1),
    "order": (packed([TEXTS[1], TEXTS[0], *TEXTS[2:]]), "weights 1", "float16", 0),
    "a border": (packed([[3], [1, 7, 8, 9, 2], *TEXTS[2:]]), "weights 1", "float16", 2),
    "a text less": (packed(TEXTS[:-1]), "weights 1", "float16", 0),
    "segments": (packed(segments=1), "weights 1", "float16", 5),
    "weights": (packed(), "weights 2", "float16", 5),
    "dtype": (packed(), "weights 1", "bfloat16", 5),
    "where a name ends": (packed(), "weights 1f", "loat16", 5),
}


def digests(texts, fingerprint, dtype):
    found = text_digests(texts, cache_key(fingerprint, dtype)).tolist()
    return {one for one, length in zip(found, texts.lengths) if length}


@pytest.mark.parametrize("name", OTHERS)
def test_the_digest_is_another_for_anything_else(name):
    known = digests(packed(), "weights 1", "float16")
    texts, fingerprint, dtype, new = OTHERS[name]
    assert len(known) == 5 and len(digests(texts, fingerprint, dtype) - known) == new
    is_same = (fingerprint, dtype) == ("weights 1", "float16")
    assert (cache_key(fingerprint, dtype) == cache_key("weights 1", "float16")) == is_same


@pytest.mark.parametrize(
    "name", ["an id", "order", "a border", "a text less", "segments", "weights", "dtype"]
)
def test_others_do_not_get_what_is_there(tmp_path, name):
    texts, fingerprint, dtype, new = OTHERS[name]
    cached_features(packed(), Encoder().frozen, tmp_path)
    encoder = Encoder(fingerprint)
    features, report = cached_features(texts, encoder.frozen, tmp_path, dtype)
    for row in range(len(texts)):
        text = texts.token_ids[texts.starts[row] :][: texts.lengths[row]]
        np.testing.assert_array_equal(features.batch([row])[0], np.reshape(expected(text), (-1, 3)))
    assert sum(map(len, encoder.batches)) == new
    assert report.encoded_tokens == sum(len(text) for batch in encoder.batches for text in batch)
    is_same = (fingerprint, dtype) == ("weights 1", "float16")
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == (1 if is_same else 2)


def test_more_texts_are_added_to_what_is_there(tmp_path):
    more = [*TEXTS, [9, 9, 9], [2]]
    _, before = cached_features(packed(), Encoder().frozen, tmp_path)
    encoder, told = Encoder(), []
    features, report = cached_features(
        packed(more), encoder.frozen, tmp_path, progress=lambda *at: told.append(at)
    )
    check(features, more)
    assert encoder.batches == [[[9, 9, 9], [2]]] and report.encoded_tokens == 4
    assert told == [(TOKENS, TOKENS + 4), (TOKENS + 4, TOKENS + 4)]
    assert report.folder == before.folder and len(shards(report.folder)) == 2
    check(cached_features(packed(), Encoder(stop_after=0).frozen, tmp_path)[0])


def test_no_texts_and_none_with_tokens(tmp_path):
    for texts in ([], [[], []]):
        encoder = Encoder()
        features, report = cached_features(packed(texts), encoder.frozen, tmp_path)
        check(features, texts)
        assert report.file_bytes == 0 and not encoder.batches


@pytest.mark.parametrize("stop_after", [0, 1, 2, 3])
def test_a_stopped_one_goes_on(tmp_path, stop_after):
    whole = Encoder()
    options = {"batch_tokens": 4, "shard_seconds": 0}
    _, undisturbed = cached_features(packed(), whole.frozen, tmp_path / "whole", **options)
    stopped = Encoder(stop_after=stop_after)
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        cached_features(packed(), stopped.frozen, tmp_path / "x", **options)
    assert len(shards(tmp_path / "x" / undisturbed.folder.name)) == stop_after
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
    assert contents(report.folder) == contents(undisturbed.folder)


def test_what_is_in_no_shard_is_computed_again(tmp_path):
    stopped, rest = Encoder(stop_after=3), Encoder()
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        cached_features(packed(), stopped.frozen, tmp_path, batch_tokens=4)  # no shard in 30 s
    features, report = cached_features(packed(), rest.frozen, tmp_path, batch_tokens=4)
    check(features)
    assert report.encoded_tokens == TOKENS


def test_a_stopped_one_goes_on_in_other_batches(tmp_path):
    stopped, rest = Encoder(stop_after=2), Encoder()
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        cached_features(
            packed(), stopped.frozen, tmp_path, batch_tokens=4, shard_seconds=0
        )
    features, _ = cached_features(packed(), rest.frozen, tmp_path, batch_tokens=100)
    check(features)
    assert rest.batches == [[[3, 1], [1, 3], [5]]]


def test_shards_have_a_bounded_size(tmp_path, monkeypatch):
    monkeypatch.setattr(feature_cache, "SHARD_BYTES", 4 * 3 * 2 + 1)  # a byte more than a batch
    features, report = cached_features(packed(), Encoder().frozen, tmp_path, batch_tokens=4)
    check(features)
    assert len(shards(report.folder)) == 2
    check(cached_features(packed(), Encoder(stop_after=0).frozen, tmp_path)[0])


def truncated(folder: Path) -> None:
    os.truncate(shards(folder)[0], 40)


def without_its_end(folder: Path) -> None:
    os.truncate(shards(folder)[0], shards(folder)[0].stat().st_size - 1)


def empty(folder: Path) -> None:
    os.truncate(shards(folder)[0], 0)


def longer(folder: Path) -> None:
    with shards(folder)[0].open("ab") as file:
        file.write(b"\0" * 6)


def other_state(folder: Path) -> None:
    content = shards(folder)[0].read_bytes()
    state = np.float16(9).tobytes()  # token 9, at place 2 of its text: 9, 2, 10
    place = content.index(state + np.array([2, 10], "float16").tobytes())
    shards(folder)[0].write_bytes(content[:place] + b"\x55" + content[place + 1 :])


def broken_header(folder: Path) -> None:
    content = shards(folder)[0].read_bytes()
    shards(folder)[0].write_bytes(content[:8] + b"\xff{" + content[10:])


def no_digests(folder: Path) -> None:
    content = shards(folder)[0].read_bytes()
    shards(folder)[0].write_bytes(content.replace(b'"digests"', b'"digestz"'))


def of_other_states(folder: Path) -> None:
    other = Encoder()
    other.frozen = FrozenEncoder(lambda inputs: 1 - other._encode(inputs), 3, "weights 1")
    _, report = cached_features(packed(), other.frozen, folder.parent / "other")
    os.rename(shards(report.folder)[0], shards(folder)[0])


def a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("in the way")


@pytest.mark.parametrize(
    "damage",
    [
        truncated,
        without_its_end,
        empty,
        longer,
        other_state,
        broken_header,
        no_digests,
        of_other_states,
        a_file,
    ],
)
def test_what_is_damaged_is_made_anew_and_never_served(tmp_path, damage, caplog):
    _, before = cached_features(packed(), Encoder().frozen, tmp_path / "x")
    content = contents(before.folder)
    damage(before.folder)
    encoder = Encoder()
    with caplog.at_level(logging.WARNING):
        features, report = cached_features(packed(), encoder.frozen, tmp_path / "x")
    check(features)
    assert report.encoded_tokens == TOKENS
    assert contents(report.folder) == content
    assert [m for m in caplog.messages if "are damaged, and are made anew" in m] == caplog.messages
    assert len(caplog.messages) == 1
    _, report = cached_features(packed(), encoder.frozen, tmp_path / "x")
    assert report.encoded_tokens == 0


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("part", ["lengths", "states", "digests"])
def test_only_the_texts_of_a_damaged_shard_are_made_anew(tmp_path, number, part, caplog):
    options = {"batch_tokens": 4, "shard_seconds": 0}
    _, before = cached_features(packed(), Encoder().frozen, tmp_path, **options)
    content = contents(before.folder)
    damaged = shards(before.folder)[number]
    header = int.from_bytes(damaged.read_bytes()[:8], "little")
    tensors = json.loads(damaged.read_bytes()[8 : 8 + header])
    with damaged.open("r+b") as file:
        file.seek(8 + header + tensors[part]["data_offsets"][0])
        file.write(b"\x55")
    encoder = Encoder()
    with caplog.at_level(logging.WARNING):
        features, report = cached_features(packed(), encoder.frozen, tmp_path, **options)
    check(features)
    assert len(encoder.batches) == 1 and contents(report.folder) == content
    # Under another digest a text is not found, and its shard is not looked at.
    assert (damaged.name in caplog.text) == (part != "digests" or len(encoder.batches[0]) > 1)


def no_json(folder: Path) -> None:
    (folder / ABOUT).unlink()


def other_json(folder: Path) -> None:
    (folder / ABOUT).write_text('{"encoder": {"fingerprint": "weights 2"}}')


def broken_json(folder: Path) -> None:
    (folder / ABOUT).write_bytes(b"\xff{")


@pytest.mark.parametrize("damage", [no_json, other_json, broken_json])
def test_the_description_is_for_people_alone(tmp_path, damage):
    _, report = cached_features(packed(), Encoder().frozen, tmp_path)
    about = (report.folder / ABOUT).read_bytes()
    damage(report.folder)
    check(cached_features(packed(), Encoder(stop_after=0).frozen, tmp_path)[0])
    cached_features(packed([[4]]), Encoder().frozen, tmp_path)  # where more is written, it is too
    assert (report.folder / ABOUT).read_bytes() == about


def test_shards_in_the_folder_of_another_encoder_are_never_served(tmp_path):
    _, other = cached_features(packed(), Encoder("weights 2").frozen, tmp_path)
    os.rename(other.folder, tmp_path / cache_key("weights 1", "float16"))
    encoder = Encoder()
    check(cached_features(packed(), encoder.frozen, tmp_path)[0])
    assert sum(map(len, encoder.batches)) == 5


def test_other_files_stay(tmp_path):
    _, report = cached_features(packed(), Encoder().frozen, tmp_path)
    (report.folder / "notes.safetensors").write_text("mine")
    leftover = report.folder / ".x.safetensors.0123456789ab.partial"
    leftover.write_text("of a process that was killed")
    check(cached_features(packed([[4]]), Encoder().frozen, tmp_path)[0], [[4]])
    assert (report.folder / "notes.safetensors").read_text() == "mine" and not leftover.exists()


def test_a_folder_of_the_former_format_is_left_alone(tmp_path, caplog):
    former = tmp_path / ("0" * 64)
    former.mkdir()
    (former / "data.bin").write_bytes(bytes(78))
    (former / ABOUT).write_text('{"made_of": {"format": "kbert text features 1"}, "done": 78}')
    before, encoder = contents(former), Encoder()
    with caplog.at_level(logging.WARNING):
        features, _ = cached_features(packed(), encoder.frozen, tmp_path)
        cached_features(packed(), encoder.frozen, tmp_path)
    check(features)
    assert encoder.batches and contents(former) == before
    (message,) = caplog.messages
    assert message == (
        f"{former} holds features in a former format, which is not read; it may be deleted"
    )


def test_no_room(tmp_path, monkeypatch):
    free = shutil.disk_usage(tmp_path)._replace(free=2)
    monkeypatch.setattr(feature_cache.shutil, "disk_usage", lambda path: free)
    encoder = Encoder()
    with pytest.raises(OSError, match="must have room for 78 bytes more. Received: 2 bytes"):
        cached_features(packed(), encoder.frozen, tmp_path)
    assert not encoder.batches


def test_a_disk_that_fills_up(tmp_path, monkeypatch):
    options = {"batch_tokens": 4, "shard_seconds": 0}
    fsync, written = os.fsync, []

    def full(descriptor):
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        if name.endswith(".partial") and ".safetensors" in name:
            written.append(name)
            if len(written) == 3:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        cached_features(packed(), Encoder().frozen, tmp_path, **options)
    monkeypatch.undo()
    folder = tmp_path / cache_key("weights 1", "float16")
    assert len(shards(folder)) == 2 and len(contents(folder)) == 3
    encoder = Encoder()
    check(cached_features(packed(), encoder.frozen, tmp_path, **options)[0])
    assert encoder.batches == [[[3, 1], [1, 3]], [[5]]]


def test_files_that_go_away_meanwhile(tmp_path):
    def progress(done, total):
        if done == total:
            shards(tmp_path / cache_key("weights 1", "float16"))[0].unlink()

    options = {"batch_tokens": 4, "shard_seconds": 0}
    with pytest.raises(OSError, match="must keep its files .* Received: . texts less"):
        cached_features(packed(), Encoder().frozen, tmp_path, progress=progress, **options)


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
    (shard,) = shards(report.folder)
    content = shard.read_bytes()
    shard.unlink()
    shard.write_bytes(content[:-1])
    cached_features(packed(), Encoder().frozen, tmp_path)
    check(features)
    assert shard.read_bytes() == content


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
