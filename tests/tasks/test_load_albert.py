"""Models of transformers on an ALBERT become models of kbert's tasks, as those on a BERT do."""

from pathlib import Path

import numpy as np
import pytest

from kbert.models.albert import Albert
from kbert.tasks.load import load
from tests.checkpoints.synthetic_albert import albert_tensors, write_albert

LABELS = {"classifier.weight": (3, 4), "classifier.bias": (3,)}
CASES = {
    "AlbertForSequenceClassification": (LABELS, True, "Classifier"),
    "AlbertForTokenClassification": (LABELS, False, "EntityRecognizer"),
    "AlbertForQuestionAnswering": (
        {"qa_outputs.weight": (2, 4), "qa_outputs.bias": (2,)},
        False,
        "QuestionAnswerer",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_task_of_a_class(tmp_path: Path, name: str):
    heads, pooler, kind = CASES[name]
    tags = {"id2label": {"0": "O", "1": "B-X", "2": "I-X"}}
    tensors = albert_tensors(heads, pooler)
    folder = write_albert(tmp_path / "model", tensors, architectures=[name], **tags)
    model = load(folder)
    assert type(model).__name__ == kind and type(model.encoder) is Albert
    (head,) = model.head_layers().values()
    weight = tensors[next(iter(heads))]
    np.testing.assert_array_equal(head.kernel, weight.T)
