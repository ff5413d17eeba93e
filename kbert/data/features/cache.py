"""Cache on disk of a frozen encoder's hidden states.

A frozen encoder has the same states for a text in every epoch and in every corpus. Here they are
computed once, and found by a digest of the text's token ids in a folder that is named after all
else that they depend on: other texts or other weights never get stale states.

Shapes: n texts, u distinct texts with tokens, M width of the encoder.
"""

import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.batches.plans import batch_plan
from kbert.data.features.shards import DIGEST, FeatureShards, write_shard
from kbert.data.features.text_features import FrozenEncoder, TextFeatures
from kbert.storage.files import file_lock, remove_leftovers, write_atomically

logger = logging.getLogger(__name__)
# States come out of a LayerNorm, far inside float16's range, where it is eight times as exact as
# bfloat16 (a relative 2^-11): less than an encoder in bfloat16 loses on its way, or a training that
# casts them to it. Half the disk and half the reading of float32.
DTYPE = "float16"
DTYPES = ("float16", "bfloat16", "float32")
BATCH_TOKENS = 2048
SHARD_BYTES = 64 << 20
SHARD_SECONDS = 30.0
ABOUT = "about.json"
_FORMAT = "kbert text features 2"
_FORMER_DATA = "*/data.bin"  # what only folders of the former format hold
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class CacheReport:
    """Counts of n texts, of the distinct ones, and of the tokens of these. `str()` is one line.

    `file_bytes` is the size of their states, `encoded_tokens` are those that a call computed, 0
    where all were cached, and `seconds` is the time that this took.
    """

    folder: Path
    texts: int
    distinct_texts: int
    tokens: int
    file_bytes: int
    encoded_tokens: int
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        """The computed tokens a second; 0 where none were computed."""
        return self.encoded_tokens / self.seconds if self.encoded_tokens else 0.0

    def __str__(self) -> str:
        computed = "all were there"
        if self.encoded_tokens:
            computed = (
                f"{self.encoded_tokens:,} tokens encoded in {self.seconds:.1f} s, "
                f"{self.tokens_per_second:,.0f} a second"
            )
        return (
            f"features of {self.texts:,} texts, {self.distinct_texts:,} of them different, with "
            f"{self.tokens:,} tokens: {self.file_bytes:,} bytes; {computed}"
        )


def cached_features(
    packed: PackedExamples,
    encoder: FrozenEncoder,
    directory: str | os.PathLike[str],
    dtype: str = DTYPE,
    batch_tokens: int = BATCH_TOKENS,
    shard_seconds: float = SHARD_SECONDS,
    progress: Progress = lambda done, total: None,
) -> tuple[TextFeatures, CacheReport]:
    """Returns the hidden states of texts, from the cache or else computed and stored there.

    Equal texts are computed and stored once. If the process is stopped, the next one resumes after
    the last shard; of several processes at once, one computes and the others wait for it. Texts of
    a damaged shard are computed again, with a warning. A ValueError says that the states are not
    finite, or that `dtype`, one of `DTYPES`, cannot hold them; an OSError that the disk is full.

    Args:
        directory: folder of the cache, which has a folder for each encoder and dtype.
        batch_tokens: the most positions of a batch, padding included.
        shard_seconds: after so long a shard is written even if it is small.
        progress: called with the tokens done and all of them, at the start and after each batch;
            only where something is computed.
    """
    if dtype not in DTYPES:
        raise ValueError(f"`dtype` must be one of {list(DTYPES)}. Received: dtype={dtype!r}")
    job = _Job(packed, encoder, directory, dtype)
    encoded, seconds = 0, 0.0
    if len(job.missing()):
        job.folder.parent.mkdir(parents=True, exist_ok=True)
        lock = job.folder.with_name(f".{job.folder.name}.lock")
        waiting = f"another process makes {job.folder}; waiting for it"
        with file_lock(lock, lambda: logger.warning(waiting)):
            # No other process changes it now, but one may have added to it meanwhile.
            missing = job.missing(remove_damaged=True)
            if len(missing):
                begin = time.perf_counter()
                job.prepare(missing)
                encoded = job.fill(missing, batch_tokens, shard_seconds, progress)
                seconds = time.perf_counter() - begin
    features = job.features()
    report = CacheReport(job.folder, *job.counts, job.bytes_of(job.counts[-1]), encoded, seconds)
    logger.info("%s", report)
    return features, report


def cache_key(fingerprint: str, dtype: str) -> str:
    """Returns the name of a folder of states: a SHA-256 of all that they depend on but the text."""
    parts = (_FORMAT, fingerprint, dtype)
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()


def text_digests(packed: PackedExamples, key: str) -> np.ndarray:
    """Returns (n,), a digest of each text's token ids and segment ids.

    It includes the `cache_key`, so that a shard in the folder of another encoder has no text that
    is looked for there.
    """
    # The ids of a token side by side, so that a text is one run of bytes.
    ids = np.stack([packed.token_ids, packed.segment_ids], axis=-1).astype("<i4")
    content, size = memoryview(ids.tobytes()), 2 * ids.itemsize
    begin, digests = hashlib.sha256(key.encode()), []
    for start, length in zip(packed.starts.tolist(), packed.lengths.tolist()):
        digest = begin.copy()
        digest.update(content[start * size : (start + length) * size])
        digests.append(digest.digest()[: DIGEST.itemsize])
    return np.frombuffer(b"".join(digests), DIGEST)


def distinct_texts(digests: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds the distinct texts by their digests (n,).

    Returns int64 (u,), indices of the distinct texts, the longest first and equally long ones in
    their order; and int64 (n,), for each text the position of its equal in the former.
    """
    _, firsts, of_text = np.unique(digests, return_index=True, return_inverse=True)
    order = np.lexsort((firsts, -lengths[firsts].astype("int64")))
    return firsts[order], np.argsort(order)[of_text]


class _Job:
    """The texts to find, and the computation of those that are missing."""

    def __init__(
        self,
        packed: PackedExamples,
        encoder: FrozenEncoder,
        directory: str | os.PathLike[str],
        dtype: str,
    ) -> None:
        self._packed = packed
        self._encoder = encoder
        self._dtype = np.dtype(tf.as_dtype(dtype).as_numpy_dtype)
        key = cache_key(encoder.fingerprint, dtype)
        self.folder = Path(directory, key)
        self._shards = FeatureShards(self.folder, self._dtype)
        digests = text_digests(packed, key)
        self._kinds, self._kind_of_text = distinct_texts(digests, packed.lengths)
        self._lengths = packed.lengths[self._kinds].astype("int64")
        # A text without tokens is in no shard; it is the last of the distinct ones.
        self._digests = digests[self._kinds[self._lengths > 0]]
        self.counts = (len(packed), len(self._kinds), int(self._lengths.sum()))

    def missing(self, remove_damaged: bool = False) -> np.ndarray:
        """Returns the positions of the distinct texts that are in no shard, the longest first."""
        _, shard_of, _ = self._shards.locate(self._digests, remove_damaged)
        return np.flatnonzero(shard_of < 0)

    def bytes_of(self, tokens: int) -> int:
        """Returns the size of the states of some tokens."""
        return tokens * self._encoder.hidden_dim * self._dtype.itemsize

    def prepare(self, missing: np.ndarray) -> None:
        """Makes the folder, describes in it what the states are of, and checks the free space."""
        folder = self.folder
        if folder.exists() and not folder.is_dir():
            text = "the features in %s are damaged, and are made anew: it is a file"
            logger.warning(text, folder)
            folder.unlink()
        for former in sorted(folder.parent.glob(_FORMER_DATA)):
            text = "%s holds features in a former format, which is not read; it may be deleted"
            logger.warning(text, former.parent)
        folder.mkdir(exist_ok=True)
        remove_leftovers(folder)
        encoder = {**self._encoder.description, "fingerprint": self._encoder.fingerprint}
        sizes = {"hidden_dim": self._encoder.hidden_dim, "dtype": self._dtype.name}
        about = {"format": _FORMAT, **sizes, "encoder": encoder}
        write_atomically(folder / ABOUT, json.dumps(about, indent=2, ensure_ascii=False) + "\n")
        size, free = self.bytes_of(self._lengths[missing].sum()), shutil.disk_usage(folder).free
        if size > free:
            raise OSError(
                f"`{folder.parent}` must have room for {size:,} bytes more. Received: "
                f"{free:,} bytes"
            )

    def fill(
        self, missing: np.ndarray, batch_tokens: int, shard_seconds: float, progress: Progress
    ) -> int:
        """Computes and writes the missing states; returns the number of their tokens."""
        lengths, total = self._lengths[missing], self.counts[-1]
        begin = done = total - int(lengths.sum())
        progress(done, total)
        states: list[np.ndarray] = []
        first = end = 0
        written = time.monotonic()
        # They are sorted by length, so each batch follows the one before, and a run that resumes
        # after a shard makes the batches that it would have made without the stop.
        for batch in batch_plan(lengths, None, batch_tokens):
            end += len(batch)
            rows = self._kinds[missing[batch]]
            states.append(self._cast(self._encoder.states(self._packed, rows)))
            done += len(states[-1])
            is_full = sum(some.nbytes for some in states) >= SHARD_BYTES
            if is_full or end == len(missing) or time.monotonic() - written >= shard_seconds:
                part = missing[first:end]
                columns = (self._digests[part], self._lengths[part], np.concatenate(states))
                write_shard(self.folder, *columns)
                states, first, written = [], end, time.monotonic()
            progress(done, total)
        return done - begin

    def features(self) -> TextFeatures:
        """Returns the features of all texts, none of which may be missing."""
        shards, shard_of, starts = self._shards.locate(self._digests)
        if (shard_of < 0).any():
            raise OSError(
                f"`{self.folder}` must keep its files while they are read. Received: "
                f"{(shard_of < 0).sum()} texts less than were there"
            )
        shards = shards or [np.zeros((0, self._encoder.hidden_dim), self._dtype)]
        shard_of, starts = (np.append(one, 0)[self._kind_of_text] for one in (shard_of, starts))
        return TextFeatures(shards, shard_of, starts, self._packed.lengths)

    def _cast(self, states: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            cast = states.astype(self._dtype)
        if not np.isfinite(cast).all():
            largest = float(np.abs(states).max())
            raise ValueError(
                f"`dtype` must be one that holds states up to {largest:g}. Received: "
                f"dtype={self._dtype.name!r}"
            )
        return cast
