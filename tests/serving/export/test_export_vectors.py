"""Exports of embedders: raw strings to vectors, in Python, in C++, and from the command line."""

import json

import numpy as np
import pytest

from kbert.cli.actions.answering import open_model
from kbert.export_check.check import check
from kbert.serving.export.export import export
from kbert.serving.loading.exported import load_export
from tests.small_pipelines import TEXTS, small_embedder


@pytest.fixture(scope="module")
def model():
    return small_embedder(dense=5)


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    return export(model, tmp_path_factory.mktemp("models"), "vectors", max_batch_size=1)


def test_vectors_of_an_export(model, exported):
    found = load_export(exported).predict(TEXTS)
    np.testing.assert_allclose(found["embedding"], model(TEXTS), atol=1e-5)
    np.testing.assert_array_equal(found["truncated"], model.pack(TEXTS).truncated)


def test_one_answer_a_line(model, exported):
    (answer,) = open_model(exported).answers([("a good film",)])
    assert list(answer) == ["embedding", "truncated"] and not answer["truncated"]
    np.testing.assert_allclose(answer["embedding"], model(["a good film"])[0], atol=1e-5)
    assert len(json.loads(json.dumps(answer))["embedding"]) == 5


@pytest.mark.slow
def test_a_server_can_run_it(exported):
    report = check(exported)
    assert report.passed(), report.problems
