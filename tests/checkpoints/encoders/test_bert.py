"""The names are compared with those of published files in `huggingface/test_files.py`."""

from kbert.checkpoints.arrays.encoder_layout import CONFIG_KEYS
from kbert.checkpoints.encoders.bert import LAYOUT
from tests.checkpoints.synthetic_bert import CONFIG, HF_CONFIG


def test_every_weight_and_every_key_has_a_name() -> None:
    assert [entry.canonical for entry in LAYOUT.huggingface_table(CONFIG)] == list(
        LAYOUT.shapes(CONFIG)
    )
    assert tuple(LAYOUT.huggingface.keys) == CONFIG_KEYS
    assert {name for name, _ in LAYOUT.huggingface.keys.values()} <= set(HF_CONFIG)


def test_classes_for_causal_encoders_are_classes() -> None:
    assert set(LAYOUT.huggingface.causal_classes) <= set(LAYOUT.huggingface.classes)
