"""Each thing that keeps TF Serving from serving an export is found."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
import tensorflow_text
from tensorflow.core.protobuf import saved_model_pb2

from kbert.serving.format.servable import check_export
from kbert.serving.loading.exported import LoadedModel


def save(folder: Path, function: Callable[[tf.Tensor], Any], shape: Any = (None, 2)) -> Path:
    """A SavedModel of one function of floats."""
    module = tf.Module()
    module.weight = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    spec = tf.TensorSpec(shape, tf.float32, name="x")
    module.f = tf.function(lambda x: {"y": function(x @ module.weight)}, input_signature=[spec])
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.f})
    return folder


def edited(folder: Path, edit: Callable[[Any], None]) -> Path:
    """The SavedModel with its MetaGraphDef changed."""
    file = folder / "saved_model.pb"
    saved_model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    edit(saved_model.meta_graphs[0])
    file.write_bytes(saved_model.SerializeToString())
    return folder


def test_an_export_of_a_classifier_is_servable(exported_path: Path):
    report = check_export(exported_path.parent)
    assert report.problems == ()
    assert report.is_servable
    assert report.path == exported_path
    assert report.text_ops == ("FastWordpieceTokenizeWithOffsets",)
    assert {"MatMul", "VarHandleOp", "StatefulPartitionedCall"} < set(report.core_ops)
    assert report.tensorflow_version == tf.__version__
    assert list(report.signatures) == ["serving_default", "tokens"]


def test_the_sizes_are_those_of_the_files(exported_path: Path):
    report = check_export(exported_path)
    data = exported_path / "variables" / "variables.data-00000-of-00001"
    files = [file for file in exported_path.rglob("*") if file.is_file()]
    assert report.variable_bytes == data.stat().st_size
    assert report.other_bytes == sum(file.stat().st_size for file in files if file != data)


@pytest.mark.parametrize("name", ["variables.data-00000-of-00001", "variables.index"])
def test_a_missing_file_of_weights_is_found(exported_path: Path, tmp_path: Path, name: str):
    copy = Path(shutil.copytree(exported_path, tmp_path / "1"))
    (copy / "variables" / name).unlink()
    told = f"The file variables/{name} is missing, without which there are no weights."
    assert check_export(copy).problems == (told,)
    with pytest.raises(ValueError, match="1` must be a SavedModel that TensorFlow can load"):
        LoadedModel(copy)


def test_cut_weights_are_told(exported_path: Path, tmp_path: Path):
    copy = Path(shutil.copytree(exported_path, tmp_path / "1"))
    data = copy / "variables" / "variables.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    with pytest.raises(ValueError, match="1` must be a SavedModel that TensorFlow can load"):
        LoadedModel(copy)


def test_a_call_of_python_is_found(tmp_path: Path):
    def call_python(x: tf.Tensor) -> tf.Tensor:
        y = tf.py_function(lambda value: value, [x], tf.float32)
        return tf.ensure_shape(y, (None, 2))

    report = check_export(save(tmp_path / "1", call_python))
    assert report.problems == ("The op EagerPyFunc calls Python, which a server does not have.",)
    assert not report.is_servable


def test_a_function_that_insists_on_xla_is_found(tmp_path: Path):
    compiled = tf.function(lambda x: x + 1.0, jit_compile=True)
    problems = check_export(save(tmp_path / "1", compiled)).problems
    assert problems
    assert all("has _XlaMustCompile (jit_compile=True)" in problem for problem in problems)
    plain = tf.function(lambda x: x + 1.0, jit_compile=False)
    assert check_export(save(tmp_path / "2", plain)).problems == ()


def test_a_device_is_found_but_not_the_savers_own(tmp_path: Path):
    def pinned(x: tf.Tensor) -> tf.Tensor:
        with tf.device("/GPU:0"):
            return x + 1.0

    (problem,) = check_export(save(tmp_path / "1", pinned)).problems
    assert "is pinned to /device:GPU:0, which a server may not have." in problem

    def pin_the_graph(meta_graph: Any) -> None:
        meta_graph.graph_def.node[0].device = "/device:TPU:1"

    folder = save(tmp_path / "2", tf.identity)
    assert check_export(folder).problems == ()
    (problem,) = check_export(edited(folder, pin_the_graph)).problems
    assert "is pinned to /device:TPU:1" in problem


@pytest.mark.parametrize(
    "function, shape, message",
    [
        (tf.reduce_sum, (None, 2), "The output 'y' of the signature 'serving_default' must have"),
        (tf.identity, (8, 2), r"The input 'x' .* It has the shape \(8, 2\)"),
        (lambda x: tf.reduce_sum(x, 0), (None, 2), r"It has the shape \(2,\)"),
        (lambda x: tf.raw_ops.PlaceholderWithDefault(input=x, shape=None), (None, 2), "None"),
    ],
)
def test_a_tensor_without_a_batch_dimension_is_found(
    tmp_path: Path, function: Any, shape: Any, message: str
):
    problems = check_export(save(tmp_path / "1", function, shape)).problems
    assert any(re.search(message, problem) for problem in problems)


def test_an_op_that_needs_icu_is_found(tmp_path: Path):
    def fold(x: tf.Tensor) -> tf.Tensor:
        return tensorflow_text.case_fold_utf8(tf.strings.as_string(x))

    (problem,) = check_export(save(tmp_path / "1", fold)).problems
    assert problem.startswith("The op CaseFoldUTF8 reads ICU's data at run time, which a server")


def test_an_op_of_another_library_is_found(tmp_path: Path):
    def rename(meta_graph: Any) -> None:
        for function in meta_graph.graph_def.library.function:
            for node in function.node_def:
                node.op = "Addons>Gelu" if node.op == "MatMul" else node.op

    (problem,) = check_export(edited(save(tmp_path / "1", tf.identity), rename)).problems
    assert problem == "The op Addons>Gelu belongs neither to TensorFlow nor to tensorflow-text."


def test_a_saved_model_without_signatures_is_found(tmp_path: Path):
    tf.saved_model.save(tf.Module(), str(tmp_path))
    assert check_export(tmp_path).problems == ("There is no signature to call.",)
