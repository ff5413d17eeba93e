"""Rows with an adapter each, against the same rows where all have that adapter."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.adapters.routed import RoutedAdapters
from kbert.models.bert import Bert
from tests.small_bert import INPUTS, MASK, small_bert

NAMES = ("a", "b", "c")
ROWS = np.array([2, 0, 1, 0], "int32")
KINDS = {
    "pfeiffer": {"adapter_dim": 3},
    "houlsby": {"adapter_dim": 3},
    "lora": {"rank": 2, "targets": ["query", "value", "output"]},
}


def adapted(kinds: dict[str, str]) -> Bert:
    """The small BERT with adapters of some kinds, whose weights are large."""
    model, draw = small_bert(), np.random.default_rng(3)
    for name, kind in kinds.items():
        model.add_adapter(name, {"kind": kind, **KINDS[kind]})
        for variable in model.adapters.parts[name].weights:
            variable.assign(draw.normal(size=variable.shape))
    return model


def expected(model: Bert) -> np.ndarray:
    every = []
    for name in NAMES:
        model.set_active_adapters(name)
        every.append(np.asarray(model(INPUTS)["sequence_output"]))
    assert np.abs(every[0] - every[1]).max() > 0.5
    return np.stack([every[number][row] for row, number in enumerate(ROWS)])


@pytest.mark.parametrize(
    "kinds", [*([kind] * 3 for kind in KINDS), ["lora", "houlsby", "pfeiffer"]], ids="-".join
)
def test_a_row_is_as_with_its_adapter_alone(kinds):
    model = adapted(dict(zip(NAMES, kinds)))
    rows = expected(model)
    model.route_adapters(NAMES)
    given = {**INPUTS, "task_ids": ROWS}
    np.testing.assert_allclose(model(given)["sequence_output"], rows, atol=2e-6)
    # Of any length: padding is left out.
    specs = {k: tf.TensorSpec((None,) * x.ndim, x.dtype) for k, x in given.items()}
    graph = tf.function(lambda x: model(x)["sequence_output"], input_signature=[specs])
    np.testing.assert_allclose(graph(given).numpy()[MASK], rows[MASK], rtol=1e-5, atol=1e-5)


def test_an_adapter_learns_from_its_own_rows():
    model = adapted(dict.fromkeys(NAMES, "pfeiffer"))
    model.route_adapters(NAMES)
    given = {**INPUTS, "task_ids": np.array([0, 0, 2, 2], "int32")}
    variables = [v.value for name in NAMES for v in model.adapters.parts[name].trainable_weights]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(given, training=True)["sequence_output"] ** 2)
    found = [np.abs(one).max() for one in tape.gradient(loss, variables)]
    each = len(variables) // 3
    assert min(found[:each]) > 0 and max(found[each : 2 * each]) == 0 and min(found[-each:]) > 0


def test_nothing_is_added_where_no_adapter_adds():
    adapters = [adapted({name: "pfeiffer"}).adapters.parts[name].blocks[0] for name in NAMES]
    assert RoutedAdapters(adapters, ROWS).added("qkv", np.zeros((4, 12), "float32")) is None


def test_what_it_needs():
    model = adapted(dict.fromkeys(NAMES, "pfeiffer"))
    model.route_adapters(NAMES)
    with pytest.raises(ValueError, match="must have 'task_ids' where each row has its own .* a, b"):
        model(INPUTS)
    with pytest.raises(ValueError, match="must be those of a fusion, .* Received: a, b, c"):
        model.fusion_weights(INPUTS)
    for names, message in (([], "one adapter or more"), (["a", "d"], "there: a, b, c. .*'d'")):
        with pytest.raises(ValueError, match=message):
            model.route_adapters(names)


def test_a_file_keeps_it(tmp_path):
    model = adapted(dict.fromkeys(NAMES, "lora"))
    model.route_adapters(NAMES)
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    given = {**INPUTS, "task_ids": ROWS}
    one, other = (each(given)["sequence_output"] for each in (model, again))
    np.testing.assert_allclose(one, other, atol=1e-6)
    again.set_active_adapters("b")
    assert not again.has_routed_adapters and again.active_adapters == ["b"]
