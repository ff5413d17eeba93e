"""Functions of an export that TensorFlow's runtime knows, beside what TensorFlow itself loads."""

import gc
import threading
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


@pytest.mark.usefixtures("not_rebuilt")
def test_the_runtime_forgets_the_functions_with_the_model(meter: Path):
    before = set(context.context().list_function_names())
    model = LoadedModel(meter)
    added = set(context.context().list_function_names()) - before
    assert len(added) > 2
    model.run("serving_default", {"text": ["abc"]})
    del model
    gc.collect()
    assert not added & set(context.context().list_function_names())


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


def test_a_broken_library_leaves_nothing_in_the_runtime(meter: Path):
    meta_graph = read_meta_graph(meter)
    functions = meta_graph.graph_def.library.function
    functions.add().CopyFrom(functions[0])  # of the same name, with another body
    functions[-1].node_def.add(name="more", op="NoOp")
    before = set(context.context().list_function_names())
    with pytest.raises(tf.errors.OpError):
        RegisteredFunctions(meter, meta_graph)
    gc.collect()
    assert not set(context.context().list_function_names()) - before
