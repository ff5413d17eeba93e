"""Steps of Keras' loops: raw texts train on JAX as on TensorFlow, on one device and on four."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbert.optimization.steps import outputs_of_step
from tests.jax_process import jax_environment, skip_without_jax

# Prints a training for each of the arguments DROPOUT:DEVICES, 0 for no distribution. 22 texts
# are batches of 6 rows, which 4 devices cannot share equally, and one of 4. Random numbers of Keras
# differ from backend to backend: the weights are NumPy's.
_TRAINING = """
import json
import sys
from contextlib import nullcontext
import keras
import numpy as np
from kbert.optimization.adamw import AdamW
from kbert.training.distributed.strategies import strategy
from tests.small_pipelines import small_classifier

TEXTS = (["good film", "a bad one", "the very best of all", "x"] * 6)[:22]
TEXTS[20:] = ["good film", "x"]
LABELS = ["yes", "no"] * 11
SHARDINGS, TRAINED = set(), {}  # (number of devices, whether each has all rows); by devices

def seen(inputs):
    import jax
    jax.debug.inspect_array_sharding(
        inputs["token_ids"],
        callback=lambda s: SHARDINGS.add((len(s.device_set), s.is_fully_replicated)),
    )

def trained(dropout, devices):
    SHARDINGS.clear()
    losses = []
    each = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: losses.append(float(logs["loss"]))
    )
    with strategy("mirrored", devices).scope() if devices else nullcontext():
        keras.utils.set_random_seed(3)
        classifier = TRAINED[devices] = small_classifier(("no", "yes"), dropout=dropout)
        draw = np.random.default_rng(5)
        for weight in classifier.weights:
            if weight.dtype == "float32":
                weight.assign(draw.normal(0, 0.3, weight.shape))
        if devices:
            call = classifier.call
            classifier.call = lambda x, **kwargs: (seen(x), call(x, **kwargs))[1]
        classifier.compile(optimizer=AdamW(5e-3))
        history = classifier.fit(
            TEXTS, LABELS, epochs=2, batch_size=6, validation_data=(TEXTS, LABELS),
            sample_weight=np.linspace(0.5, 1.5, 22), verbose=0, seed=3, callbacks=[each],
        ).history
        answers = classifier.predict(TEXTS[:3]).tolist()
    return [losses, history["loss"], history["val_loss"], answers, sorted(SHARDINGS)]

for run in sys.argv[1:]:
    dropout, devices = run.split(":")
    print(json.dumps(trained(float(dropout), int(devices))))
if TRAINED.get(4):
    try:
        TRAINED[4].fit(TEXTS, LABELS, verbose=0)
    except ValueError as error:
        print(json.dumps(str(error)))
"""


class _Doubling:
    def batch_outputs(self, x):
        return 2 * x


def test_a_step_on_tensorflow_gives_the_outputs_of_its_batch():
    batch = (np.ones((2, 3)), np.zeros(2))
    np.testing.assert_array_equal(outputs_of_step(_Doubling(), batch), np.full((2, 3), 2.0))


def trainings(repository: Path, backend: str, *runs: str) -> list[Any]:
    """What `_TRAINING` prints; JAX has four devices."""
    flags = "--xla_force_host_platform_device_count=4"
    run = subprocess.run(
        [sys.executable, "-c", _TRAINING, *runs],
        cwd=repository,
        env=jax_environment(KERAS_BACKEND=backend, XLA_FLAGS=flags),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return [json.loads(line) for line in run.stdout.strip().splitlines()]


@pytest.mark.slow
def test_raw_texts_train_and_are_predicted_on_jax_as_on_tensorflow(repository: Path):
    skip_without_jax()
    (expected,) = trainings(repository, "tensorflow", "0:0")
    alike, one, four, refused = trainings(repository, "jax", "0:0", "0.1:0", "0.1:4")
    assert alike[1][1] < alike[1][0] and alike[2][1] < alike[2][0]
    for ours, theirs in zip(alike[:4], expected[:4]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    # Four devices compute what one does, with dropout, weights and rows that they share unequally.
    assert len(four[0]) == 8 and abs(four[0][3] - alike[0][3]) > 1e-4
    for ours, theirs in zip(four[:4], one[:4]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert four[4] == [[4, False]]  # none of them had all rows
    assert "`fit` must be called within the scope" in refused and "for 4 devices" in refused
