"""Shards of states, by hand: the texts 1 2, 3 and 4 5 6, whose token t has the states (t, -t)."""

import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from kbert.data.features.shards import DIGEST, FeatureShards, write_shard

TEXTS = {b"a" * 16: [1, 2], b"b" * 16: [3], b"c" * 15 + b"\0": [4, 5, 6]}
MISSING = b"z" * 16


def digests(*names: bytes) -> np.ndarray:
    return np.frombuffer(b"".join(names), DIGEST)


def write(folder: Path, *names: bytes, dtype="float16") -> None:
    lengths = np.array([len(TEXTS[name]) for name in names])
    states = [[t, -t] for name in names for t in TEXTS[name]]
    write_shard(folder, digests(*names), lengths, np.array(states).astype(dtype))


def found(folder: Path, *names: bytes, dtype="float16") -> list[list[float] | None]:
    """The first of each state of the texts; None for a missing text."""
    shards, shard_of, starts = FeatureShards(folder, np.dtype(dtype)).locate(digests(*names))
    assert all(isinstance(shard, np.memmap) for shard in shards)
    return [
        None if shard < 0 else shards[shard][start:][: len(TEXTS[name]), 0].tolist()
        for name, shard, start in zip(names, shard_of, starts)
    ]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_texts_of_several_shards(tmp_path, dtype):
    dtype = tf.as_dtype(dtype).as_numpy_dtype
    one, two, three = TEXTS
    write(tmp_path, two, three, dtype=dtype)
    write(tmp_path, one, dtype=dtype)
    assert found(tmp_path, three, MISSING, one, dtype=dtype) == [[4, 5, 6], None, [1, 2]]
    assert found(tmp_path, two, dtype=dtype) == [[3]]
    assert found(tmp_path, MISSING, dtype=dtype) == [None]
    assert found(tmp_path, dtype=dtype) == []


def test_a_shard_is_a_safetensors_file_named_after_its_bytes(tmp_path):
    write(tmp_path, *TEXTS)
    (path,) = tmp_path.iterdir()
    assert path.name == f"{hashlib.sha256(path.read_bytes()).hexdigest()}.safetensors"
    tensors = load_file(path)
    assert sorted(tensors) == ["digests", "lengths", "states"]
    assert tensors["digests"].tobytes() == b"".join(TEXTS)
    assert tensors["lengths"].tolist() == [2, 1, 3]
    np.testing.assert_array_equal(tensors["states"], [[t, -t] for t in range(1, 7)])


def test_the_same_shard_of_two_processes_is_one_file(tmp_path):
    write(tmp_path, *TEXTS)
    write(tmp_path, *TEXTS)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_text_in_two_shards_is_found_in_one(tmp_path):
    one, two, three = TEXTS
    write(tmp_path, one, two)
    write(tmp_path, two, three)
    assert found(tmp_path, *TEXTS) == list(TEXTS.values())


def test_no_folder(tmp_path):
    assert found(tmp_path / "none", *TEXTS) == [None] * 3


def test_only_shards_that_are_needed_are_checked(tmp_path):
    one, two, three = TEXTS
    write(tmp_path, one)
    (path,) = tmp_path.iterdir()
    write(tmp_path, two, three)
    path.write_bytes(path.read_bytes()[:-17] + b"\x55" + one)  # the last state, then the digest
    shards = FeatureShards(tmp_path, np.dtype("float16"))
    shards.locate(digests(two), remove_damaged=True)
    assert path.exists()
    assert found(tmp_path, one, two) == [None, [3]] and path.exists()
    shards.locate(digests(one), remove_damaged=True)
    assert not path.exists()


def test_a_shard_is_mapped_and_not_read(tmp_path):
    states = np.zeros((1 << 20, 16), "float16")
    write_shard(tmp_path, digests(MISSING), np.array([len(states)]), states)
    command = """
import sys, resource
from pathlib import Path
import numpy as np
from kbert.data.features.shards import DIGEST, FeatureShards
shards = FeatureShards(Path(sys.argv[1]), np.dtype("float16"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
(states,), _, _ = shards.locate(np.frombuffer(b"z" * 16, DIGEST))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sys.stdout.write(f"{states.shape[0]} {after - before}")
"""
    output = subprocess.run([sys.executable, "-c", command, tmp_path], capture_output=True).stdout
    rows, kilobytes = map(int, output.split())
    assert rows == 1 << 20 and kilobytes < 8 << 10  # of 32 MiB


WRITER = """
import sys, time
from pathlib import Path
import numpy as np
from kbert.data.features.shards import DIGEST, write_shard
for number in range(int(sys.argv[2]), 1000):
    digest = np.frombuffer(b"%016d" % number, DIGEST)
    write_shard(Path(sys.argv[1]), digest, np.array([64]), np.full((64, 999), number, "float16"))
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


def test_killed_in_the_middle(tmp_path, repository):
    for first, last in ((0, 5), (100, 133)):
        command = [sys.executable, "-c", WRITER, str(tmp_path), str(first)]
        with subprocess.Popen(command, cwd=repository, stdout=subprocess.PIPE) as process:
            for line in process.stdout:
                if int(line) == last:
                    process.send_signal(signal.SIGKILL)
                    break
        assert process.returncode == -signal.SIGKILL
    names = np.array([b"%016d" % number for number in range(1000)]).view(DIGEST)
    shards, shard_of, starts = FeatureShards(tmp_path, np.dtype("float16")).locate(names)
    written = np.flatnonzero(shard_of >= 0)
    assert set(range(6)) | set(range(100, 134)) <= set(written.tolist())
    for number in written:
        np.testing.assert_array_equal(shards[shard_of[number]][starts[number] :], number)
