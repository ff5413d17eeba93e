"""Strategies by name; how they train is in tests/pipelines/test_replication.py."""

import re
import socket

import keras
import pytest
import tensorflow as tf

from kbert.options.configuration import STRATEGIES
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.distributed import strategies
from kbert.training.distributed.strategies import strategy
from kbert.training.distributed.tf_config import worker_config


def test_one_is_what_tensorflow_has_anyway():
    assert strategy("one") is tf.distribute.get_strategy()


def test_mirrored_takes_the_devices_that_there_are():
    if tf.config.list_physical_devices("GPU"):
        pytest.skip("this machine has GPUs")
    made = strategy("mirrored", replicas=1)
    assert isinstance(made, tf.distribute.MirroredStrategy) and made.num_replicas_in_sync == 1
    tf.zeros(1)  # from here on TensorFlow's devices stay as they are
    with pytest.raises(ValueError, match="before TensorFlow is used .* Received: replicas=64"):
        strategy("mirrored", replicas=64)


def test_what_is_wrong_is_told(monkeypatch):
    with pytest.raises(ValueError, match="one of one, mirrored, .* Did you mean `mirrored`"):
        strategy("miror")
    with pytest.raises(ValueError, match="`replicas` must be left out with strategy='one'"):
        strategy("one", replicas=2)
    with pytest.raises(ValueError, match="`replicas` must be at least 1. Received: replicas=0"):
        strategy("mirrored", replicas=0)
    for replicas in ("2", 1.5, True):
        told = f"`replicas` must be a whole number. Received: replicas={replicas!r}"
        with pytest.raises(ValueError, match=re.escape(told)):
            strategy("mirrored", replicas=replicas)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match="TF_CONFIG must be JSON"):
        strategy("multi-worker")
    assert STRATEGIES == ("one", "mirrored", "multi-worker", "tpu")


def test_on_jax_all_devices_of_this_machine_are_one_strategy(monkeypatch):
    monkeypatch.setattr(strategies, "on_tensorflow", lambda: False)
    monkeypatch.setattr(keras.distribution, "list_devices", lambda: ["cpu:0", "cpu:1"])
    made = strategy("mirrored")
    assert isinstance(made, keras.distribution.DataParallel)
    assert made.device_mesh.devices.tolist() == ["cpu:0", "cpu:1"]
    assert made.get_data_layout((3, 5)).axes == (None, None)  # any number of rows
    assert strategy("mirrored", replicas=1).device_mesh.devices.tolist() == ["cpu:0"]
    with pytest.raises(ValueError, match="`replicas` must be at most 2, the devices that JAX"):
        strategy("mirrored", replicas=3)
    config = PretrainingConfig(text=["a"], vocabulary="v", output="o", strategy="multi-worker")
    with pytest.raises(ValueError, match="one or mirrored, .* Received: strategy='multi-worker'"):
        with strategies.in_its_place(config):
            pass


def test_a_port_that_is_taken_is_told(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        monkeypatch.setenv("TF_CONFIG", worker_config((address,), 0))
        with pytest.raises(OSError, match=f"TF_CONFIG must name .* Received: {address}"):
            strategy("multi-worker")
