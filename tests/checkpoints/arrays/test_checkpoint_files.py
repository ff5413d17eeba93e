import json
import os
from pathlib import Path

import numpy as np
import pytest

from kbert.checkpoints.arrays.checkpoint_files import (
    dtype_of,
    open_safetensors,
    shards_of,
    write_safetensors,
)
from tests.checkpoints.synthetic_bert import DTYPES, same_bytes


@pytest.mark.parametrize("dtype", [*DTYPES])
def test_both_ways(tmp_path: Path, dtype: str) -> None:
    array = np.array([[1.5, -0.0], [np.inf, np.nan]]).astype(DTYPES[dtype])
    # A transposed view is written as what it shows, not as its memory lies.
    write_safetensors(tmp_path / "x.safetensors", {"a": array, "t": array.T}, format="pt")
    with open_safetensors(tmp_path / "x.safetensors") as files:
        assert files.shapes == {"a": (2, 2), "t": (2, 2)}
        assert same_bytes(files.load("a"), array)
        assert same_bytes(files.load("t"), np.ascontiguousarray(array.T))


def test_a_tensor_in_two_shards(tmp_path: Path) -> None:
    for name in ("1.safetensors", "2.safetensors"):
        write_safetensors(tmp_path / name, {"a": np.zeros(1)})
    with pytest.raises(ValueError, match="must not hold a tensor of another shard. Received: a"):
        with open_safetensors(tmp_path / "1.safetensors", tmp_path / "2.safetensors"):
            pytest.fail("must not open")


@pytest.mark.parametrize("content", [b"", b"12345", b"\xff" * 64, b"\x80\x00" + b"x" * 20])
def test_damaged_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    message = f"must be a whole safetensors file.*Received: {len(content)} bytes"
    with pytest.raises(ValueError, match=message):
        with open_safetensors(path):
            pytest.fail("must not open")


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        (None, "must have a `weight_map`. Received: weight_map=None"),
        ({"a": "../x.safetensors"}, "files of its own folder. Received: '../x.safetensors'"),
        ({"a": "x.bin"}, "files of its own folder. Received: 'x.bin'"),
    ],
)
def test_an_index_that_is_refused(tmp_path: Path, weight_map: object, message: str) -> None:
    path = tmp_path / "i.json"
    path.write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(ValueError, match=message):
        shards_of(path)


def test_the_dtype_of_most_numbers() -> None:
    arrays = {"a": np.zeros(3, np.float16), "b": np.zeros(2, np.float32), "c": np.zeros(2, "f4")}
    assert dtype_of(arrays) == "float32"


def test_others_may_read_what_the_umask_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_safetensors(tmp_path / "w.safetensors", {"a": np.zeros(2, "float32")})
    finally:
        os.umask(before)
    assert (tmp_path / "w.safetensors").stat().st_mode & 0o777 == 0o644
