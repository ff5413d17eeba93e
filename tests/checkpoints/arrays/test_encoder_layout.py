import dataclasses

import numpy as np
import pytest

from kbert.checkpoints.arrays.encoder_layout import HeadClass
from kbert.checkpoints.encoders.bert import LAYOUT
from tests.checkpoints.synthetic_bert import CONFIG, hf_tensors

OTHER = dataclasses.replace(
    LAYOUT.huggingface,
    model_type="other",
    class_prefix="Other",
    classes={
        "OtherModel": HeadClass((), True),
        "OtherForMaskedLM": HeadClass(("cls.predictions.",), False),
    },
    head_names={"cls.predictions.transform.": "mlm.dense.", "cls.predictions.": "mlm."},
)


def test_classes_by_the_names_of_bert() -> None:
    assert LAYOUT.huggingface.class_of("BertForMaskedLM") == "BertForMaskedLM"
    assert OTHER.class_of("BertForMaskedLM") == "OtherForMaskedLM"
    assert OTHER.class_of("OtherForMaskedLM") == "OtherForMaskedLM"
    assert OTHER.class_of_bert("OtherForMaskedLM") == "BertForMaskedLM"
    assert [OTHER.class_of_bert(name) for name in (None, "OtherSecret")] == [None, "OtherSecret"]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("cls.predictions.transform.weight", "mlm.dense.weight"),
        ("cls.predictions.bias", "mlm.bias"),
        ("classifier.weight", "classifier.weight"),
    ],
)
def test_heads_by_the_names_of_bert(ours: str, theirs: str) -> None:
    assert OTHER.head_in_file(ours) == theirs and OTHER.head_of_file(theirs) == ours
    assert LAYOUT.huggingface.head_in_file(ours) == ours


def test_the_table_has_the_names_of_the_file() -> None:
    table = LAYOUT.huggingface_table(CONFIG)
    assert sorted(name for entry in table for name in entry.sources) == sorted(hf_tensors())
    assert OTHER.prefix == "other."


def test_further_sizes_are_checked() -> None:
    layout = dataclasses.replace(LAYOUT, sizes=("width",))
    layout.check_config(CONFIG | {"width": 3}, "x")
    with pytest.raises(ValueError, match="x: the configuration must have width"):
        layout.check_config(CONFIG, "x")
    with pytest.raises(ValueError, match="`width` must be a positive whole number.*width=0"):
        layout.check_config(CONFIG | {"width": 0}, "x")
    with pytest.raises(ValueError, match="Received: 'width'"):
        LAYOUT.check_config(CONFIG | {"width": 3}, "x")


def test_weights_are_those_of_the_model_that_the_error_names() -> None:
    layout = dataclasses.replace(LAYOUT, title="another encoder", shapes=lambda config: {"w": (2,)})
    layout.check_arrays(CONFIG, {"w": np.zeros(2)}, "x")
    with pytest.raises(ValueError, match="those of another encoder of this.*missing: w"):
        layout.check_arrays(CONFIG, {}, "x")


def test_an_encoder_that_transformers_lack() -> None:
    layout = dataclasses.replace(LAYOUT, title="another encoder", transformers=None)
    with pytest.raises(ValueError, match="one that transformers has. Received: another encoder"):
        layout.huggingface_table(CONFIG)
