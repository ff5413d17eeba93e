"""Faults of files and graphs, each planted and found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from kbert.export_check.check import MOST_OTHER_BYTES, graph_checks
from kbert.serving.format.servable import sizes_of
from kbert.serving.format.signatures import read_meta_graph
from kbert.serving.format.version_folders import METADATA_FILE


def problems(folder: Path, server: str = "2.20") -> dict[str, tuple[str, ...]]:
    """Name of each check that failed -> what it found."""
    checks = graph_checks(folder, read_meta_graph(folder), server)
    return {one.name: one.problems for one in checks if one.problems}


def edit(folder: Path, change: Callable[[Any], None]) -> Path:
    """Changes the MetaGraphDef of a SavedModel."""
    file = folder / "saved_model.pb"
    saved_model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    change(saved_model.meta_graphs[0])
    file.write_bytes(saved_model.SerializeToString())
    return folder


def save(folder: Path, function: Callable[[tf.Tensor], Any], shape: Any = (None, 2)) -> Path:
    module = tf.Module()
    spec = tf.TensorSpec(shape, tf.float32, name="x")
    module.f = tf.function(lambda x: {"y": function(x)}, input_signature=[spec])
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.f})
    return folder


def test_a_good_export_has_none(meter: Path):
    assert problems(meter) == {}


def test_the_ops_of_an_older_server(meter: Path):
    (told,) = problems(meter, "2.19")["ops"]
    assert told.startswith("TensorFlow 2.20.0 wrote the export; TensorFlow does not promise that")

    def rename(meta_graph: Any) -> None:
        meta_graph.graph_def.node.add(name="w", op="DecodeWebP")
        meta_graph.meta_info_def.tensorflow_version = "2.19.0"

    edit(meter, rename)
    assert problems(meter, "2.19") == {
        "ops": ("The op DecodeWebP is linked from TF Serving 2.20 on; 2.19 lacks it.",)
    }
    assert problems(meter, "2.20") == {}


def test_an_op_of_nobody(meter: Path):
    edit(meter, lambda m: m.graph_def.node.add(name="g", op="Addons>Gelu"))
    (told,) = problems(meter)["ops"]
    assert told == "The op Addons>Gelu belongs neither to TensorFlow nor to tensorflow-text."


def test_a_call_of_python(meter: Path):
    edit(meter, lambda m: m.graph_def.node.add(name="p", op="EagerPyFunc"))
    assert problems(meter) == {
        "python": ("The op EagerPyFunc calls Python, which a server does not have.",)
    }


def test_forced_xla_a_device_and_a_path(meter: Path):
    def change(meta_graph: Any) -> None:
        node = meta_graph.graph_def.node.add(name="n", op="NoOp", device="/device:GPU:0")
        node.attr["_XlaMustCompile"].b = True
        node = meta_graph.graph_def.node.add(name="c", op="Const")
        node.attr["value"].tensor.string_val.append(b"/home/ann/vocabulary.txt")

    found = problems(edit(meter, change))
    assert found == {
        "xla": ("n has _XlaMustCompile (jit_compile=True), and a server has XLA off.",),
        "devices": ("n is pinned to /device:GPU:0, which a server may not have.",),
        "paths": ("c (Const) holds the path '/home/ann/vocabulary.txt'.",),
    }


def test_a_tensor_without_a_batch(meter: Path):
    def change(meta_graph: Any) -> None:
        shape = meta_graph.signature_def["tokens"].outputs["weight"].tensor_shape
        del shape.dim[:]

    (told,) = problems(edit(meter, change))["batch_dimension"]
    assert told.startswith("The output 'weight' of the signature 'tokens' must have a first")


def test_missing_files(meter: Path):
    data = meter / "variables" / "variables.data-00000-of-00001"
    data.unlink()
    (told,) = problems(meter)["files"]
    assert told == "The graph has variables, and variables/variables.data-* is missing."
    (meter / "variables" / "variables.index").unlink()
    found = problems(meter)
    assert found["files"] == (
        "The graph has variables, and variables/variables.index is missing.",
    )
    named = meter.rename(meter.with_name("latest"))
    assert "must be a whole number" in problems(named)["files"][0]


def test_weights_that_are_stored_twice(tmp_path: Path):
    module = tf.Module()
    module.one = tf.Variable(tf.reshape(tf.range(8192.0), (64, 128)))
    module.two = tf.Variable(module.one)
    spec = tf.TensorSpec((None, 64), tf.float32, name="x")
    module.f = tf.function(lambda x: {"y": x @ module.one + x @ module.two}, input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path / "1"), signatures={"serving_default": module.f})
    (told,) = problems(tmp_path / "1")["weights"]
    assert told.startswith("These weights are one array, stored 2 times: one") and "two" in told


def test_weights_in_the_graph(tmp_path: Path):
    table = tf.reshape(tf.range(2.0 * 700_000), (2, 700_000))
    found = problems(save(tmp_path / "1", lambda x: x @ table))["size"]
    assert "is a constant of 5,600," in found[0] and "weights must be variables" in found[0]
    texts = tf.constant(["x" * 6_100_000])
    folder = save(tmp_path / "2", lambda x: tf.strings.length(texts)[0] + tf.cast(x, tf.int32))
    found = problems(folder)
    assert len(found["size"]) == 1 and "All but the weights takes 6,1" in found["size"][0]
    # It is meant so where the export says that it is frozen.
    metadata = folder / METADATA_FILE
    metadata.parent.mkdir(exist_ok=True)
    metadata.write_text('{"frozen": true, "signatures": {}}')
    assert "size" not in problems(folder)


def test_recorded_answers_are_no_part_of_the_graph(meter: Path):
    (meter / "assets.extra" / "golden_answers.json").write_bytes(b" " * (MOST_OTHER_BYTES + 1))
    assert "size" not in problems(meter)
    (meter / "assets").mkdir(exist_ok=True)
    (meter / "assets" / "more").write_bytes(b" " * MOST_OTHER_BYTES)
    assert "size" in problems(meter)


def test_sizes_are_those_of_the_files(meter: Path):
    sizes = sizes_of(meter)
    assert sizes["graph"] == (meter / "saved_model.pb").stat().st_size
    data = meter / "variables" / "variables.data-00000-of-00001"
    assert sizes["weights"] == data.stat().st_size
    files = [file for file in meter.rglob("*") if file.is_file()]
    assert sum(sizes.values()) == sum(file.stat().st_size for file in files)
