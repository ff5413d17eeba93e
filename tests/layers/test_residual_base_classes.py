"""Configurations that follow from constructors: order, bases, initializers, shapes and masks."""

import keras
import pytest

from kbert.layers.residual import ConfiguredLayer, ShapeKeepingLayer, constructor_arguments


class Base(ConfiguredLayer):
    def __init__(self, width, start="zeros", **kwargs):
        super().__init__(**kwargs)
        self.width = width
        self.start = keras.initializers.get(start)


class Extended(Base):
    def __init__(self, *args, rate=0.5, **kwargs):
        super().__init__(*args, **kwargs)
        self.rate = rate


class Replaced(Base):
    def __init__(self, rate, **kwargs):
        super().__init__(3, **kwargs)
        self.rate = rate


def test_arguments_in_order_and_initializers_in_keras_form():
    zeros = keras.initializers.serialize(keras.initializers.Zeros())
    assert list(constructor_arguments(Base(2)).items()) == [("width", 2), ("start", zeros)]


def test_arguments_of_the_base_come_first_where_they_are_passed_on():
    assert list(constructor_arguments(Extended(2, rate=0.1))) == ["width", "start", "rate"]
    assert constructor_arguments(Replaced(0.1)) == {"rate": 0.1}


def test_the_configuration_makes_the_layer_again():
    layer = Extended(2, start="ones", rate=0.1, name="a", dtype="bfloat16")
    config = layer.get_config()
    assert list(config) == ["name", "trainable", "dtype", "width", "start", "rate"]
    assert Extended.from_config(config).get_config() == config


def test_an_argument_that_is_not_kept_is_an_error():
    layer = Base(2)
    del layer.width
    with pytest.raises(AttributeError, match="width"):
        layer.get_config()


def test_shape_and_mask_of_the_input_are_kept():
    layer = ShapeKeepingLayer()
    assert layer.compute_output_shape((2, 3), (4, 5), training=True) == (2, 3)
    assert layer.supports_masking and not ConfiguredLayer().supports_masking
