"""Graphs that answer what does not fit are found, and those that refuse it pass."""

from pathlib import Path

import numpy as np
import tensorflow as tf

from kbert.export_check.bad_requests import bad_request_problems
from kbert.serving.loading.session_loader import Session
from tests.c_compiler import needs_compiler


class Unchecked(tf.Module):
    """Answers any rank, and gives one row where there are none."""

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32, name="x")])
    def double(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": tf.concat([2 * tf.reshape(x, [-1]), [0.0]], 0)}


@needs_compiler
def test_a_graph_that_checks_nothing(tmp_path: Path, programs: Path):
    module = Unchecked()
    tf.saved_model.save(module, str(tmp_path / "1"), {"serving_default": module.double})
    with Session(tmp_path / "1", folder=programs) as session:
        assert session.ask("serving_default", {"x": np.ones((1, 1), "float32")})["y"].shape == (2,)
        assert list(bad_request_problems(session)) == [
            "The signature 'serving_default' does not refuse another rank of 'x': it answers.",
            "The signature 'serving_default' gives 'y' the shape (1,) without rows.",
        ]


@needs_compiler
def test_an_export_of_kbert(meter_path: Path, programs: Path):
    with Session(meter_path, folder=programs) as session:
        assert list(bad_request_problems(session)) == []
