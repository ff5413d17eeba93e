"""Functions of an export that TensorFlow's runtime knows, beside what TensorFlow itself loads."""

import ctypes
import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager.cancellation import CancellationManager

from kbert.pipelines.signatures import text_specs
from kbert.serving.export.export import export
from kbert.serving.format.signatures import read_meta_graph
from kbert.serving.loading import exported
from kbert.serving.loading.exported import LoadedModel
from kbert.serving.loading.registered_functions import OtherSavedModel, RegisteredFunctions


@pytest.fixture
def not_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow's loader is not to be called."""
    monkeypatch.setattr(exported.tf.saved_model, "load", None)


def test_the_answers_are_those_of_tensorflows_loader(exported_path: Path, texts: list[Any]):
    inputs = {"text": texts}
    found = LoadedModel(exported_path).run("serving_default", inputs)
    rebuilt = LoadedModel(exported_path, rebuilt=True).run("serving_default", inputs)
    assert set(found) == set(rebuilt) >= {"label", "scores"}
    for name, answer in rebuilt.items():
        assert found[name].dtype == answer.dtype
        if answer.dtype == np.float32:
            np.testing.assert_allclose(found[name], answer, atol=1e-6)
        else:
            assert found[name].tolist() == answer.tolist()


@pytest.mark.usefixtures("not_rebuilt")
def test_exports_of_one_program_have_weights_of_their_own(meter: Path):
    first = LoadedModel(meter)
    given = {"text": ["abc", "a"]}
    before = first.run("serving_default", given)
    prefix = str(meter / "variables" / "variables")
    (name,) = [n for n, _ in tf.train.list_variables(prefix) if "VARIABLE_VALUE" in n]
    weight = tf.train.load_checkpoint(prefix).get_tensor(name)
    tf.raw_ops.SaveV2(
        prefix=prefix, tensor_names=[name], shape_and_slices=[""], tensors=[2 * weight]
    )
    second = LoadedModel(meter)
    np.testing.assert_allclose(second.run("serving_default", given)["scores"], 2 * before["scores"])
    again = first.run("serving_default", given)
    np.testing.assert_array_equal(again["scores"], before["scores"])


class Endless:
    """A loop without an end, where a text asks for it."""

    name = "endless"

    def run(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Counts to the length of the longest text, or for ever."""
        size = tf.reduce_max(tf.strings.length(text))
        step = 1 - tf.cast(tf.reduce_any(text == "endless"), tf.int32)
        end = tf.while_loop(lambda i: i < size, lambda i: [i + step], [0])[0]
        return {"end": tf.zeros_like(tf.strings.length(text)) + end}

    def signatures(self) -> dict[str, Any]:
        """One of texts."""
        return {"serving_default": (self.run, text_specs(False))}


@pytest.mark.usefixtures("not_rebuilt")
def test_a_call_is_cancelled(tmp_path: Path):
    model = LoadedModel(export(Endless(), tmp_path, max_batch_size=0))
    stop = CancellationManager()
    found = model.run("serving_default", {"text": ["abc"]}, stop)
    assert found["end"].tolist() == [3]
    timer = threading.Timer(0.2, stop.start_cancel)
    timer.start()
    with pytest.raises(tf.errors.CancelledError):
        model.run("serving_default", {"text": ["endless"]}, stop)
    timer.join()
    assert model.run("serving_default", {"text": ["ab"]})["end"].tolist() == [2]


class Large:
    """Has 4 MiB of constants, which are noise so as to be kept."""

    name = "large"

    def run(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the constant at the length of each text."""
        noise = np.random.default_rng(1).random(2**20, np.float32)
        return {"noise": tf.gather(tf.constant(noise), tf.strings.length(text))}

    def signatures(self) -> dict[str, Any]:
        """One of texts."""
        return {"serving_default": (self.run, text_specs(False))}


GLIBC = ctypes.CDLL(None)


def resident_bytes() -> int:
    gc.collect()
    GLIBC.malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def large_blocks_are_given_back() -> Iterator[None]:
    """The C library keeps no freed block of more than 1 MiB for the next one."""
    threshold = -3  # M_MMAP_THRESHOLD
    GLIBC.mallopt(threshold, 2**20)
    yield
    GLIBC.mallopt(threshold, 2**25)  # the most that it comes to by itself


@pytest.mark.skipif(not hasattr(GLIBC, "mallopt"), reason="needs the GNU C library")
@pytest.mark.usefixtures("not_rebuilt", "large_blocks_are_given_back")
def test_the_memory_of_a_model_that_batched_comes_back(tmp_path: Path):
    path = export(Large(), tmp_path, max_batch_size=4)

    def loaded_and_dropped() -> int:
        assert LoadedModel(path).run("serving_default", {"text": ["abc"]})["noise"].shape == (1,)
        return resident_bytes()

    first, *_, last = (loaded_and_dropped() for _ in range(9))
    assert last - first < 8 * 4 * 2**20  # of each, four times as much stayed


@pytest.mark.usefixtures("not_rebuilt")
def test_the_programs_runtime_is_left_alone(meter: Path):
    before = set(context.context().list_function_names())
    model = LoadedModel(meter)
    model.run("serving_default", {"text": ["abc"]})
    assert set(context.context().list_function_names()) == before


def test_other_saved_models_are_left_to_tensorflow(tmp_path: Path):
    class Words(tf.Module):
        """A signature that reads a lookup table, which is neither constant nor variable."""

        def __init__(self) -> None:
            super().__init__()
            rows = tf.lookup.KeyValueTensorInitializer(["good", "bad"], [1, 2])
            self.table = tf.lookup.StaticHashTable(rows, 0)

        @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, "text")])
        def ids(self, text):
            return {"id": self.table.lookup(text)}

    words = Words()
    tf.saved_model.save(words, str(tmp_path), words.ids)
    with pytest.raises(OtherSavedModel, match="reads resource"):
        RegisteredFunctions(tmp_path, read_meta_graph(tmp_path))
    found = LoadedModel(tmp_path).run("serving_default", {"text": ["bad", "film"]})
    assert found["id"].tolist() == [2, 0]


def test_variables_that_are_no_list_are_left_to_tensorflow(tmp_path: Path):
    class Sum(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.added = tf.Variable(2.0)

        @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32, "x")])
        def sums(self, x):
            return {"y": x + self.added}

    model = Sum()
    tf.saved_model.save(model, str(tmp_path), model.sums)
    with pytest.raises(OtherSavedModel, match="reads variable"):
        RegisteredFunctions(tmp_path, read_meta_graph(tmp_path))
    assert LoadedModel(tmp_path).run("serving_default", {"x": [1.0]})["y"].tolist() == [3.0]


def test_damaged_weights_are_told(meter: Path):
    data = meter / "variables" / "variables.data-00000-of-00001"
    data.write_bytes(b"")
    with pytest.raises(tf.errors.OpError):
        RegisteredFunctions(meter, read_meta_graph(meter))


def test_a_broken_library_is_told(meter: Path):
    meta_graph = read_meta_graph(meter)
    functions = meta_graph.graph_def.library.function
    functions.add().CopyFrom(functions[0])  # of the same name, with another body
    functions[-1].node_def.add(name="more", op="NoOp")
    with pytest.raises(tf.errors.OpError):
        RegisteredFunctions(meter, meta_graph)
