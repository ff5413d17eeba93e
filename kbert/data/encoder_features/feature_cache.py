"""Cache on disk of a frozen encoder's hidden states.

A frozen encoder has the same states for a text in every epoch. Here they are computed once, and
kept under a key that is a hash of all token ids and of all else that the states depend on: other
texts or other weights have another key, and never get stale states.

Shapes: n texts, k texts of a batch, T tokens of its longest, M width of the encoder.
"""

import hashlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.batches.plans import batch_plan
from kbert.data.encoder_features.frozen_encoder import FrozenEncoder
from kbert.data.encoder_features.text_features import TextFeatures, map_states
from kbert.storage.file_lock import file_lock
from kbert.storage.growing_file import DATA, GrowingFile, growing_file, remove, whole_file

logger = logging.getLogger(__name__)
# States come out of a LayerNorm, far inside float16's range, where it is eight times as exact as
# bfloat16 (a relative 2^-11): less than an encoder in bfloat16 loses on its way, or a training that
# casts them to it. Half the disk and half the reading of float32.
DTYPE = "float16"
DTYPES = ("float16", "bfloat16", "float32")
BATCH_TOKENS = 2048
RECORD_SECONDS = 10.0
_FORMAT = "kbert text features 1"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class CacheReport:
    """Counts of the cached states and of those computed by a call.

    Attributes:
        folder: folder of the states.
        texts: n, the number of texts.
        distinct_texts: the number of texts without duplicates.
        tokens: tokens of the distinct texts.
        file_bytes: size of the states.
        encoded_tokens: tokens that were computed; 0 where all were cached.
        seconds: time that the computation took.
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
        """Returns the computed tokens a second; 0 where none were computed."""
        return self.encoded_tokens / self.seconds if self.encoded_tokens else 0.0

    def __str__(self) -> str:
        """Returns the report in one line."""
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
    record_seconds: float = RECORD_SECONDS,
    progress: Progress = lambda done, total: None,
) -> tuple[TextFeatures, CacheReport]:
    """Returns the hidden states of texts, from the cache or else computed and stored there.

    Equal texts are computed and stored once. If the process is stopped, the next one resumes from
    the last record; of several processes at once, one computes and the others wait for it. A cached
    file is read whole, and used only if its record and checksum match; otherwise it is computed
    again, with a warning.

    Args:
        packed: n texts.
        encoder: the encoder that computes the states.
        directory: folder of the cache. Each key has a folder in it, which may be deleted at any
            time.
        dtype: type of the states: "float16", "bfloat16" or "float32".
        batch_tokens: the most positions of a batch, padding included.
        record_seconds: seconds between two records of the progress: the most that a stop loses.
        progress: called with the tokens done and the tokens of all distinct texts, at the start
            and after each batch; only where something is computed.

    Returns:
        The states, memory-mapped, for the texts in their order; and the report.

    Raises:
        ValueError: `dtype` is unknown or cannot hold the states, or the states are not finite or
            of another shape than the encoder's `hidden_dim` implies.
        OSError: the disk is full.
    """
    if dtype not in DTYPES:
        raise ValueError(f"`dtype` must be one of {list(DTYPES)}. Received: dtype={dtype!r}")
    job = _Job(packed, encoder, dtype)
    folder = Path(directory, job.key)
    encoded, seconds = 0, 0.0
    if not _is_whole(folder, job):
        folder.parent.mkdir(parents=True, exist_ok=True)
        waiting = f"another process makes {folder}; waiting for it"
        with file_lock(folder.with_name(f".{job.key}.lock"), lambda: logger.warning(waiting)):
            # No other process changes it now, but one may have made it meanwhile.
            if not _is_whole(folder, job, remove_damaged=True):
                begin = time.perf_counter()
                with growing_file(folder, job.made_of, job.size) as file:
                    encoded = job.fill(file, batch_tokens, record_seconds, progress)
                seconds = time.perf_counter() - begin
    report = CacheReport(folder, *job.counts, job.size, encoded, seconds)
    logger.info("%s", report)
    return job.features(folder / DATA), report


def feature_key(packed: PackedExamples, fingerprint: str, dtype: str) -> str:
    """Returns the key of states in the cache: a hash of all that they depend on, and their order.

    Args:
        packed: the texts.
        fingerprint: fingerprint of the encoder.
        dtype: type of the states.

    Returns:
        64 hexadecimal digits, a SHA-256.
    """
    digest = hashlib.sha256()
    for name in (_FORMAT, fingerprint, dtype):
        digest.update(f"{len(name)}:{name}".encode())
    columns = (packed.starts, packed.lengths, packed.token_ids, packed.segment_ids)
    for column, type_ in zip(columns, ("<i8", "<i8", "<i4", "<i4")):
        digest.update(f"{len(column)}:".encode())
        digest.update(np.ascontiguousarray(column, type_).data)
    return digest.hexdigest()


class _Job:
    """The contents of one cache file, and their computation.

    The states of the longest text come first, then those of the next: a length-bucketed batch is
    contiguous in the file, and the progress is a number of bytes.
    """

    def __init__(self, packed: PackedExamples, encoder: FrozenEncoder, dtype: str) -> None:
        self._packed = packed
        self._encoder = encoder
        self._dtype = np.dtype(tf.as_dtype(dtype).as_numpy_dtype)
        self._kinds, self._kind_of_text = distinct_texts(packed)
        self._ends = np.cumsum(packed.lengths[self._kinds], dtype="int64")
        tokens = int(self._ends[-1]) if len(self._ends) else 0
        self._row_bytes = encoder.hidden_dim * self._dtype.itemsize
        self.counts = (len(packed), len(self._kinds), tokens)
        self.size = tokens * self._row_bytes
        self.key = feature_key(packed, encoder.fingerprint, dtype)
        self.made_of = {
            "format": _FORMAT,
            "key": self.key,
            **dict(zip(("texts", "distinct_texts", "tokens"), self.counts)),
            "hidden_dim": encoder.hidden_dim,
            "dtype": dtype,
            "encoder": {**encoder.description, "fingerprint": encoder.fingerprint},
        }

    def fill(
        self, file: GrowingFile, batch_tokens: int, record_seconds: float, progress: Progress
    ) -> int:
        """Computes and writes the missing states; returns the number of their tokens."""
        begin = done = file.done // self._row_bytes
        rest = self._kinds[self._ends > done]
        rest = rest[self._packed.lengths[rest] > 0]
        progress(done, self.counts[-1])
        recorded = time.monotonic()
        # They are sorted already, and a run stops between two batches: the plan cuts the rest as
        # it would have cut it without the stop.
        for batch in batch_plan(self._packed.lengths[rest], None, batch_tokens):
            states = self._encoder.states(self._packed, rest[batch])
            file.append(self._cast(states).tobytes())
            done += len(states)
            if time.monotonic() - recorded >= record_seconds:
                file.record()
                recorded = time.monotonic()
            progress(done, self.counts[-1])
        return done - begin

    def features(self, path: Path) -> TextFeatures:
        """Returns the features of all texts, mapped from the file."""
        lengths = np.asarray(self._packed.lengths, "int64")
        starts = self._ends[self._kind_of_text] - lengths
        states = map_states(path, self.counts[-1], self._encoder.hidden_dim, self._dtype)
        return TextFeatures(states, starts, lengths)

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


def _is_whole(folder: Path, job: _Job, remove_damaged: bool = False) -> bool:
    try:
        whole_file(folder, job.made_of, job.size)
    except FileNotFoundError:
        return False
    except ValueError as error:
        if remove_damaged:
            logger.warning("the features in %s are damaged, and are made anew: %s", folder, error)
            remove(folder)
        return False
    return True


def distinct_texts(packed: PackedExamples) -> tuple[np.ndarray, np.ndarray]:
    """Finds the distinct texts.

    Two texts are equal if all their token ids and segment ids are.

    Args:
        packed: n texts.

    Returns:
        int64 (u,), indices of the distinct texts, the longest first and equally long ones in their
        order; and int64 (n,), for each text the position of its equal in the former.
    """
    lengths = np.asarray(packed.lengths)
    first = np.arange(len(lengths))
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        cells = packed.starts[rows][:, None] + np.arange(length)
        ids = np.concatenate([packed.token_ids[cells], packed.segment_ids[cells]], axis=1)
        # One value of that many bytes per text; a text without tokens has none, and gets one.
        ids = np.pad(ids, ((0, 0), (0, int(length == 0))))
        values = np.ascontiguousarray(ids).view(f"V{ids.shape[1] * ids.itemsize}")[:, 0]
        _, chosen, inverse = np.unique(values, return_index=True, return_inverse=True)
        first[rows] = rows[chosen[inverse]]
    kinds = np.flatnonzero(first == np.arange(len(lengths)))
    kinds = kinds[np.argsort(-lengths[kinds].astype("int64"), kind="stable")]
    place = np.zeros(len(lengths), "int64")
    place[kinds] = np.arange(len(kinds))
    return kinds, place[first]
