"""Records as google-research/bert lays them out: by hand, and as Model Garden reads them."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.data.pretraining.corpus import Corpus
from kbert.data.pretraining.dataset import pretraining_dataset
from kbert.data.pretraining.records import serialized, shard_paths, write_records
from tests.data.small_corpora import documents, text_of, written
from tests.small_pipelines import TOKENIZER

INPUTS = {
    "token_ids": tf.constant([[2, 9, 4, 3, 0], [2, 4, 3, 8, 3]]),
    "segment_ids": tf.constant([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1]]),
    "padding_mask": tf.constant([[True] * 4 + [False], [True] * 5]),
    "masked_positions": tf.constant([[2, 0], [1, 3]]),
}
TARGETS = {
    "masked_tokens": tf.constant([[7, -1], [0, 8]]),
    "next_sentence": tf.constant([0, 1]),
}


def dataset(tmp_path, **arguments):
    path = written(tmp_path / "a.txt", text_of(documents(12)))
    sizes = {"batch_size": 8, "max_sequence_length": 24, "epochs": 1}
    return pretraining_dataset(Corpus([path]), TOKENIZER, **{**sizes, **arguments})


def read(path, compression=""):
    return [record.numpy() for record in tf.data.TFRecordDataset(str(path), compression)]


def features_of(record):
    """What is in a record, as lists under their names."""
    found = {}
    for name, feature in tf.train.Example.FromString(record).features.feature.items():
        kind = feature.WhichOneof("kind")
        found[name] = (kind, list(getattr(feature, kind).value))
    return found


def test_by_hand():
    """A token of id 0 may be masked; what fills up has the weight 0."""
    first, second = map(features_of, serialized(INPUTS, TARGETS))
    assert first == {
        "input_ids": ("int64_list", [2, 9, 4, 3, 0]),
        "input_mask": ("int64_list", [1, 1, 1, 1, 0]),
        "segment_ids": ("int64_list", [0, 0, 0, 0, 0]),
        "masked_lm_positions": ("int64_list", [2, 0]),
        "masked_lm_ids": ("int64_list", [7, 0]),
        "masked_lm_weights": ("float_list", [1.0, 0.0]),
        "next_sentence_labels": ("int64_list", [0]),
    }
    assert second["masked_lm_ids"] == ("int64_list", [0, 8])
    assert second["masked_lm_weights"] == ("float_list", [1.0, 1.0])
    assert second["next_sentence_labels"] == ("int64_list", [1])
    alone = {"masked_tokens": TARGETS["masked_tokens"]}
    assert features_of(serialized(INPUTS, alone)[1])["next_sentence_labels"][1] == [0]
    assert serialized(INPUTS, TARGETS) == serialized(INPUTS, TARGETS)


@pytest.mark.parametrize("compress", [False, True])
def test_shards(tmp_path, compress):
    """Examples go to the files by turns, and all of them arrive."""
    batches = list(dataset(tmp_path))
    expected = [record for batch in batches for record in serialized(*batch)]
    folder = tmp_path / "records"
    assert write_records(batches, folder, 3, compress) == len(expected) > 20
    names = [f"pretraining-0000{shard}-of-00003.tfrecord" for shard in range(3)]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert shard_paths(folder, 3) == [folder / name for name in names]
    for shard, path in enumerate(shard_paths(folder, 3)):
        assert read(path, "GZIP" if compress else "") == expected[shard::3]


@pytest.mark.parity
def test_model_garden_reads_them(tmp_path):
    from official.nlp.data.pretrain_dataloader import BertPretrainDataConfig, BertPretrainDataLoader

    batches = list(dataset(tmp_path, batch_size=4))
    write_records(batches, tmp_path / "records")
    (path,) = shard_paths(tmp_path / "records", 1)
    config = BertPretrainDataConfig(
        input_path=str(path),
        seq_length=24,
        max_predictions_per_seq=4,
        global_batch_size=4,
        is_training=False,
        drop_remainder=False,
    )
    found = list(BertPretrainDataLoader(config).load())
    assert len(found) == len(batches) > 5
    for theirs, (inputs, targets) in zip(found, batches):
        masked = targets["masked_tokens"].numpy()
        for name, values in {
            "input_word_ids": inputs["token_ids"],
            "input_type_ids": inputs["segment_ids"],
            "input_mask": inputs["padding_mask"],
            "masked_lm_positions": inputs["masked_positions"],
            "masked_lm_ids": np.where(masked >= 0, masked, 0),
            "masked_lm_weights": masked >= 0,
            "next_sentence_labels": targets["next_sentence"][:, tf.newaxis],
        }.items():
            np.testing.assert_array_equal(theirs[name], np.asarray(values).astype(int))


def test_all_or_nothing(tmp_path):
    def failing():
        yield INPUTS, TARGETS
        raise OSError("no text any more")

    with pytest.raises(OSError, match="no text any more"):
        write_records(failing(), tmp_path / "records")
    assert not list(tmp_path.iterdir())
    write_records([(INPUTS, TARGETS)], tmp_path / "records")
    with pytest.raises(FileExistsError):
        write_records([(INPUTS, TARGETS)] * 2, tmp_path / "records")
    with pytest.raises(OSError, match="no text any more"):
        write_records(failing(), tmp_path / "records", overwrite=True)
    (path,) = shard_paths(tmp_path / "records", 1)
    assert len(read(path)) == 2
    assert write_records([(INPUTS, TARGETS)] * 2, tmp_path / "records", overwrite=True) == 4
    assert len(read(path)) == 4 and [x.name for x in tmp_path.iterdir()] == ["records"]


def test_bad_input(tmp_path):
    path = tmp_path / "records"
    with pytest.raises(ValueError, match="`shards` must be at least 1. Received: shards=0"):
        write_records([], path, 0)
    with pytest.raises(ValueError, match="an example for each of the `shards`=1 files. .*: none"):
        write_records([], path)
    with pytest.raises(ValueError, match="for each of the `shards`=3 files. Received: 2"):
        write_records([(INPUTS, TARGETS)], path, 3)
    message = "`batches` must be of an objective with masked tokens. Received: targets next_tokens"
    with pytest.raises(ValueError, match=message):
        write_records(dataset(tmp_path, objective="lm"), path)
    assert [x.name for x in tmp_path.iterdir()] == ["a.txt"]
