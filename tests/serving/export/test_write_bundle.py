"""What an export brings along."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from kbert.serving.export.export import export
from kbert.serving.format.recorded_requests import read_golden, read_warmup
from kbert.serving.format.signatures import read_meta_graph, signatures_of
from kbert.serving.format.version_folders import read_metadata
from tests.serving.tiny_models import Chooser, Meter
from tests.small_pipelines import computed


def test_the_files(exported_path: Path):
    found = sorted(
        file.relative_to(exported_path).as_posix()
        for file in exported_path.rglob("*")
        if file.is_file() and file.parent.name != "variables"
    )
    assert found == [
        "assets.extra/README.md",
        "assets.extra/golden_answers.json",
        "assets.extra/kbert.json",
        "assets.extra/tf_serving_warmup_requests",
        "fingerprint.pb",
        "saved_model.pb",
    ]
    base = sorted(path.name for path in exported_path.parents[1].iterdir())
    assert base == [".kbert.lock", "README.md", "model.config", "monitoring.config", "small"]


def test_the_official_messages_read_the_warmup(exported_path: Path):
    pytest.importorskip("tensorflow_serving", reason='pip install ".[serving]"')
    from tensorflow_serving.apis import prediction_log_pb2

    file = exported_path / "assets.extra" / "tf_serving_warmup_requests"
    records = list(tf.data.TFRecordDataset(str(file)).as_numpy_iterator())
    rows: dict[str, list[int]] = {}
    lengths = set()
    for record in records:
        request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
        assert request.model_spec.name == "small"
        batches = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
        (count,) = {len(batch) for batch in batches.values()}
        rows.setdefault(request.model_spec.signature_name, []).append(count)
        if "text" in batches:
            lengths |= {len(text.split()) for text in batches["text"]}
        else:
            assert set(batches) == {"token_ids", "segment_ids", "lengths"}
            assert batches["token_ids"].max() < 100 and batches["token_ids"].dtype == np.int32
    # Three lengths alone, which can join others, and as many rows as a batch, which run alone.
    expected = [1, 1, 1, 32]
    assert rows == {"serving_default": expected, "tokens": expected}
    # Short, middling, and as many words as the model reads tokens.
    assert lengths == {4, 7, 24}


def test_the_golden_answers_are_those_of_the_model(exported_path: Path, classifier):
    signatures = signatures_of(read_meta_graph(exported_path))
    golden = {one.signature: one for one in read_golden(exported_path, signatures) or []}
    assert set(golden) == {"serving_default", "tokens"}
    texts = golden["serving_default"].inputs["text"].tolist()
    expected = computed(classifier, texts)
    np.testing.assert_allclose(golden["serving_default"].outputs["scores"], expected, atol=1e-5)
    assert b"" in texts and any(b"\xff" in text for text in texts)
    assert golden["serving_default"].tolerance == 1e-4


def test_the_metadata_tells_sizes(exported_path: Path, classifier):
    metadata = read_metadata(exported_path)
    assert metadata["weights"]["parameters"] == classifier.count_params()
    assert metadata["weights"]["bytes"] == 4 * classifier.count_params()
    assert metadata["weights"]["dtypes"] == {"float32": classifier.count_params()}
    assert metadata["graph_bytes"] == (exported_path / "saved_model.pb").stat().st_size
    assert (metadata["compute_dtype"], metadata["least_server"]) == ("float32", "2.16")
    assert metadata["batching"] == {
        "max_batch_size": 32, "num_batch_threads": 0, "max_enqueued_batches": 16
    }


def test_a_model_whose_requests_cannot_be_joined(tmp_path: Path):
    folder = export(Chooser(), tmp_path)
    assert read_metadata(folder)["batching"] is None
    requests = read_warmup(folder) or []
    assert {one.rows for one in requests} == {1}
    # The first signature is "serving_default" too.
    assert {one.signature for one in requests} == {"choose", "serving_default"}


def test_without_batching(tmp_path: Path):
    folder = export(Meter(), tmp_path, max_batch_size=0)
    assert read_metadata(folder)["batching"] is None
    with pytest.raises(ValueError, match="`max_batch_size` must be an integer of at least 0"):
        export(Meter(), tmp_path, max_batch_size=-1)
    assert [path.name for path in (tmp_path / "meter").iterdir()] == ["1"]
