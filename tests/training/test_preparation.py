import hashlib
import json

import pytest
import tensorflow as tf

from kbert.data.pretraining_records import shard_paths
from kbert.training.preparation import prepare_records, records_of_part
from kbert.training.preparation_config import PreparationConfig
from tests.training.tiny_corpus import TinyCorpus


def test_records_with_a_manifest(tmp_path):
    tiny_corpus = TinyCorpus(tmp_path)
    config = PreparationConfig.from_dict(
        {
            "text": [str(tmp_path / "part*.txt")],
            "vocabulary": str(tiny_corpus.vocabulary),
            "output": str(tmp_path / "records"),
            "max_sequence_length": 20,
            "copies": 2,
            "shards": 3,
        }
    )
    count = prepare_records(config)
    told = json.loads((tmp_path / "records" / "manifest.json").read_text())
    assert told["examples"] == count and told["config"]["copies"] == 2
    assert len(told["files"]) == 3
    found = []
    for name, sha256 in told["files"].items():
        path = tmp_path / "records" / name
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256
        found += list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    assert len(found) == count
    example = tf.train.Example.FromString(found[0])
    assert len(example.features.feature["input_ids"].int64_list.value) == 20
    with pytest.raises(FileExistsError, match="`output` must not exist yet, unless overwrite"):
        prepare_records(config)


def test_parts_together_are_the_whole(tmp_path):
    tiny_corpus = TinyCorpus(tmp_path)
    config = PreparationConfig.from_dict(
        {
            "text": [str(tmp_path / "part*.txt")],
            "vocabulary": str(tiny_corpus.vocabulary),
            "output": str(tmp_path / "records"),
            "max_sequence_length": 20,
            "block_bytes": 1000,
            "copies": 2,
        }
    )
    count = prepare_records(config)
    files = [str(path) for path in shard_paths(tmp_path / "records", 1)]
    whole = sorted(tf.data.TFRecordDataset(files).as_numpy_iterator())
    parts = [list(records_of_part(part, 2, config.to_dict())) for part in range(2)]
    assert all(parts) and sorted(sum(parts, [])) == whole and len(whole) == count
