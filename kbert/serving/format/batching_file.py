"""Batching of requests by a server: the file `batching_params.pbtxt` of an export.

A server reads it with `--enable_batching --enable_per_model_batching_parameters`; if the file is
missing it does not batch the model, and if it cannot be read it does not load the model. The thread
pool is the server's own. Source: tensorflow/serving, `bundle_factory_util.cc` and the message
BatchingParameters of `session_bundle_config.proto`.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from kbert.serving.format.messages import SavedSignature, message_class
from kbert.serving.format.signatures import Signature

BATCHING_FILE = "batching_params.pbtxt"
MAX_BATCH_SIZE = 32
# The input with the unpadded length of each row, so that a server's padding is ignored.
LENGTHS = "lengths"


@dataclass(frozen=True)
class Batching:
    """Batching parameters of a server, in rows; the sizes ascend to `max_batch_size`.

    A request waits for others at most `batch_timeout_micros`. Batches are filled up to an allowed
    size with copies of rows; a server refuses to hold more than `max_enqueued_batches`. With
    `pad_variable_length_inputs` requests of different lengths share a batch.
    """

    max_batch_size: int
    batch_timeout_micros: int
    max_enqueued_batches: int
    allowed_batch_sizes: tuple[int, ...]
    pad_variable_length_inputs: bool

    def __post_init__(self) -> None:
        for name in ("max_batch_size", "max_enqueued_batches"):
            if not (value := getattr(self, name)) > 0:
                raise ValueError(f"`{name}` must be positive. Received: {name}={value}")
        if self.batch_timeout_micros < 0:
            raise ValueError(
                "`batch_timeout_micros` must not be negative. Received: "
                f"batch_timeout_micros={self.batch_timeout_micros}"
            )
        sizes = self.allowed_batch_sizes
        rising = all(a < b for a, b in zip((0, *sizes), sizes))
        if not rising or sizes[-1:] != (self.max_batch_size,):
            raise ValueError(
                f"`allowed_batch_sizes` must rise to max_batch_size={self.max_batch_size}. "
                f"Received: allowed_batch_sizes={list(sizes)}"
            )

    def as_json(self) -> dict[str, Any]:
        """Returns the numbers for kbert.json."""
        return {**asdict(self), "allowed_batch_sizes": list(self.allowed_batch_sizes)}


def batching_for(
    signatures: Mapping[str, Signature | SavedSignature], max_batch_size: int = MAX_BATCH_SIZE
) -> Batching | None:
    """Returns the batching that suits a model: sizes 1, 2, 4, ... up to the largest, 0 for none.

    It is None where requests must not be joined: a server's padding would be read as data in an
    input that has a free dimension besides the batch, and no `lengths`.
    """
    if max_batch_size < 0:
        raise ValueError(
            f"`max_batch_size` must not be negative. Received: max_batch_size={max_batch_size}"
        )
    free = False
    for signature in signatures.values():
        varies = any(None in (tensor.shape or ())[1:] for tensor in signature.inputs.values())
        if varies and LENGTHS not in signature.inputs:
            return None
        free |= varies
    if not max_batch_size:
        return None
    sizes = [2**i for i in range(max_batch_size.bit_length()) if 2**i < max_batch_size]
    return Batching(max_batch_size, 2000, 16, (*sizes, max_batch_size), free)


def write_batching(export_dir: str | os.PathLike[str], batching: Batching) -> None:
    """Writes the batching file of a version folder."""
    lines = [
        f"{name} {{ value: {getattr(batching, name)} }}"
        for name in ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches")
    ]
    lines += [f"allowed_batch_sizes: {size}" for size in batching.allowed_batch_sizes]
    padding = str(batching.pad_variable_length_inputs).lower()
    lines.append(f"pad_variable_length_inputs: {padding}")
    Path(export_dir, BATCHING_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_batching(export_dir: str | os.PathLike[str]) -> Batching | None:
    """Reads the batching file as a server does, with its defaults; None if there is no file."""
    file = Path(export_dir, BATCHING_FILE)
    if not file.is_file():
        return None
    try:
        text = file.read_text(encoding="utf-8")
        found = text_format.Parse(text, message_class("BatchingParameters")())
        most = found.max_batch_size.value if found.HasField("max_batch_size") else 1000
        queue = found.max_enqueued_batches
        return Batching(
            most,
            found.batch_timeout_micros.value,
            queue.value if found.HasField("max_enqueued_batches") else 10,
            tuple(found.allowed_batch_sizes) or (most,),
            found.pad_variable_length_inputs,
        )
    except (ValueError, text_format.ParseError) as error:
        raise ValueError(f"`{file}` must hold BatchingParameters. Received: {error}") from error
