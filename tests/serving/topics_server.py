"""A local server of a model that can be computed by hand, for the tests of what asks a server.

It gives for each text its length, a label, and one number a letter of the longest text.
"""

import asyncio
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import tensorflow as tf

from kbert.local_server.limits import Refusal
from kbert.local_server.server import LocalServer, ServerOptions
from kbert.serving.export.export import export

MODEL = "topics"
VERSION = 3


class Topics:
    """The model."""

    name = MODEL
    max_sequence_length = 16
    pair = False

    def preprocess(self, text: tf.Tensor) -> Any:
        """One token a byte."""
        pieces = tf.strings.bytes_split(text)[:, :16]
        ids = tf.cast(tf.strings.to_hash_bucket_fast(pieces, 9).to_tensor(), tf.int32)
        lengths = tf.cast(pieces.row_lengths(), tf.int32)
        return SimpleNamespace(token_ids=ids, segment_ids=tf.zeros_like(ids), lengths=lengths)

    def label(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """More than five bytes are long."""
        is_long = tf.strings.length(text) > 5
        scores = tf.where(is_long[:, None], [[0.25, 0.75]], [[0.875, 0.125]])
        return {
            "label": tf.where(is_long, "long", "short"),
            "score": tf.reduce_max(scores, 1),
            "scores": scores,
            "labels": tf.tile([["short", "long"]], [tf.size(text), 1]),
        }

    def length(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Bytes."""
        return {"length": tf.strings.length(text)}

    def letters(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """The bytes themselves, padded to the longest text."""
        lengths = tf.strings.length(text)
        most = tf.reduce_max(tf.concat([lengths, [0]], 0))
        letters = tf.io.decode_raw(text, tf.uint8, fixed_length=tf.maximum(most, 1))[:, :most]
        return {"letters": tf.cast(letters, tf.int32), "n": lengths}

    def signatures(self) -> dict[str, Any]:
        """The functions of an export and the specs of their inputs."""
        text = [tf.TensorSpec((None,), tf.string, name="text")]
        found = {"length": self.length, "letters": self.letters, "serving_default": self.label}
        return {name: (function, text) for name, function in found.items()}


class Asked:
    """What the server was asked, and how it misbehaves.

    Attributes:
        url: Protocol -> address.
        rows: Rows of each request that was answered.
        refusals: What the next requests get instead of an answer: gRPC's codes.
        delay: Seconds before each answer.
    """

    def __init__(self, server: LocalServer) -> None:
        self.url = {"rest": server.rest_url, "grpc": server.grpc_url}
        self.lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Begins anew."""
        self.rows: list[int] = []
        self.refusals: list[str] = []
        self.delay = 0.0


@contextmanager
def topics_server() -> Iterator[Asked]:
    """A server on loopback while the block runs."""
    with tempfile.TemporaryDirectory() as base:
        export(Topics(), base, version=VERSION, max_batch_size=0)
        options = ServerOptions(rest_port=0, grpc_port=0)
        with LocalServer(base, options) as server:
            asked = Asked(server)
            answer = server.store.answer

            async def misbehaving(version: Any, name: str, inputs: Any, deadline: float) -> Any:
                with asked.lock:
                    refusal = asked.refusals.pop(0) if asked.refusals else None
                if refusal is not None:
                    raise Refusal(refusal, "Batch scheduling queue is full")
                await asyncio.sleep(asked.delay)
                asked.rows.append(len(inputs["text"]))
                return await answer(version, name, inputs, deadline)

            server.store.answer = misbehaving
            yield asked
