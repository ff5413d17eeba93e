"""Batching of requests by a server: the file `batching_params.pbtxt` of a SavedModel.

Exports of kbert have none, since they batch in their graph. A server reads it with
`--enable_batching --enable_per_model_batching_parameters`; if the file is missing it does not batch
the model, and if it cannot be read it does not load the model. Source: tensorflow/serving,
`bundle_factory_util.cc` and the message BatchingParameters of `session_bundle_config.proto`.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format

from kbert.serving.format.messages import message_class

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
