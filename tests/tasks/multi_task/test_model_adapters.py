"""Tasks that train one encoder together, each with an adapter of its own."""

import keras
import numpy as np
import pytest

import kbert
from kbert.tasks.multi_task.model import MultiTaskModel
from tests.tasks.multi_task.test_model import X, Y, made, some

NAMES = ("kind", "score", "names")
INPUTS, TARGETS = some(X, NAMES), some(Y, NAMES)


@pytest.fixture(scope="module")
def model() -> MultiTaskModel:
    """A model whose adapters differ; tests must not train it."""
    found = MultiTaskModel(made(*NAMES), adapter={"kind": "pfeiffer", "adapter_dim": 4})
    draw = np.random.default_rng(5)
    for name in NAMES:
        for variable in found.encoder.adapters.parts[name].weights:
            variable.assign(draw.normal(size=variable.shape))
    found.compile(run_eagerly=True)
    return found


def test_each_task_has_its_adapter(model):
    batch, _ = model.batching.one_batch(INPUTS, TARGETS, None)
    together = model(batch)
    tokens = {name: column for name, column in batch.items() if name != "task_ids"}
    for number, name in enumerate(NAMES):
        with model.alone(name) as one:
            alone = one(tokens)
        own = batch["task_ids"].numpy() == number
        assert own.any()
        np.testing.assert_allclose(together[name][own], alone[own], rtol=1e-5, atol=1e-5)
    assert model.encoder.has_routed_adapters


def test_losses_are_those_of_the_models_with_their_adapters(model):
    found = model.evaluate(INPUTS, TARGETS, verbose=0, return_dict=True)
    for name in NAMES:
        with model.alone(name) as one:
            one.compile(run_eagerly=True)
            alone = one.evaluate(INPUTS[name], TARGETS[name], verbose=0, return_dict=True)
        assert found[f"{name}_loss"] == pytest.approx(alone["loss"], rel=1e-5), name


def test_encoder_and_adapters_learn():
    model = MultiTaskModel(made(*NAMES), adapter="lora")
    model.compile(keras.optimizers.Adam(0.01), run_eagerly=True)
    watched = [model.encoder.layer_blocks[0].attention.output_linear.kernel]
    watched += [model.encoder.adapters.parts[name].weights[1] for name in NAMES]
    before = [keras.ops.convert_to_numpy(variable).copy() for variable in watched]
    model.fit(INPUTS, TARGETS, batch_size=16, verbose=0)
    assert all(np.abs(old - new).max() > 0 for old, new in zip(before, watched))


def test_a_folder_for_each_task_with_its_adapter(model, tmp_path):
    expected = model.predict(some(INPUTS, NAMES[:2]))
    folder = model.save_pretrained(tmp_path / "both")
    for name in NAMES[:2]:
        one = kbert.load(folder / name)
        assert one.encoder.active_adapters == [name]
        np.testing.assert_allclose(one.predict(INPUTS[name]), expected[name], atol=1e-5)
    assert model.encoder.has_routed_adapters  # as before
