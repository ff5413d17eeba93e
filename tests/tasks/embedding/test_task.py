"""The task of vectors: what decides the loss and the metrics, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from kbert.data.classification.text_tuples import TupleExamples
from kbert.optimization.embedding_losses import CosineRegression, MultipleNegatives, TripletMargin
from kbert.tasks.embedding.task import TASK, Embedding
from kbert.tasks.registry import typed_answer
from kbert.training.config.finetuning_config import RunConfig

PAIRS = TupleExamples(["a"], ["b"], None, None, None, "t.tsv", [2])
SCORED = replace(PAIRS, labels=[5.0])
TRIPLETS = replace(PAIRS, negatives=["c"])


def config(**values):
    return RunConfig(task="embedding", train="t.tsv", encoder="e", output="o", **values)


def test_the_examples_decide_the_loss():
    assert type(TASK.loss(config(), PAIRS)) is type(TASK.loss(config(), TRIPLETS))
    assert isinstance(TASK.loss(config(chunk_rows=8), PAIRS), MultipleNegatives)
    assert TASK.loss(config(chunk_rows=8), PAIRS).chunk_rows == 8
    scored = TASK.loss(config(), SCORED)
    assert isinstance(scored, CosineRegression) and (scored.lowest, scored.highest) == (0.0, 5.0)
    shares = TASK.loss(config(), replace(SCORED, labels=[-0.5]))
    assert (shares.lowest, shares.highest) == (-0.5, 1.0)


def test_or_it_is_given():
    assert isinstance(TASK.loss(config(loss="multiple-negatives"), SCORED), MultipleNegatives)
    assert isinstance(TASK.loss(config(loss="triplet"), TRIPLETS), TripletMargin)
    with pytest.raises(ValueError, match="`loss` must be another one for t.tsv, which has no sco"):
        TASK.loss(config(loss="cosine"), PAIRS)
    with pytest.raises(ValueError, match="another one for t.tsv, without a column negative"):
        TASK.loss(config(loss="triplet"), PAIRS)
    with pytest.raises(ValueError, match="`chunk_rows` must be left out for .*, which has scores"):
        TASK.loss(config(chunk_rows=8), SCORED)


def test_the_validation_decides_the_metrics():
    assert TASK.monitors(None, SCORED)[0] == "spearman"
    assert TASK.monitors(None, PAIRS) == ["accuracy", "mrr"]
    assert TASK.monitors(None, TRIPLETS)[-1] == "triplet_accuracy"
    assert TASK.monitors(None) == list(TASK.compared)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"validation": "tfds:glue/stsb"}, "`validation` must be a file with task='embedding'"),
        ({"strategy": "tpu"}, "`strategy` must be another one with task='embedding': its batches"),
        ({"chunk_rows": 4, "loss": "cosine"}, "`chunk_rows` must be left out with loss='cosine'"),
        ({"chunk_rows": 4, "strategy": "mirrored"}, "`chunk_rows` must be left out with strategy="),
        ({"pooling": "sum"}, "`pooling` must be one of mean, cls, max. Received"),
    ],
)
def test_configurations_that_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        config(**values)


def test_options_are_of_this_task_alone():
    with pytest.raises(ValueError, match="`dense` must be left out with task='regression'"):
        RunConfig(task="regression", train="t.tsv", encoder="e", output="o", dense=3)


def test_an_answer():
    row = {"embedding": np.array([0.5, 2.0], "float32"), "truncated": np.bool_(False)}
    assert typed_answer(row) == Embedding([0.5, 2.0], False)
    assert TASK.rows(PAIRS) == [("a",)]
