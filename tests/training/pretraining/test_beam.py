"""The same examples, whether a pipeline makes them or one process."""

import importlib
import sys
from pathlib import Path

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


def copied(path: str | Path, folder: str) -> str:
    """A copy of a file in a folder of TensorFlow's file system in memory, by its name."""
    tf.io.gfile.makedirs(folder)
    tf.io.gfile.copy(str(path), f"{folder}/{Path(path).name}", overwrite=True)
    return f"{folder}/{Path(path).name}"


def test_text_is_read_from_a_bucket_and_records_are_written_there(config, tmp_path):
    pytest.importorskip("apache_beam", reason='pip install ".[beam]"')
    from kbert.training.pretraining.beam import prepare_with_beam
    from tests.ram_filesystem import RamFileSystem

    for path in sorted(tmp_path.glob("part*.txt")):
        copied(path, "ram://prepared/text")
    words = copied(config.vocabulary, "ram://prepared")
    elsewhere = {"text": ["ram://prepared/text/*.txt"], "vocabulary": words}
    remote = config.with_values(**elsewhere, output="ram://prepared/records/")
    prepare_with_beam(remote, parts=2)
    prepare_records(config)
    shards = [f"ram://prepared/records/pretraining-0000{i}-of-00003.tfrecord" for i in range(3)]
    found = sorted(tf.data.TFRecordDataset(shards).as_numpy_iterator())
    assert found == records(tmp_path / "records") and len(found) > 20
    with pytest.raises(FileExistsError, match="`output` must not exist yet, .* with ram://prepa"):
        prepare_with_beam(remote)
    prepare_with_beam(remote.with_values(overwrite=True, shards=2))
    listed = [one.path for one in RamFileSystem(None)._list("ram://prepared/records/")]
    assert sorted(listed) == [name.replace("-of-00003", "-of-00002") for name in shards[:2]]
    copied(words, "ram://prepared/records")
    with pytest.raises(FileExistsError, match="records alone. .* with ram://prepared/records/voc"):
        prepare_with_beam(remote.with_values(overwrite=True))
    with pytest.raises(FileNotFoundError, match="`text` must be files, or patterns"):
        prepare_with_beam(remote.with_values(text=["ram://prepared/none*"], output="ram://new"))
    assert not tf.io.gfile.exists("ram://new")


def test_without_beam(monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    monkeypatch.delitem(sys.modules, "kbert.training.pretraining.beam", raising=False)
    with pytest.raises(ImportError, match=r'pip install "\.\[beam\]"'):
        importlib.import_module("kbert.training.pretraining.beam")
