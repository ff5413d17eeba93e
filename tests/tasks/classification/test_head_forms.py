"""Heads of RoBERTa, DistilBERT and ELECTRA against the NumPy reference, and their dropout."""

from typing import Any

import numpy as np
import pytest

from kbert.models.encoder import HeadForm
from kbert.tasks.classification.head import SequenceClassification, SequenceHead
from kbert.tasks.multiple_choice.head import ChoiceSelection
from kbert.tasks.regression.head import SequenceRegression
from tests import numpy_reference as reference
from tests.models import test_distilbert, test_electra, test_roberta
from tests.small_bert import INPUTS, assign_head, small_bert

TWO_LAYERS = {
    "hidden/kernel": (12, 12),
    "hidden/bias": (12,),
    "classifier/kernel": (12, 3),
    "classifier/bias": (3,),
}
CASES: dict[str, tuple[Any, Any, str]] = {
    "roberta": (test_roberta.small_roberta, test_roberta.expected, "tanh"),
    "distilbert": (test_distilbert.small_distilbert, test_distilbert.expected, "relu"),
    "electra": (test_electra.small_electra, test_electra.expected, "gelu"),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_of_a_published_head(name: str):
    make, expected, activation = CASES[name]
    arrays = reference.random_arrays(TWO_LAYERS, seed=9)
    model = SequenceClassification(make(), 3, dropout=0.0)
    assert model.head == "two_layer" and model.get_config()["head"] == "two_layer"
    assign_head(model, arrays)
    first = expected().sequence_output[:, 0]
    hidden = reference.dense(first, arrays["hidden/kernel"], arrays["hidden/bias"])
    hidden = reference.ACTIVATIONS[activation](hidden)
    wanted = reference.dense(hidden, arrays["classifier/kernel"], arrays["classifier/bias"])
    np.testing.assert_allclose(model(INPUTS), wanted, atol=5e-5)
    again = SequenceClassification.from_config(model.get_config())
    assert again.sequence_head.activation == activation


def test_forms_by_task():
    choices = {
        "roberta": HeadForm("pooler"),
        "distilbert": HeadForm("two_layer", "relu", False),
        "electra": HeadForm("two_layer", "gelu", False),
    }
    published = {"roberta": HeadForm("two_layer"), "electra": HeadForm("two_layer", "gelu")}
    sequences = {**choices, **published}
    for name, (make, _, _) in CASES.items():
        encoder = make()
        for model, form in (
            (ChoiceSelection(encoder), choices[name]),
            (SequenceRegression(encoder), sequences[name]),
        ):
            head = model.sequence_head
            assert (head.head, head.activation, head.drops_state) == (
                form.head,
                form.activation,
                form.drops_state,
            )
    bert = SequenceClassification(small_bert(), 3, "two_layer").sequence_head
    assert (bert.activation, bert.drops_state) == ("tanh", True)
    assert SequenceClassification(small_bert(), 3).head == "pooler"


@pytest.mark.parametrize("drops_state", [True, False])
def test_dropout_before_the_first_layer_or_not(drops_state: bool):
    head = SequenceHead(2, "two_layer", 0.5, activation="relu", drops_state=drops_state)
    head.build(64)
    head.hidden.kernel.assign(np.eye(64))
    head.classifier.kernel.assign(np.ones((64, 2)))
    outputs = {"sequence_output": np.ones((4, 1, 64), "float32")}
    assert np.asarray(head(outputs)).tolist() == [[64.0, 64.0]] * 4
    kept = np.asarray(head(outputs, training=True)) / (4.0 if drops_state else 2.0)
    # Each of 64 units is kept with a chance of 1/4 or 1/2; 4 texts, so 256 in all.
    share = kept[:, 0].sum() / 256
    assert abs(share - (0.25 if drops_state else 0.5)) < 0.12
