"""RoBERTa on disk (Liu et al. 2019): the encoder of BERT, with other heads.

Source: transformers, `models/roberta/modeling_roberta.py` and `configuration_roberta.py`.
"""

from collections.abc import Mapping
from typing import Any

from kbert.checkpoints.arrays.encoder_layout import (
    EncoderLayout,
    HeadClass,
    HuggingFaceLayout,
)
from kbert.checkpoints.arrays.weight_table import canonical_shapes
from kbert.checkpoints.encoders import bert

_FIRST_POSITION = 2
_CLASSES = {
    "RobertaModel": HeadClass((), True),
    "RobertaForSequenceClassification": HeadClass(
        ("classifier.", "hidden."),
        False,
        {"hidden.": "classifier.dense.", "classifier.": "classifier.out_proj."},
    ),
    "RobertaForTokenClassification": HeadClass(("classifier.",), False),
    "RobertaForMultipleChoice": HeadClass(("classifier.",), True),
    "RobertaForQuestionAnswering": HeadClass(("qa_outputs.",), False),
    "RobertaForMaskedLM": HeadClass(("cls.predictions.",), False),
}
_HEADS = {
    "cls.predictions.transform.dense.": "lm_head.dense.",
    "cls.predictions.transform.LayerNorm.": "lm_head.layer_norm.",
    "cls.predictions.": "lm_head.",
}


def roberta_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns the name and the shape of each weight, in the order in which the model runs.

    They are BERT's, but for two rows before those of the positions; these rows are never read.
    """
    rows = config["max_sequence_length"] + _FIRST_POSITION
    return canonical_shapes({**config, "max_sequence_length": rows})


LAYOUT = EncoderLayout(
    architecture="roberta",
    title="a RoBERTa encoder",
    transformers=HuggingFaceLayout(
        model_type="roberta",
        class_prefix="Roberta",
        keys={**bert.KEYS, "vocabulary_size": ("vocab_size", 50265)},
        classes=_CLASSES,
        names=bert.NAMES,
        block_names=bert.BLOCK_NAMES,
        # Positions begin behind the id of the padding.
        plain={**bert.PLAIN, "pad_token_id": (None, 1), "is_decoder": (None, False)},
        head_names=_HEADS,
        first_position=_FIRST_POSITION,
    ),
    shapes=roberta_shapes,
)
