"""Steps of Keras' loops: raw texts train on JAX as on TensorFlow."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kbert.optimization.steps import outputs_of_step
from tests.jax_process import jax_environment, skip_without_jax

# Random numbers of Keras differ from backend to backend: it has no dropout, and NumPy's weights.
_TRAINING = """
import json
import numpy as np
from kbert.optimization.adamw import AdamW
from tests.small_pipelines import small_classifier

classifier = small_classifier(("no", "yes"))
draw = np.random.default_rng(5)
for weight in classifier.weights:
    if weight.dtype == "float32":
        weight.assign(draw.normal(0, 0.1, weight.shape))
texts, labels = ["good film", "a bad one", "the very best of all", "x"] * 4, ["yes", "no"] * 8
classifier.compile(optimizer=AdamW(1e-2))
history = classifier.fit(
    texts, labels, epochs=2, batch_size=8, validation_data=(texts, labels), verbose=0, seed=3
).history
print(json.dumps([history["loss"], history["val_loss"], classifier.predict(texts[:4]).tolist()]))
"""


class _Doubling:
    def batch_outputs(self, x):
        return 2 * x


def test_a_step_on_tensorflow_gives_the_outputs_of_its_batch():
    batch = (np.ones((2, 3)), np.zeros(2))
    np.testing.assert_array_equal(outputs_of_step(_Doubling(), batch), np.full((2, 3), 2.0))


@pytest.mark.slow
def test_raw_texts_train_and_are_predicted_on_jax_as_on_tensorflow(repository: Path):
    skip_without_jax()
    found = {}
    for backend in ("tensorflow", "jax"):
        run = subprocess.run(
            [sys.executable, "-c", _TRAINING],
            cwd=repository,
            env=jax_environment(KERAS_BACKEND=backend),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, run.stderr[-3000:]
        found[backend] = json.loads(run.stdout.strip().splitlines()[-1])
    losses, held_out, _ = found["jax"]
    assert losses[1] < losses[0] and held_out[1] < held_out[0]
    for ours, theirs in zip(found["jax"], found["tensorflow"]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
