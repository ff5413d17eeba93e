"""Exports: where they lie, what they weigh, and that they appear whole or not at all."""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import kbert
from kbert.export_check.check import check
from kbert.serving.export import export as saved_model
from kbert.serving.export.export import export
from kbert.serving.format.servable import check_export
from kbert.serving.format.signatures import read_meta_graph
from kbert.serving.format.version_folders import read_metadata, versions
from kbert.serving.loading.exported import Exported, load_export
from kbert.tasks.classification.model import Classifier
from tests.serving.killed_exports import KEEP, content_of
from tests.serving.tiny_models import Meter
from tests.small_pipelines import computed, small_classifier


class Doubler:
    """The least that can be exported: y = 2 x."""

    name = "doubler"

    def __init__(self, function: Any = None, shape: Any = (None, 3), spec_name: str | None = "x"):
        self.weight = tf.Variable([2.0], name="weight")
        self.function = function or (lambda x: {"y": x * self.weight})
        self.spec = tf.TensorSpec(shape, tf.float32, name=spec_name)

    def signatures(self) -> dict[str, Any]:
        return {"double": (self.function, [self.spec])}


def test_the_folder_and_its_metadata(exported_path: Path, classifier: Classifier):
    assert exported_path.parts[-2:] == ("small", "1")
    assert (exported_path / "saved_model.pb").is_file()
    metadata = read_metadata(exported_path)
    assert metadata["class"] == "Classifier"
    assert (metadata["name"], metadata["version"]) == ("small", 1)
    assert metadata["labels"] == ["no", "yes", "ja"]
    assert (metadata["max_sequence_length"], metadata["pair"]) == (24, False)
    assert metadata["kbert_version"] == kbert.__version__
    assert metadata["keras_version"] == keras.__version__
    assert metadata["tensorflow_version"] == tf.__version__
    tokens = metadata["signatures"]["tokens"]["inputs"]
    assert [tensor["name"] for tensor in tokens] == ["token_ids", "segment_ids", "lengths"]
    assert tokens[0] == {"name": "token_ids", "dtype": "int32", "shape": [None, None]}
    assert kbert.export is export


def test_versions_count_up_and_are_never_overwritten(tmp_path: Path):
    assert export(Doubler(), tmp_path) == tmp_path / "doubler" / "1"
    assert export(Doubler(), tmp_path, version=7) == tmp_path / "doubler" / "7"
    assert export(Doubler(), str(tmp_path)) == tmp_path / "doubler" / "8"
    before = (tmp_path / "doubler" / "7" / "saved_model.pb").stat().st_mtime_ns
    with pytest.raises(FileExistsError, match="`version` must not be there yet"):
        export(Doubler(), tmp_path, version=7)
    assert (tmp_path / "doubler" / "7" / "saved_model.pb").stat().st_mtime_ns == before


def test_the_first_signature_is_the_default(tmp_path: Path):
    found = load_export(export(Doubler(), tmp_path))
    assert set(found.metadata["signatures"]) == {"double", "serving_default"}
    for name in ("double", "serving_default"):
        assert found.run({"x": [[1.0, 2.0, 3.0]]}, name)["y"].tolist() == [[2.0, 4.0, 6.0]]


def test_a_function_is_traced_once(tmp_path: Path):
    traces = []
    model = Doubler(lambda x: traces.append(x) or {"y": 2.0 * x})
    export(model, tmp_path, max_batch_size=2)
    assert len(traces) == 1


def test_weights_are_stored_once(exported_path: Path, classifier: Classifier):
    report = check_export(exported_path)
    stored = tf.train.list_variables(str(exported_path / "variables" / "variables"))
    arrays = [shape for name, shape in stored if name.endswith("VARIABLE_VALUE")]
    assert sum(int(np.prod(shape)) for shape in arrays) == classifier.count_params()
    # Beside the weights only the names of the objects lie there.
    assert 0 <= report.variable_bytes - 4 * classifier.count_params() < 16_384


@pytest.mark.slow
def test_a_model_that_was_loaded_and_let_go_is_gone(exported_path: Path):
    def graphs_after_loading() -> int:
        loaded = tf.saved_model.load(str(exported_path))
        loaded.signatures["serving_default"](text=tf.constant(["red dog"]))
        del loaded
        gc.collect()
        return sum(type(one).__name__ == "FuncGraph" for one in gc.get_objects())

    first = graphs_after_loading()
    assert graphs_after_loading() == first
    library = read_meta_graph(exported_path).graph_def.library
    assert not library.registered_gradients
    nodes = [node for function in library.function for node in function.node_def]
    assert nodes and not any("_gradient_op_type" in node.attr for node in nodes)


@pytest.mark.slow
def test_the_size_with_the_published_vocabulary(tmp_path: Path, minilm_directory: Path):
    model = Classifier.from_pretrained(minilm_directory, labels=["no", "yes"])
    report = check_export(export(model, tmp_path, max_batch_size=1))
    assert len(model.tokenizer.vocabulary) == 30_522
    # The numbers of the published pooler are all such that half precision holds them.
    expected = 4 * model.count_params() - 2 * 384 * 384
    assert abs(report.variable_bytes / expected - 1) < 0.001
    assert report.other_bytes <= 6_000_000


def test_the_export_answers_as_the_model_does(
    exported: Exported, classifier: Classifier, texts: list[Any]
):
    found = exported.run({"text": texts})
    expected = computed(classifier, texts)
    np.testing.assert_allclose(found["scores"], expected, atol=1e-5)
    names = np.array(classifier.labels)
    assert [label.decode() for label in found["label"]] == names[expected.argmax(1)].tolist()
    assert found["labels"].tolist() == [[b"no", b"yes", b"ja"]] * len(texts)
    # 300 letters are one [UNK], 40 words do not fit into 24 tokens.
    assert [texts[i] for i in np.flatnonzero(found["truncated"])] == ["film " * 40]
    assert len(set(found["label"])) > 1  # else this test would say little


def test_dropout_is_off(exported: Exported):
    first, second = (exported.run({"text": ["a good film"]})["scores"] for _ in range(2))
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize(
    "model, error, message",
    [
        (object(), TypeError, r"`model` must have `signatures\(\)`.*Received: object"),
        (Doubler(shape=(4, 3)), ValueError, "specs with a name and a free first dimension"),
        (Doubler(shape=()), ValueError, "specs with a name and a free first dimension"),
        (Doubler(spec_name=None), ValueError, "specs with a name and a free first dimension"),
        (Doubler(lambda x: {"y": tf.reduce_sum(x)}), ValueError, "must be servable.*output 'y'"),
        (
            Doubler(tf.function(lambda x: {"y": x + 1.0}, jit_compile=True)),
            ValueError,
            "(?s)must be servable.*_XlaMustCompile",
        ),
    ],
)
def test_what_cannot_be_served_is_not_written(tmp_path: Path, model, error, message):
    with pytest.raises(error, match=f"(?s){message}" if "(?s)" not in message else message):
        export(model, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_signatures_must_be_a_dict(tmp_path: Path):
    model = Doubler()
    model.signatures = dict
    with pytest.raises(ValueError, match="must be a dict with an entry. Received: {}"):
        export(model, tmp_path)


def test_an_export_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(saved_model, "write_bundle", fail)
    with pytest.raises(OSError, match="no space left"):
        export(Doubler(), tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "doubler" / "1").mkdir(parents=True)
    with pytest.raises(OSError, match="no space left"):
        export(Doubler(), tmp_path)
    assert [path.name for path in (tmp_path / "doubler").iterdir()] == ["1"]


def test_an_export_that_is_killed_leaves_no_version(
    meter_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    model = Doubler()

    def write(endpoints: Any, folder: Path) -> None:
        """As TensorFlow does, which must do nothing in a fork."""
        shutil.copytree(meter_path, folder, dirs_exist_ok=True)

    def end(_: Path) -> None:
        """The graph and the weights are written; only the last steps are missing."""
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patched:
        patched.setattr(saved_model, "_write_saved_model", write)
        patched.setattr(saved_model, "check_export", end)
        child = os.fork()
        if not child:
            try:
                export(model, tmp_path, "m")
            finally:
                os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    left = list((tmp_path / "m").iterdir())
    assert len(left) == 1 and (left[0] / "saved_model.pb").is_file()  # killed midway indeed
    assert versions(tmp_path / "m") == {}
    with pytest.raises(FileNotFoundError, match="`path` must be an export"):
        load_export(tmp_path / "m")
    assert export(Doubler(), tmp_path, "m") == tmp_path / "m" / "1"
    # What the killed one left is gone.
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["1"]


def test_old_versions_go(tmp_path: Path):
    for _ in range(3):
        export(Doubler(), tmp_path)
    assert list(versions(tmp_path / "doubler")) == [1, 2, 3]
    export(Doubler(), tmp_path, keep=2)
    assert sorted(path.name for path in (tmp_path / "doubler").iterdir()) == ["3", "4"]


@pytest.mark.parametrize("name, value", [("keep", 0), ("keep", 1.5), ("max_batch_size", 1.5)])
def test_wrong_numbers_are_told_before_anything_is_written(tmp_path: Path, name: str, value):
    with pytest.raises(ValueError, match=f"`{name}` must be an integer .*{name}={value}"):
        export(Doubler(), tmp_path / "exports", **{name: value})
    assert not list(tmp_path.iterdir())


def test_exports_into_one_folder_wait_for_each_other(tmp_path: Path):
    with ThreadPoolExecutor(3) as pool:
        folders = set(pool.map(lambda _: export(Doubler(), tmp_path), range(3)))
    assert folders == {tmp_path / "doubler" / str(i) for i in (1, 2, 3)}


@pytest.mark.slow
def test_exports_killed_at_any_moment_show_no_broken_version(tmp_path: Path):
    """No version was seen that changed later, or that lacks a file."""
    base = tmp_path / "base"
    base.mkdir()
    command = [sys.executable, "-m", "tests.serving.killed_exports", str(base), "50", "11"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["ended"] == [0, 0, 0] and found["torn"] == []
    assert found["midway"] > 0 and found["polls"] > 10  # killed while they wrote, and watched
    good = content_of(export(Meter(), tmp_path / "other", "meter", max_batch_size=2))
    assert found["seen"]
    for content in found["seen"].values():
        assert set(content) == set(good)
    assert len(found["left"]) <= KEEP and not any(name.startswith(".") for name in found["left"])
    for name, content in found["left"].items():
        assert content == found["seen"][name]
        assert check(base / "meter" / name, run=False).problems == []


def test_a_lora_is_part_of_the_weights_of_an_export(tmp_path: Path):
    model = small_classifier()
    plain = read_metadata(export(model, tmp_path, "plain"))["weights"]["parameters"]
    encoder = model.encoder
    encoder.add_adapter("a", "lora")
    for part in encoder.adapters.parts["a"].blocks:
        for weight in part.weights:
            weight.assign(keras.random.normal(weight.shape, seed=3))
    encoder.set_active_adapters("a")
    texts = ["a good film", "very bad"]
    wanted = computed(model, texts)
    path = export(model, tmp_path, "lora")
    assert encoder.active_adapters == ["a"]
    np.testing.assert_array_equal(computed(model, texts), wanted)
    np.testing.assert_allclose(load_export(path).predict(texts)["scores"], wanted, atol=1e-5)
    assert read_metadata(path)["weights"]["parameters"] == plain
