"""Runs that learn sentence embeddings: from pairs, with scores, in chunks."""

import json
from pathlib import Path

import numpy as np
import pytest

from kbert.cli.actions.answering import answer_file
from kbert.cli.actions.evaluation import evaluate_reading
from kbert.tasks.load import load
from kbert.training.recipes.finetuning import train_once
from kbert.training.runs.run_directory import load_run
from tests.training.eager_steps import eager_steps

COLUMNS = {"text_a": None, "text_b": None, "label": None}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    words = ("good", "fine", "bad", "dull", "rain", "sun", "blue", "red")
    rows = [f"the {word}\t{word} and {word}\n" for word in words]
    path.write_text("anchor\tpositive\n" + "".join(rows), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def run_of_pairs(tiny, pairs, tmp_path_factory):
    values = {"task": "embedding", "train": pairs, "validation": pairs, "epochs": 2}
    values |= {"chunk_rows": 3, "batch_size": 8, "dense": 6, "pooling": "max"}
    with eager_steps():
        return train_once(tiny.config(tmp_path_factory.mktemp("runs") / "run", **values))


def test_pairs_in_chunks(run_of_pairs, pairs):
    run = load_run(run_of_pairs)
    assert run.metrics["monitor"] == "accuracy"
    assert set(run.metrics["final"]["validation"]) == {"accuracy", "mrr"}
    model = load(run.model_directory)
    assert model.dense == 6 and model.pooling == "max"
    result = evaluate_reading([run_of_pairs], Path(pairs), COLUMNS, None)
    assert result["metrics"] == pytest.approx(run.metrics["final"]["validation"], abs=1e-6)
    assert result["examples"] == 8


def test_vectors_of_the_rows_of_a_file(run_of_pairs, pairs, tmp_path):
    answer_file(run_of_pairs, Path(pairs), tmp_path / "a.jsonl", None, None, ("positive", None))
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    vectors = load(run_of_pairs).encode([row["positive"] for row in rows])
    np.testing.assert_allclose([row["embedding"] for row in rows], vectors, atol=1e-5)


def test_scores(tiny, tmp_path, eagerly):
    values = {"task": "embedding", "train": tiny.pairs, "validation": tiny.pairs, "epochs": 1}
    run = load_run(train_once(tiny.config(tmp_path / "run", **values, batch_tokens=40)))
    assert run.metrics["monitor"] == "spearman"
    assert set(run.metrics["final"]["validation"]) == {"spearman", "pearson"}
