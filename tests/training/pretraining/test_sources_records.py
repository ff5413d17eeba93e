import posixpath
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from kbert.data.pretraining.corpus import Corpus
from kbert.data.pretraining.dataset import pretraining_dataset
from kbert.data.pretraining.records import shard_paths, write_records
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.pretraining.sources import (
    RecordFiles,
    check_records,
    input_speed,
    place_after,
    read_text,
    train_batches,
    validation_batches,
)
from kbert.training.run import train
from kbert.training.runs.run_directory import load_run
from tests.training.tiny_corpus import TinyCorpus


@pytest.fixture(scope="module")
def tiny_corpus(tmp_path_factory):
    return TinyCorpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def tokenizer(tiny_corpus):
    return WordPiece(Vocabulary.from_file(tiny_corpus.vocabulary))


@pytest.fixture(scope="module")
def config(tiny_corpus, tokenizer, tmp_path_factory):
    """Of a run on records of two of its files, with those of a third one held out."""
    folder = tmp_path_factory.mktemp("records")
    for name, pattern in (("train", "part*.txt"), ("held-out", "held-out.txt")):
        corpus = Corpus(sorted(tiny_corpus.folder.glob(pattern)))
        made = pretraining_dataset(
            corpus, tokenizer, batch_size=8, max_sequence_length=20, epochs=1
        )
        write_records(made, folder / name, 2)
    return tiny_corpus.config(
        folder / "run",
        text=None,
        records=[str(folder / "train" / "*.tfrecord")],
        validation=[str(path) for path in shard_paths(folder / "held-out", 2)],
        steps=3,
    )


@pytest.mark.slow
def test_a_run_on_records(config, eagerly):
    run = load_run(train(config))
    assert [one["step"] for one in run.metrics["intervals"]] == [2, 3]
    assert "next_sentence_accuracy" in run.metrics["final"]["validation"]
    text = (run.directory / "log.txt").read_text()
    assert "train: 2 files" in text and "input pipeline: up to " in text
    assert "the input pipeline gives" in text


def test_the_damaged_one_of_several_is_named(config, tokenizer, tmp_path):
    files = [tmp_path / f"{number}.tfrecord" for number in range(3)]
    content = shard_paths(Path(config.validation[0]).parent, 2)[0].read_bytes()
    for file in files:
        file.write_bytes(content)
    files[1].write_bytes(content[:-7])
    records = RecordFiles(tuple(map(str, files)))
    message = f"{files[1]}: the file must be a whole TFRecord. Received: truncated record at"
    with pytest.raises(ValueError, match=message):
        validation_batches(config, records, tokenizer, None)
    with pytest.raises(ValueError, match=message):
        input_speed(config, records, tokenizer)
    files[1].write_bytes(content[:-7] + b"x" + content[-6:])
    with pytest.raises(ValueError, match=f"{files[1]}: .* Received: corrupted record at"):
        validation_batches(config, records, tokenizer, None)


def test_going_on_after_some_batches(config, tokenizer):
    train = read_text(config).train
    whole = train_batches(config, train, tokenizer, {})
    place = place_after(whole, 3)
    rest = train_batches(config, train, tokenizer, place)
    assert place == {"batches": 3} and place_after(rest, 2) == {"batches": 5}
    expected = list(whole.take(5).as_numpy_iterator())[3:]
    for one, other in zip(expected, rest.take(2).as_numpy_iterator(), strict=True):
        np.testing.assert_array_equal(one[0]["token_ids"], other[0]["token_ids"])


def test_records_in_a_bucket(config, tokenizer):
    """TensorFlow's file system in memory stands for it."""
    for file in read_text(config).train.files:
        tf.io.gfile.copy(file, f"ram://{posixpath.basename(file)}", overwrite=True)
    there = config.with_values(records=["ram://pretraining-*"])
    here, found = read_text(config), read_text(there)
    assert found.train.fingerprint == here.train.fingerprint
    assert found.about()["train"]["bytes"] == here.about()["train"]["bytes"] > 0
    for one, other in zip(
        train_batches(config, here.train, tokenizer, {}).take(2),
        train_batches(there, found.train, tokenizer, {}).take(2),
    ):
        np.testing.assert_array_equal(one[0]["token_ids"], other[0]["token_ids"])


def test_what_is_measured_has_an_end(config, tokenizer):
    held_out = read_text(config).validation
    assert len(validation_batches(config, held_out, tokenizer, 2)) == 2
    whole = validation_batches(config, held_out, tokenizer, None)
    rows = sum(len(x["token_ids"]) for x, _ in whole)
    assert rows > 8
    assert RecordFiles(held_out.files[:1]).fingerprint != held_out.fingerprint
    assert str(held_out).endswith("pretraining-00000-of-00002.tfrecord and 1 more")


def test_records_of_another_model(config, tokenizer):
    train = read_text(config).train
    with pytest.raises(ValueError, match="must be that of the records in .*, 20. Received: max_s"):
        check_records(config.with_values(max_sequence_length=24), train, tokenizer)
    with pytest.raises(ValueError, match="the model's vocabulary of 9 tokens. Received: the id"):
        check_records(config, train, SimpleNamespace(vocabulary=range(9)))
