import hashlib
import json

import pytest
import tensorflow as tf

from kbert.data.pretraining.records import shard_paths
from kbert.training.config.pretraining_config import PreparationConfig
from kbert.training.pretraining.preparation import prepare_records, records_of_part
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


def preparation(corpus, output, **values):
    given = {"text": [str(corpus)], "vocabulary": str(TinyCorpus(output.parent).vocabulary)}
    given |= {"output": str(output), "max_sequence_length": 20}
    return PreparationConfig.from_dict({**given, **values})


def test_only_records_are_overwritten(tmp_path):
    config = preparation(tmp_path / "part0.txt", tmp_path / "notes", overwrite=True)
    prepare_records(config)
    count = prepare_records(config)  # of records alone
    assert count > 0
    (tmp_path / "notes" / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="nothing else is overwritten. .* holds 'thesis.txt'"):
        prepare_records(config)
    assert (tmp_path / "notes" / "thesis.txt").read_text() == "years of work"
    with pytest.raises(NotADirectoryError, match="must be a folder. Received a file: output="):
        prepare_records(config.with_values(output=str(tmp_path / "part0.txt")))


def test_errors_of_the_text_are_its_own(tmp_path):
    one = tmp_path / "one.txt"
    one.write_text("A single sentence.\n")
    config = preparation(one, tmp_path / "records")
    with pytest.raises(ValueError, match="^The corpus must have documents"):
        prepare_records(config)
    late = tmp_path / "late.txt"  # a byte behind those that are looked at before anything
    late.write_bytes(b"A sentence of some words.\n\n" * 6000 + b"caf\xe9\n")
    config = preparation(late, tmp_path / "records")
    with pytest.raises(ValueError, match=r"late.txt, line 12001: .* UTF-8"):
        prepare_records(config)
    with pytest.raises(ValueError, match=r"late.txt, line 12001: .* UTF-8"):
        list(records_of_part(0, 1, config.to_dict()))
    assert not (tmp_path / "records").exists()
