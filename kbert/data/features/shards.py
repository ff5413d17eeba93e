"""Hidden states of texts in a folder of safetensors files, found by a digest of each text.

A shard holds the states of some texts, and their digests: the shards of a folder are its index, and
those of several processes add up. It is written beside its place and renamed, and its name is the
SHA-256 of its bytes: it is whole or not there, and damage is noticed.

Format: https://github.com/huggingface/safetensors#format
"""

import hashlib
import json
import logging
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from kbert.storage.files import verify_sha256, write_atomically

logger = logging.getLogger(__name__)
DIGEST = np.dtype("V16")  # 128 bits: enough for any number of texts
_NAMES = "[0-9a-f]" * 64 + ".safetensors"


def write_shard(folder: Path, digests: np.ndarray, lengths: np.ndarray, states: np.ndarray) -> None:
    """Writes the states (tokens, M) of k texts with their digests (k,) and tokens (k,)."""
    rows = np.ascontiguousarray(digests).view("uint8").reshape(-1, DIGEST.itemsize)
    content = save({"digests": rows, "lengths": lengths.astype("int32"), "states": states})
    write_atomically(folder / f"{hashlib.sha256(content).hexdigest()}.safetensors", content)


class _DamagedError(Exception):
    def __init__(self, path: Path, reason: Exception) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class FeatureShards:
    """The shards of a folder, which need not be there; other processes may add some."""

    def __init__(self, folder: Path, dtype: np.dtype) -> None:
        self._folder = folder
        self._dtype = dtype
        self._checked: set[Path] = set()

    def locate(
        self, wanted: np.ndarray, remove_damaged: bool = False
    ) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Finds texts by their digests (u,), without duplicates.

        Returns the states of the shards that are needed, memory-mapped (tokens, M); of each text
        the number of its shard among these, -1 where it has none, and its first row there.

        All bytes of a shard are checked before its first use; a damaged one is left out, and
        removed with a warning if `remove_damaged`.
        """
        paths = sorted(self._folder.glob(_NAMES))
        while True:
            try:
                return self._locate(wanted, paths)
            except _DamagedError as error:
                paths.remove(error.path)
                if remove_damaged:
                    text = "the features in %s are damaged, and are made anew: %s"
                    logger.warning(text, self._folder, error)
                    error.path.unlink(missing_ok=True)

    def _locate(
        self, wanted: np.ndarray, paths: list[Path]
    ) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        found = [_texts_of(path) for path in paths]
        digests = np.concatenate([np.zeros(0, DIGEST), *(digests for digests, _ in found)])
        firsts = np.concatenate([np.zeros(0, "int64"), *(firsts for _, firsts in found)])
        owners = np.repeat(np.arange(len(paths)), [len(digests) for digests, _ in found])
        _, mine, theirs = np.intersect1d(wanted, digests, return_indices=True)
        used, numbers = np.unique(owners[theirs], return_inverse=True)
        shards = [self._states_of(paths[owner]) for owner in used]
        shard_of, starts = np.full(len(wanted), -1), np.zeros(len(wanted), "int64")
        shard_of[mine], starts[mine] = numbers, firsts[theirs]
        return shards, shard_of, starts

    def _states_of(self, path: Path) -> np.ndarray:
        """Maps the states of a shard, which `get_slice` of the library would copy text by text."""
        try:
            if path not in self._checked:
                verify_sha256(path, path.stem)
                self._checked.add(path)
            with path.open("rb") as file:
                header = int.from_bytes(file.read(8), "little")
                states = json.loads(file.read(header))["states"]
            offset = 8 + header + states["data_offsets"][0]
            return np.memmap(path, self._dtype, "r", offset, tuple(states["shape"]))
        except (OSError, ValueError) as error:
            raise _DamagedError(path, error) from error


def _texts_of(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Returns the digests of a shard's texts, and the first row of each."""
    try:
        with safe_open(path, framework="np") as file:
            digests, lengths = file.get_tensor("digests"), file.get_tensor("lengths")
        return digests.view(DIGEST)[:, 0], np.cumsum(lengths, dtype="int64") - lengths
    except (OSError, ValueError, SafetensorError) as error:
        raise _DamagedError(path, error) from error
