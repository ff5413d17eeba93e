"""`check_layer` passes a layer that keeps the ritual and names each fault of one that does not."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.check_layer import check_layer

X = np.linspace(-1.0, 1.0, 24, dtype="float32").reshape(2, 3, 4)


@keras.saving.register_keras_serializable("kbert")
class Scaled(keras.layers.Layer):
    """x W times a factor, with dropout: a layer that keeps every rule."""

    def __init__(self, units, factor=1.0, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.factor = factor
        self.dropout = dropout
        self.inner = keras.layers.Dense(units, name="inner", dtype=self.dtype_policy)
        self.drop = keras.layers.Dropout(dropout, name="drop", dtype=self.dtype_policy)

    def build(self, input_shape):
        self.inner.build(input_shape)

    def call(self, x, training=None):
        return self.drop(self.inner(x) * self.factor, training=training)

    def get_config(self):
        own = {"units": self.units, "factor": self.factor, "dropout": self.dropout}
        return {**super().get_config(), **own}


@keras.saving.register_keras_serializable("kbert")
class Named(Scaled):
    """The same with a dict of two outputs and a second argument."""

    def call(self, x, keep=None, training=None):
        y = super().call(x, training)
        if keep is not None:
            y = y * keras.ops.cast(keep, y.dtype)[..., None]
        return {"first": y, "both": (y, y[:, 0])}


def test_a_good_layer_passes_and_comes_back_built():
    variables = {"inner/kernel": (4, 5), "inner/bias": (5,)}
    init = {"units": 5, "factor": 2.0, "dropout": 0.1}
    layer = check_layer(Scaled, init, X, (2, 3, 5), variables)
    assert layer.built and layer.compute_dtype == "float32"


def test_nested_outputs_and_keyword_arguments():
    keep = np.array([[True, True, False]] * 2)
    shape = {"first": (2, 3, 5), "both": ((2, 3, 5), (2, 5))}
    check_layer(Named, {"units": 5}, X, shape, 2, call_kwargs={"keep": keep})
    check_layer(Named, {"units": 5}, (X, keep), shape, 2)


def fails(message, layer_class=Scaled, shape=(2, 3, 5), variables=2, **options):
    with pytest.raises(AssertionError, match=message):
        check_layer(layer_class, {"units": 5}, X, shape, variables, **options)


def test_wrong_shape():
    fails(r"output shape must be \(2, 3, 4\). Received: \(2, 3, 5\)", shape=(2, 3, 4))


def test_wrong_variables():
    fails("there must be 3 variables", variables=3)
    fails(r"missing \[\('kernel', \(4, 5\)\)\]", variables={"kernel": (4, 5), "inner/bias": (5,)})


def test_other_package():
    fails("registered in 'elsewhere'. Received: kbert>Scaled", package="elsewhere")


def test_config_in_another_order():
    class Shuffled(Scaled):
        def get_config(self):
            config = super().get_config()
            config["units"] = config.pop("units")
            return config

    fails("get_config must list .*'units', 'factor'.* in this order", Shuffled, package=None)


def test_argument_changed_by_the_constructor():
    class Changed(Scaled):
        def __init__(self, units, factor=1.0, dropout=0.0, **kwargs):
            super().__init__(units, factor, dropout, **kwargs)
            self.units = units + 1

    fails("'units' must be 5. Received: 6", Changed, package=None)


def test_sublayer_without_dtype():
    class Forgetful(Scaled):
        def __init__(self, units, factor=1.0, dropout=0.0, **kwargs):
            super().__init__(units, factor, dropout, **kwargs)
            self.inner = keras.layers.Dense(units, name="inner")

    message = "sublayers must be bfloat16. Received: float32 in 'inner'"
    fails(message, Forgetful, package=None)


def test_output_in_another_dtype():
    class Loud(Scaled):
        def call(self, x, training=None):
            return keras.ops.cast(super().call(x, training), "float32")

    fails("outputs must be bfloat16. Received: float32", Loud, package=None)
    check_layer(Loud, {"units": 5}, X, (2, 3, 5), 2, package=None, output_dtype="float32")


def test_same_path_twice():
    class Doubled(Scaled):
        def build(self, input_shape):
            super().build(input_shape)
            self.again = keras.layers.Dense(self.units, name="inner", dtype=self.dtype_policy)
            self.again.build(input_shape)

    fails("variable paths must be unique. Received twice: .*inner/bias", Doubled, package=None)


def test_weight_without_gradient():
    class Idle(Scaled):
        def build(self, input_shape):
            super().build(input_shape)
            self.idle = self.add_weight(shape=(1,), name="idle")

    fails(
        r"weights without gradient must be \[\]. Received: \['idle'\]",
        Idle,
        variables=3,
        package=None,
    )
    options = {"package": None, "without_gradient": ["idle"]}
    check_layer(Idle, {"units": 5}, X, (2, 3, 5), 3, **options)


def test_random_inference():
    class Restless(Scaled):
        def call(self, x, training=None):
            return super().call(x, training) + keras.random.normal((1,))

    fails("a second call: results differ", Restless, package=None)


def test_batch_size_frozen_in_the_trace():
    class Frozen(Scaled):
        def call(self, x, training=None):
            y = super().call(x, training)
            return keras.ops.reshape(y, (2, 3, self.units))

    fails("the batch size must not be frozen. Received: Input to reshape", Frozen, package=None)
    check_layer(Frozen, {"units": 5}, X, (2, 3, 5), 2, package=None, dynamic_batch=False)


def test_other_numbers_in_a_graph():
    class Torn(Scaled):
        def call(self, x, training=None):
            return super().call(x, training) + (0.0 if tf.executing_eagerly() else 1.0)

    fails("tf.function with another batch: results differ", Torn, package=None)
    fails("tf.function: results differ", Torn, package=None, dynamic_batch=False)


def test_nan():
    class Broken(Scaled):
        def call(self, x, training=None):
            return keras.ops.log(super().call(x, training) * 0.0 - 1.0)

    fails("output must be finite", Broken, package=None)


def test_small_results_that_low_precision_changes():
    class Doubled(Scaled):
        def call(self, x, training=None):
            return super().call(x, training) * (0.01 if self.compute_dtype == "float32" else 0.02)

    fails("bfloat16: results differ", Doubled, package=None)


def test_weights_that_begin_at_zero_are_compared_with_other_values():
    class Lost(Scaled):
        def build(self, input_shape):
            super().build(input_shape)
            self.up = self.add_weight(shape=(5,), initializer="zeros", name="up")

        def call(self, x, training=None):
            lost = self.compute_dtype != "float32"
            return keras.ops.zeros_like(x) if lost else x @ keras.ops.diag(self.up[:4])

    options = {"package": None, "without_gradient": ["inner/kernel", "inner/bias"]}
    fails("bfloat16: results differ", Lost, (2, 3, 4), 3, **options)


def test_weights_are_as_they_began_afterwards():
    layer = check_layer(Scaled, {"units": 5}, X, (2, 3, 5), 2)
    assert not np.asarray(layer.inner.bias).any()


def test_nothing_but_zeros():
    class Empty(Scaled):
        def call(self, x, training=None):
            return super().call(x, training) * 0.0

    fails("there must be numbers to compare", Empty, package=None)
