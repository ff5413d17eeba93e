"""The variables of a checkpoint in TensorFlow's own format.

The `.index` file is read here; the values are read by TensorFlow. The index is a LevelDB table:
sorted keys with shared prefixes in blocks, then an index block that lists the blocks, then a footer
with the handle of that block. Each value is a `BundleEntryProto`.

Source: tensorflow, `core/util/tensor_bundle/tensor_bundle.cc` and
`core/protobuf/tensor_bundle.proto`; leveldb, `doc/table_format.md`.
"""

import functools
import glob
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kbert.checkpoints.arrays.wire_format import read_fields, read_varint

_FOOTER = 48
_MAGIC = bytes.fromhex("57fb808b247547db")
# After each block: one byte for its compression, four for its checksum.
_TRAILER = 5
# Enum values of `types.proto`.
_DTYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    7: "string",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    19: "float16",
}


class IndexEntry(NamedTuple):
    """One tensor: shape, dtype ("other" for one that no encoder has), and where its bytes are."""

    shape: tuple[int, ...]
    dtype: str
    shard: int
    offset: int
    size: int


def read_index(prefix: str) -> dict[str, IndexEntry]:
    """Reads the index of a checkpoint: key -> entry, without slices of partitioned variables.

    Raises a ValueError if the file is damaged, truncated or compressed, and an OSError if it cannot
    be read.
    """
    content = Path(f"{prefix}.index").read_bytes()
    if len(content) < _FOOTER or content[-8:] != _MAGIC:
        raise ValueError("not an index: it does not end as a table does")
    # Two handles of two numbers each: of the metaindex block, which is empty, and the index block.
    handles = content[-_FOOTER:]
    _rows(content, handles)
    for _ in range(2):
        handles = handles[read_varint(handles, 0)[1] :]
    rows = [row for _, handle in _rows(content, handles) for row in _rows(content, handle)]
    # The empty key has the number of data files; keys of slices begin with a zero byte.
    return {key.decode(): _entry(value) for key, value in rows if key and key[0]}


def _rows(content: bytes, handle: bytes) -> list[tuple[bytes, bytes]]:
    """Returns the keys and values of the block at a handle: its offset and size, two varints."""
    offset, place = read_varint(handle, 0)
    size, _ = read_varint(handle, place)
    block = content[offset : offset + size]
    if len(content) < offset + size + _TRAILER or size < 4:
        raise ValueError("a block is cut off")
    if content[offset + size]:
        raise ValueError("its blocks are compressed")
    if _masked_crc32c(content[offset : offset + size + 1]) != content[offset + size + 1 :][:4]:
        raise ValueError("a block differs from its checksum")
    restarts = int.from_bytes(block[-4:], "little")
    end, place, key = size - 4 * (restarts + 1), 0, b""
    found = []
    while place < end:
        shared, place = read_varint(block, place)
        own, place = read_varint(block, place)
        length, place = read_varint(block, place)
        key = key[:shared] + block[place : place + own]
        place += own
        found.append((key, block[place : place + length]))
        place += length
    return found


def _masked_crc32c(content: bytes) -> bytes:
    """Returns the masked CRC-32C of bytes: rotated, with a constant added."""
    value, table = 0xFFFFFFFF, _crc32c_table()
    for byte in content:
        value = table[(value ^ byte) & 255] ^ (value >> 8)
    value ^= 0xFFFFFFFF
    masked = ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return masked.to_bytes(4, "little")


@functools.cache
def _crc32c_table() -> list[int]:
    """Returns the remainder of each byte by Castagnoli's polynomial, bit-reversed."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


def _entry(value: bytes) -> IndexEntry:
    """Parses a `BundleEntryProto`; a size of zero in its shape is not written."""
    shape: list[int] = []
    numbers = {1: 0, 3: 0, 4: 0, 5: 0}
    for field in read_fields(value):
        if field.number == 2:
            sizes = [read_fields(d.value) for d in read_fields(field.value) if d.number == 2]
            shape = [next((part.value for part in size if part.number == 1), 0) for size in sizes]
        elif field.number in numbers:
            numbers[field.number] = field.value
    dtype, shard, offset, size = numbers.values()
    return IndexEntry(tuple(shape), _DTYPES.get(dtype, "other"), shard, offset, size)


def import_tensorflow(purpose: str) -> Any:
    """Imports TensorFlow; the ImportError where it is not installed names the purpose."""
    try:
        import tensorflow
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs TensorFlow: pip install tensorflow. Formats with safetensors files "
            "do not need it."
        ) from error
    return tensorflow


class TensorflowVariables:
    """The variables of one checkpoint, loaded one by one; damaged files raise a ValueError.

    Without `values`, `load` returns zeros of the same shape and dtype, for which TensorFlow is not
    imported; the ImportError if it is not installed names the `purpose`. `shapes` maps the key of a
    variable to its shape.
    """

    def __init__(self, prefix: str, purpose: str, values: bool = True) -> None:
        self._prefix = prefix
        self._purpose = purpose
        self._values = values
        self._reader: Any = None
        try:
            self._index = read_index(prefix)
        except (ValueError, OSError) as error:
            raise self._damaged(error) from error
        self.shapes = {key: entry.shape for key, entry in self._index.items()}

    def string(self, key: str) -> bytes:
        """Returns the value of a variable that holds one string."""
        entry = self._index[key]
        prefix = Path(self._prefix)
        try:
            name = f"{glob.escape(prefix.name)}.data-{entry.shard:05d}-of-*"
            path = next(prefix.parent.glob(name))
            with path.open("rb") as file:
                file.seek(entry.offset)
                content = file.read(entry.size)
            length, place = read_varint(content, 0)
        except (ValueError, OSError, StopIteration) as error:
            raise self._damaged(error) from error
        # Between the length and the string is the length's checksum, of four bytes.
        if place + 4 + length != len(content):
            raise self._damaged(ValueError(f"{key} is cut off"))
        return content[place + 4 :]

    def load(self, key: str) -> np.ndarray:
        """Returns the array of a variable."""
        entry = self._index[key]
        if not self._values and entry.dtype.startswith("float"):
            return np.zeros(entry.shape, entry.dtype)
        tensorflow = import_tensorflow(self._purpose)
        # TensorFlow turns some failures into Python exceptions, depending on their messages.
        try:
            if self._reader is None:
                self._reader = tensorflow.train.load_checkpoint(self._prefix)
            return np.asarray(self._reader.get_tensor(key))
        except (tensorflow.errors.OpError, LookupError, RuntimeError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> ValueError:
        return ValueError(
            f"`{self._prefix}` must be a whole checkpoint of TensorFlow; its files are damaged or "
            f"were cut off. Received: {error}"
        )
