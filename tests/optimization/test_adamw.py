"""AdamW against the NumPy reference and torch's formula."""

import math
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.optimization.adamw import AdamW, is_decayed
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.classification.head import SequenceClassification
from tests import numpy_reference as reference
from tests.small_bert import small_bert
from tests.training.eager_steps import eager_steps

IDS = np.array([[1, 4, 1], [0, 4, 4]])  # rows occur twice: their gradients add up
TARGETS = np.random.default_rng(1).normal(size=(2, 3, 2))
STEPS = 6
# 1 - 0.999^t is rounded to one part in 10,000 at first: that share of a step of size 0.05.
ROOM = 5e-6


@keras.saving.register_keras_serializable("tests")
class TableAndDense(keras.Model):
    """An embedding, whose gradient is sparse in TensorFlow, under a dense layer and a norm."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.table = keras.layers.Embedding(5, 4, name="table")
        self.norm = keras.layers.LayerNormalization(name="norm")
        self.dense = keras.layers.Dense(2, name="dense")

    def call(self, ids):
        return self.dense(self.norm(self.table(ids)))


def made_model(dtype="float32"):
    keras.utils.set_random_seed(2)
    model = TableAndDense(dtype=dtype)
    model(IDS)
    draw = np.random.default_rng(3)
    for variable in model.trainable_variables:
        variable.assign(draw.normal(size=variable.shape))
    return model


def gradients_of(model):
    with tf.GradientTape() as tape:
        outputs = tf.cast(model(IDS, training=True), "float32")
        loss = tf.reduce_mean((outputs - TARGETS.astype("float32")) ** 2)
    return tape.gradient(loss, [v.value for v in model.trainable_variables])


def trained(optimizer, steps=STEPS, dtype="float32", in_graph=True):
    """Trains, and notes the gradients of each step as dense arrays, and the end."""
    model, noted = made_model(dtype), []
    optimizer.build(model.trainable_variables)

    def step():
        gradients = gradients_of(model)
        optimizer.apply(gradients)
        return [tf.convert_to_tensor(gradient) for gradient in gradients]

    run = tf.function(step) if in_graph else step
    start = [np.asarray(v) for v in model.trainable_variables]
    for _ in range(steps):
        noted.append([np.asarray(gradient) for gradient in run()])
    return start, noted, [np.asarray(v) for v in model.trainable_variables]


def expected_end(start, noted, rate, decay, clip=None, epsilon=1e-8):
    names = ["table/embeddings", "norm/gamma", "norm/beta", "dense/kernel", "dense/bias"]
    adamw = reference.AdamW(epsilon=epsilon, decay=decay)
    parameters = dict(zip(names, start, strict=True))
    for step, gradients in enumerate(noted):
        if clip is not None:
            gradients = reference.clip_by_global_norm(gradients, clip)
        parameters = adamw.update(
            parameters,
            dict(zip(names, gradients, strict=True)),
            rate(step),
            undecayed=("norm/gamma", "norm/beta", "dense/bias"),
        )
    return list(parameters.values())


def constant(step):
    return 0.05


def linear(step):
    return reference.warmup_then_linear_decay(step, 0.05, 2, STEPS)


@pytest.fixture(params=["fused", "generic"])
def path(request, monkeypatch):
    """TensorFlow's fused kernel, and the formula that other backends run."""
    if request.param == "generic":
        monkeypatch.setattr("kbert.optimization.adamw.keras.backend.backend", lambda: "other")
        # Other backends give dense gradients only.
        plain = gradients_of
        monkeypatch.setitem(
            globals(), "gradients_of", lambda m: [tf.convert_to_tensor(g) for g in plain(m)]
        )
    return request.param


@pytest.mark.parametrize("clip", [None, 0.05, 1e9])
@pytest.mark.parametrize("schedule, in_graph", [(False, True), (True, True), (True, False)])
def test_reference(path, clip, schedule, in_graph):
    rate = WarmupLinearDecay(0.05, STEPS, 2) if schedule else 0.05
    optimizer = AdamW(rate, weight_decay=0.1, global_clipnorm=clip)
    start, noted, end = trained(optimizer, in_graph=in_graph)
    if clip == 0.05:
        assert all(reference.global_norm(gradients) > clip for gradients in noted)
    expected = expected_end(start, noted, linear if schedule else constant, 0.1, clip)
    for found, wanted in zip(end, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=ROOM)
    assert int(optimizer.iterations) == STEPS


@pytest.mark.parametrize("way", ["eager", "graph", "xla"])
def test_clipping_adds_the_parts_of_a_row_before_the_norm(way):
    # Row 1 twice (3, 4): the norm is |(6, 8)| = 10, not sqrt(2) * 5. Clipped to 5 the gradient is
    # (3, 4), and the first moment a tenth of it.
    table = keras.Variable(np.zeros((3, 2), "float32"), name="embeddings")
    optimizer = AdamW(0.1, global_clipnorm=5.0)
    optimizer.build([table])
    rows = tf.constant([1, 1])
    parts = tf.IndexedSlices(tf.constant([[3.0, 4.0]] * 2), rows, tf.constant([3, 2]))
    graph = tf.function(optimizer.apply, jit_compile=way == "xla")
    (optimizer.apply if way == "eager" else graph)([parts])
    (momentum,) = [v for v in optimizer.variables if "momentum" in v.path]
    np.testing.assert_allclose(momentum, [[0, 0], [0.3, 0.4], [0, 0]], rtol=1e-6)


def test_an_epsilon_of_weight(path):
    # With a large epsilon the place where it is added shows: beside the corrected root.
    optimizer = AdamW(0.05, weight_decay=0.0, epsilon=0.5, global_clipnorm=None)
    start, noted, end = trained(optimizer)
    for found, wanted in zip(
        end, expected_end(start, noted, constant, 0.0, epsilon=0.5), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=ROOM)


def test_mixed_precision(path):
    optimizer = AdamW(0.05, weight_decay=0.1)
    start, noted, end = trained(optimizer, dtype="mixed_bfloat16")
    assert {array.dtype.name for array in end} == {"float32"}
    expected = expected_end(start, noted, constant, 0.1, 1.0)
    for found, wanted in zip(end, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=ROOM)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_of_16_bits_are_refused(dtype):
    kernel = keras.Variable(np.ones((2, 2)), dtype=dtype, name="kernel")
    message = f"must be float32 to be trained.* Received: kernel of {dtype}. .*'mixed_bfloat16'"
    with pytest.raises(ValueError, match=message):
        AdamW(0.05).build([kernel])


def test_float16_with_a_scaled_loss():
    optimizer = keras.optimizers.LossScaleOptimizer(AdamW(0.05), initial_scale=8.0)
    model = made_model("mixed_float16")
    model.compile(optimizer, "mse")
    before = [np.asarray(v) for v in model.trainable_variables]
    history = model.fit(IDS, TARGETS, epochs=3, verbose=0).history["loss"]
    assert np.isfinite(history).all() and history[-1] < history[0]
    after = [np.asarray(v) for v in model.trainable_variables]
    assert all(not np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_torch_formula():
    """One weight, step by step as torch.optim.AdamW's documentation writes it."""
    weight = keras.Variable([[0.7]], name="kernel")
    optimizer = AdamW(0.1, weight_decay=0.3, beta_1=0.8, beta_2=0.95, global_clipnorm=None)
    theta, m, v = 0.7, 0.0, 0.0
    for t, g in enumerate([0.5, -2.0, 0.01], start=1):
        optimizer.apply([keras.ops.convert_to_tensor([[g]])], [weight])
        theta = theta - 0.1 * 0.3 * theta
        m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g * g
        m_hat, v_hat = m / (1 - 0.8**t), v / (1 - 0.95**t)
        theta = theta - 0.1 * m_hat / (math.sqrt(v_hat) + 1e-8)
        assert np.asarray(weight).item() == pytest.approx(theta, rel=1e-6)


def test_first_step_by_hand():
    # m_hat = g and v_hat = g^2: the step is the rate, whatever the gradient is.
    weight, bias = keras.Variable([2.0], name="kernel"), keras.Variable([2.0], name="bias")
    optimizer = AdamW(0.1, weight_decay=0.5)
    gradients = [keras.ops.convert_to_tensor([-0.001]), keras.ops.convert_to_tensor([0.002])]
    optimizer.apply(gradients, [weight, bias])
    assert np.asarray(weight).item() == pytest.approx(2.0 - 0.1 * 0.5 * 2.0 + 0.1, rel=1e-4)
    assert np.asarray(bias).item() == pytest.approx(2.0 - 0.1, rel=1e-4)


def test_accumulated_gradients_are_one_step(path):
    end = {}
    for accumulate in (None, 2):
        optimizer = AdamW(0.05, gradient_accumulation_steps=accumulate)
        # The same gradient twice, its mean once.
        weight = keras.Variable([[0.5, -1.0]], name="kernel")
        optimizer.build([weight])
        step = tf.function(lambda g: optimizer.apply([g]))
        for gradient in ([[0.3, 0.1]], [[0.6, -0.2]]):
            for _ in range(accumulate or 1):
                step(tf.constant(gradient))
        end[accumulate] = np.asarray(weight)
    np.testing.assert_allclose(end[2], end[None], rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize("accumulate", [None, 2])
def test_data_of_unknown_length_end_without_a_step(accumulate):
    # Keras runs into the end: 4 batches an epoch are 4 steps, and weights decay 4 times.
    model = made_model()
    optimizer = AdamW(0.05, weight_decay=0.1, gradient_accumulation_steps=accumulate)
    model.compile(optimizer, "mse")
    ends = []
    for unknown in (True, False):
        data = tf.data.Dataset.from_tensors((IDS, TARGETS)).repeat(4)
        if unknown:
            data = data.filter(lambda x, y: True)
        model.set_weights(made_model().get_weights())
        optimizer.build(model.trainable_variables)
        for variable in optimizer.variables[2:]:
            variable.assign(keras.ops.zeros_like(variable))
        optimizer.variables[0].assign(0)
        for _ in range(2):
            model.fit(data, shuffle=False, verbose=0)
        assert int(optimizer.variables[0]) == 8
        ends.append(model.get_weights())
    for a, b in zip(*ends, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize(
    "path, decayed",
    [
        ("bert/embeddings/token_embedding/embeddings", True),
        ("bert/encoder_block_0/attention/qkv/kernel", True),
        ("bert/encoder_block_0/attention/qkv/bias", False),
        ("bert/embeddings/layer_norm/gamma", False),
        ("bert/embeddings/layer_norm/beta", False),
        ("bias/kernel", True),
    ],
)
def test_what_decays(path, decayed):
    class Named:
        pass

    Named.path = path
    assert is_decayed(Named) is decayed


@pytest.mark.parametrize("head", [None, "pooler", "two_layer"])
def test_matrices_and_tables_decay_and_nothing_else(head):
    model = small_bert() if head is None else SequenceClassification(small_bert(), 3, head=head)
    for variable in model.trainable_variables:
        variable.assign(np.ones(variable.shape))
    zeros = [keras.ops.zeros(v.shape) for v in model.trainable_variables]
    AdamW(0.5, weight_decay=0.1).apply(zeros, model.trainable_variables)
    fallen, kept = set(), set()
    for variable in model.trainable_variables:
        (value,) = np.unique(variable)
        assert value == pytest.approx(0.95) or value == 1.0
        (kept if value == 1.0 else fallen).add(variable.path)
    assert len(fallen) + len(kept) == len(model.trainable_variables)
    assert {path.split("/")[-1] for path in fallen} == {"kernel", "embeddings"}
    assert {path.split("/")[-1] for path in kept} == {"bias", "gamma", "beta"}
    # By hand: three tables and four kernels in each of two blocks; then the pooler's, the head's.
    assert len(fallen) == 3 + 2 * 4 + {None: 1, "pooler": 2, "two_layer": 2}[head]
    assert len(kept) == 2 + 2 * 8 + {None: 1, "pooler": 2, "two_layer": 2}[head]


def test_what_is_excluded_does_not_decay():
    ones = np.ones((2, 2), "float32")
    kernel, other = (keras.Variable(ones, name=name) for name in ("kernel", "other"))
    optimizer = AdamW(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["kernel"])
    optimizer.apply([keras.ops.zeros((2, 2))] * 2, [kernel, other])
    assert np.asarray(kernel)[0, 0] == 1.0 and np.asarray(other)[0, 0] == pytest.approx(0.95)


def test_zero_decay_and_zero_rate_leave_weights_alone():
    model = made_model()
    optimizer = AdamW(0.0, weight_decay=0.5)
    optimizer.apply(gradients_of(model), model.trainable_variables)
    for variable, start in zip(model.trainable_variables, made_model().trainable_variables):
        np.testing.assert_array_equal(variable, start)


def test_configuration():
    schedule = WarmupLinearDecay(1e-4, 10, 1)
    optimizer = AdamW(schedule, 0.02, 0.8, 0.98, 1e-6, 0.5, name="mine")
    config = optimizer.get_config()
    assert config["weight_decay"] == 0.02 and config["global_clipnorm"] == 0.5
    stored = keras.saving.serialize_keras_object(optimizer)
    assert stored["registered_name"] == "kbert>AdamW"
    again = keras.saving.deserialize_keras_object(stored)
    assert again.get_config() == config
    assert isinstance(again.get_config()["learning_rate"], dict)
    assert (again.beta_1, again.beta_2, again.epsilon, again.name) == (0.8, 0.98, 1e-6, "mine")
    assert float(again.learning_rate) == float(schedule(0))
    # Weight decay is applied once: by this class, not by Keras' own pass as well.
    for one in (optimizer, again):
        made = AdamW.from_config(one.get_config() | {"learning_rate": 0.05})
        _, _, end = trained(made, 1, in_graph=False)
        start, noted, _ = trained(AdamW(0.05), 1, in_graph=False)
        adamw = reference.AdamW(0.8, 0.98, 1e-6, 0.02)
        clipped = reference.clip_by_global_norm(noted[0], 0.5)
        wanted = adamw.update({"kernel": start[3]}, {"kernel": clipped[3]}, 0.05)["kernel"]
        np.testing.assert_allclose(end[3], wanted, rtol=1e-5)


@pytest.fixture
def eagerly():
    """Traces no step of Keras: what is saved is that of a few steps of one small model."""
    with eager_steps():
        yield


def test_state_is_saved_and_training_continues_alike(tmp_path, eagerly):
    model = made_model()
    model.compile(AdamW(WarmupLinearDecay(0.05, 8, 2)), "mse")
    model.fit(IDS, TARGETS, epochs=3, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert int(again.optimizer.iterations) == 3
    state, loaded = model.optimizer.variables, again.optimizer.variables
    assert all(np.array_equal(a, b) for a, b in zip(state, loaded, strict=True))
    for one in (model, again):
        one.fit(IDS, TARGETS, epochs=3, verbose=0)
    for a, b in zip(model.weights, again.weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_tensorflow_checkpoints_hold_the_state(tmp_path, eagerly):
    model = made_model()
    model.compile(AdamW(0.05), "mse")
    model.fit(IDS, TARGETS, epochs=2, verbose=0)
    path = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(tmp_path / "ckpt")
    other = made_model()
    other.compile(AdamW(0.05), "mse")
    other.optimizer.build(other.trainable_variables)
    restored = tf.train.Checkpoint(model=other, optimizer=other.optimizer).restore(path)
    restored.assert_existing_objects_matched()
    for one in (model, other):
        one.fit(IDS, TARGETS, epochs=2, verbose=0)
    for a, b in zip(model.weights, other.weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_changed_learning_rate_holds_at_the_next_step():
    optimizer = AdamW(0.1, weight_decay=0.0)
    weight = keras.Variable([1.0], name="kernel")
    gradient = keras.ops.convert_to_tensor([1.0])
    optimizer.apply([gradient], [weight])
    optimizer.learning_rate = 0.0
    before = np.asarray(weight)
    optimizer.apply([gradient], [weight])
    np.testing.assert_array_equal(weight, before)


def test_negative_decay():
    message = "`weight_decay` must not be negative. Received: weight_decay=-0.1"
    with pytest.raises(ValueError, match=message):
        AdamW(weight_decay=-0.1)


def test_biases_of_any_name_and_gains_do_not_decay():
    decayed = ["kernel", "embeddings", "alphabeta"]
    names = ["bias", "score_bias", "recurrent_bias", "gamma", "beta", *decayed]
    assert [n for n in names if is_decayed(SimpleNamespace(path=f"layer/{n}"))] == decayed
