"""Records read again: what was written, what Model Garden writes, workers, order, going on."""

import random
from itertools import islice

import numpy as np
import pytest
import tensorflow as tf

from kbert.data.pretraining.corpus import Corpus
from kbert.data.pretraining.dataset import pretraining_dataset
from kbert.data.pretraining.records import shard_paths, write_records
from kbert.data.pretraining.records_dataset import records_dataset
from tests.data.small_corpora import documents, text_of, written
from tests.small_pipelines import TOKENIZER, VOCABULARY


def batches(files, **arguments):
    return list(records_dataset(files, **{"batch_size": 8, **arguments}).as_numpy_iterator())


def rows(some):
    """Each example of batches as bytes."""
    found = []
    for inputs, targets in some:
        columns = [x for part in (inputs, targets) for _, x in sorted(part.items())]
        found += [b"|".join(c[i].tobytes() for c in columns) for i in range(len(columns[0]))]
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Batches of a text, and where they were written, into one file and into five."""
    folder = tmp_path_factory.mktemp("records")
    path = written(folder / "a.txt", text_of(documents(12)))
    dataset = pretraining_dataset(
        Corpus([path]), TOKENIZER, batch_size=8, max_sequence_length=24, epochs=1
    )
    found = list(dataset.as_numpy_iterator())
    for shards in (1, 5):
        write_records(found, folder / str(shards), shards, compress=shards == 5)
    return found, shard_paths(folder / "1", 1), shard_paths(folder / "5", 5), dataset


def test_each_worker_must_have_a_record(made, tmp_path):
    found = made[0]
    one = [tuple({name: x[:3] for name, x in part.items()} for part in found[0])]
    write_records(one, tmp_path / "few", 1)
    few = shard_paths(tmp_path / "few", 1)
    each = [rows(batches(few, worker=i, workers=3, epochs=1)) for i in range(3)]
    assert [len(some) for some in each] == [1, 1, 1]
    with pytest.raises(ValueError, match="a whole record for each of 4 workers. Received: 3$"):
        records_dataset(few, batch_size=1, workers=4)


def test_what_was_written_is_read(made):
    expected, single, five, dataset = made
    found = batches(single, shuffle=False, epochs=1)
    assert len(found) == len(expected) > 5
    for batch, other in zip(found, expected):
        for part, same in zip(batch, other):
            assert part.keys() == same.keys()
            for name, values in part.items():
                assert values.dtype == same[name].dtype
                np.testing.assert_array_equal(values, same[name])
    by_turns = [row for shard in range(5) for row in rows(expected)[shard::5]]
    assert rows(batches(five, shuffle=False, epochs=1)) == by_turns
    endless = records_dataset(single, batch_size=8)
    for part, same in zip(endless.element_spec, dataset.element_spec):
        assert {k: (s.dtype, s.shape[1:]) for k, s in part.items()} == {
            k: (s.dtype, s.shape[1:]) for k, s in same.items()
        }
        assert all(spec.shape.is_fully_defined() for spec in part.values())
    assert endless.cardinality() == tf.data.INFINITE_CARDINALITY


def test_without_pairs(made):
    _, targets = next(iter(records_dataset(made[1], batch_size=2, next_sentence=False)))
    assert list(targets) == ["masked_tokens"]


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_workers_read_every_record_once(made, workers):
    """Whole files, or, where these are too few, every seventh record."""
    expected, single, five, _ = made
    for files in (single, five):
        found = [batches(files, worker=w, workers=workers, epochs=1) for w in range(workers)]
        assert sorted(row for each in found for row in rows(each)) == sorted(rows(expected))


def test_order(made):
    """A function of seed and epoch, whatever TensorFlow's seed; never far from its window."""
    expected, single, five, _ = made
    count = len(rows(expected))
    orders = []
    for files in (single, five):
        for seed in (0, 1):
            tf.random.set_seed(seed + 1)
            both = rows(batches(files, seed=seed, epochs=2))
            tf.random.set_seed(seed + 2)
            assert both == rows(batches(files, seed=seed, epochs=2))
            orders += [both[:count], both[count:]]
    assert all(sorted(order) == sorted(rows(expected)) for order in orders)
    assert len({tuple(order) for order in orders}) == 8
    near = rows(batches(single, window_examples=10, epochs=1))
    for begin in range(0, count - 9, 10):
        window = slice(begin, begin + 10)
        assert near[window] != rows(expected)[window]
        assert sorted(near[window]) == sorted(rows(expected)[window])


@pytest.mark.parametrize("arguments", [{}, {"shuffle": False}, {"worker": 1, "workers": 2}])
def test_going_on(made, arguments):
    dataset = records_dataset(made[2], batch_size=8, **arguments)
    whole = rows(islice(dataset.as_numpy_iterator(), 60))
    for first in (1, 13, 59):
        rest = records_dataset(made[2], batch_size=8, **arguments, first_batch=first)
        assert rows(islice(rest.as_numpy_iterator(), 60 - first)) == whole[8 * first :]


@pytest.mark.parity
@pytest.mark.parametrize("new_names", [False, True])
def test_what_model_garden_writes(tmp_path, new_names):
    from official.nlp.data.create_pretraining_data import (
        create_instances_from_document,
        write_instance_to_example_files,
    )
    from official.nlp.tools.tokenization import FullTokenizer

    VOCABULARY.save(tmp_path / "vocabulary.txt")
    tokenizer = FullTokenizer(str(tmp_path / "vocabulary.txt"))
    texts = [[tokenizer.tokenize(s) for s in sentences] for sentences in documents(6)]
    words, draw = list(tokenizer.vocab), random.Random(1)
    instances = [
        instance
        for number in range(len(texts))
        for instance in create_instances_from_document(
            texts, number, 32, 0.1, 0.15, 5, words, draw
        )
    ]
    path = tmp_path / "theirs.tfrecord"
    write_instance_to_example_files(instances, tokenizer, 32, 5, [str(path)], False, new_names)
    found = batches([path], batch_size=1, shuffle=False, epochs=1)
    assert len(found) == len(instances) > 10
    for instance, (inputs, targets) in zip(instances, found):
        length, count = len(instance.tokens), len(instance.masked_lm_positions)
        ids = [VOCABULARY.id_of(token) for token in instance.tokens]
        assert inputs["token_ids"].tolist() == [ids + [0] * (32 - length)]
        assert inputs["segment_ids"].tolist() == [instance.segment_ids + [0] * (32 - length)]
        assert inputs["padding_mask"].tolist() == [[i < length for i in range(32)]]
        places = [*instance.masked_lm_positions, *[0] * (5 - count)]
        assert inputs["masked_positions"].tolist() == [places]
        labels = [VOCABULARY.id_of(token) for token in instance.masked_lm_labels]
        assert targets["masked_tokens"].tolist() == [labels + [-1] * (5 - count)]
        assert targets["next_sentence"].tolist() == [int(instance.is_random_next)]


# --- bad input ----------------------------------------------------------------------------------


def test_files_that_hold_no_such_records(made, tmp_path):
    single = str(made[1][0])

    def record(name, *contents):
        with tf.io.TFRecordWriter(str(tmp_path / name)) as writer:
            for content in contents:
                writer.write(content)
        return tmp_path / name

    first = next(iter(tf.data.TFRecordDataset(single))).numpy()
    example = tf.train.Example.FromString(first)
    del example.features.feature["masked_lm_ids"]
    without = record("without", example.SerializeToString())
    longer = tf.train.Example.FromString(first)
    longer.features.feature["input_ids"].int64_list.value.append(1)
    for files, message in (
        ([written(tmp_path / "text", "no record at all")], "text: the file must be a TFRecord. R"),
        ([record("none")], "none: the file must hold records. Received: none"),
        ([record("bytes", b"\xff\xff")], "bytes: the records must be tf.train.Example. Received: "),
        ([without], "layout of google-research/bert. Received: .* without masked_lm_ids"),
        (
            [single, record("longer", longer.SerializeToString())],
            r"longer: the records must be like those of .*, which have input_ids \(24\), .*"
            r"Received: input_ids \(25\)",
        ),
        ([], "`files` must be TFRecords, all or none gzipped. Received: none"),
        ([single, made[2][0]], "all or none gzipped. Received: some of them gzipped"),
    ):
        with pytest.raises(ValueError, match=message):
            records_dataset(files, batch_size=2)
    with pytest.raises(FileNotFoundError, match="`files` must be files. Received: '.*nowhere'"):
        records_dataset([tmp_path / "nowhere"], batch_size=2)


def test_a_file_that_is_broken_further_on(made, tmp_path):
    """The graph names the record's place in its file."""
    content = made[1][0].read_bytes()
    broken = written(tmp_path / "broken", content[: len(content) // 2 - 7])
    with pytest.raises(tf.errors.DataLossError, match="truncated record at"):
        batches([broken], epochs=1)


def test_wrong_arguments(made):
    for arguments, message in (
        ({"batch_size": 0}, "`batch_size` must be at least 1. Received: batch_size=0"),
        ({"window_examples": 0}, "`window_examples` must be at least 1. Received: .*=0"),
        ({"worker": 2, "workers": 2}, "`worker` must be .* Received: worker=2, workers=2"),
    ):
        with pytest.raises(ValueError, match=message):
            batches(made[1], **arguments)
