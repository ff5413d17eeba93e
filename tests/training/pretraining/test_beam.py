"""The same examples, whether a pipeline makes them or one process."""

import importlib
import sys

import pytest
import tensorflow as tf

from kbert.data.pretraining.records import shard_paths
from kbert.training.config.pretraining_config import PreparationConfig
from kbert.training.pretraining.preparation import prepare_records
from tests.training.tiny_corpus import TinyCorpus


@pytest.fixture
def config(tmp_path):
    tiny_corpus = TinyCorpus(tmp_path)
    return PreparationConfig.from_dict(
        {
            "text": [str(tmp_path / "part*.txt")],
            "vocabulary": str(tiny_corpus.vocabulary),
            "output": str(tmp_path / "records"),
            "max_sequence_length": 20,
            "block_bytes": 1000,
            "copies": 2,
            "shards": 3,
        }
    )


def records(folder):
    files = [str(path) for path in shard_paths(folder, 3)]
    return sorted(tf.data.TFRecordDataset(files).as_numpy_iterator())


def test_a_pipeline_writes_the_same_examples(config, tmp_path):
    pytest.importorskip("apache_beam", reason='pip install ".[beam]"')
    from kbert.training.pretraining.beam import prepare_with_beam

    prepare_with_beam(config, parts=2)
    found = records(tmp_path / "records")
    with pytest.raises(FileExistsError, match="`output` must not exist yet, unless overwrite"):
        prepare_with_beam(config)
    prepare_records(config.with_values(output=str(tmp_path / "here")))
    assert found == records(tmp_path / "here") and len(found) > 20
    prepare_with_beam(config.with_values(overwrite=True, shards=2))
    assert len(list((tmp_path / "records").iterdir())) == 2  # none of the three before


def test_without_beam(monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    monkeypatch.delitem(sys.modules, "kbert.training.pretraining.beam", raising=False)
    with pytest.raises(ImportError, match=r'pip install "\.\[beam\]"'):
        importlib.import_module("kbert.training.pretraining.beam")
