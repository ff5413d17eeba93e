"""ELECTRA on disk (Clark et al. 2020): embeddings that may be narrower, and no pooler.

Source: transformers, `models/electra/modeling_electra.py` and `configuration_electra.py`.
"""

from collections.abc import Mapping
from typing import Any

from kbert.checkpoints.arrays.encoder_layout import (
    EncoderLayout,
    HeadClass,
    HuggingFaceLayout,
)
from kbert.checkpoints.arrays.weight_table import (
    TORCH_ENDS,
    block_shapes,
    canonical_shapes,
    linear_shapes,
    weight_names,
)
from kbert.checkpoints.encoders import bert

_KEYS = {
    **bert.KEYS,
    "hidden_dim": ("hidden_size", 256),
    "num_heads": ("num_attention_heads", 4),
    "intermediate_dim": ("intermediate_size", 1024),
    "embedding_dim": ("embedding_size", 128),
}
_CLASSES = {
    "ElectraModel": HeadClass((), False),
    "ElectraForSequenceClassification": HeadClass(
        ("classifier.", "hidden."),
        False,
        {"hidden.": "classifier.dense.", "classifier.": "classifier.out_proj."},
    ),
    "ElectraForTokenClassification": HeadClass(("classifier.",), False),
    "ElectraForMultipleChoice": HeadClass(
        ("classifier.", "hidden."),
        False,
        {"hidden.": "sequence_summary.summary."},
        dropout="summary_last_dropout",
    ),
    "ElectraForQuestionAnswering": HeadClass(("qa_outputs.",), False),
    "ElectraForMaskedLM": HeadClass(("cls.predictions.",), False),
    # Which tokens were replaced: kept with the weights, and no task of kbert.
    "ElectraForPreTraining": HeadClass(("discriminator_predictions.",), False, is_berts=False),
}
_HEADS = {
    "cls.predictions.transform.dense.": "generator_predictions.dense.",
    "cls.predictions.transform.LayerNorm.": "generator_predictions.LayerNorm.",
    "cls.predictions.bias": "generator_lm_head.bias",
    "cls.predictions.decoder.": "generator_lm_head.",
}
_NAMES = {
    name: theirs for name, theirs in bert.NAMES.items() if not name.startswith("pooler/")
} | weight_names({"embedding_projection": ("embeddings_project",)}, TORCH_ENDS)
# What the head of choices computes, the only one that these fields are of.
_SUMMARY = {
    "summary_type": (None, "first"),
    "summary_use_proj": (None, True),
    "summary_activation": (None, "gelu"),
}


def electra_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns the name and the shape of each weight, in the order in which the model runs.

    The embeddings are those of a BERT of width E; where that is not D, a projection follows.
    """
    narrow, hidden = config["embedding_dim"], config["hidden_dim"]
    shapes = canonical_shapes({**config, "hidden_dim": narrow, "num_layers": 0})
    shapes = {name: shape for name, shape in shapes.items() if name.startswith("embeddings/")}
    if narrow != hidden:
        shapes |= linear_shapes("embedding_projection", narrow, hidden)
    for index in range(config["num_layers"]):
        shapes |= block_shapes(index, hidden, config["intermediate_dim"])
    return shapes


LAYOUT = EncoderLayout(
    architecture="electra",
    title="an ELECTRA encoder",
    transformers=HuggingFaceLayout(
        model_type="electra",
        class_prefix="Electra",
        keys=_KEYS,
        classes=_CLASSES,
        names=_NAMES,
        block_names=bert.BLOCK_NAMES,
        plain={**bert.PLAIN, **_SUMMARY, "is_decoder": (None, False)},
        head_names=_HEADS,
    ),
    shapes=electra_shapes,
    sizes=("embedding_dim",),
    lacking=("causal",),
    pooler=False,
)
