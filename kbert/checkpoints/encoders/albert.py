"""ALBERT on disk (Lan et al. 2019): blocks shared by layers, embeddings narrower than the states.

Source: transformers, `models/albert/modeling_albert.py` and `configuration_albert.py`.
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
    "vocabulary_size": ("vocab_size", 30000),
    "hidden_dim": ("hidden_size", 4096),
    "num_heads": ("num_attention_heads", 64),
    "intermediate_dim": ("intermediate_size", 16384),
    "dropout": ("hidden_dropout_prob", 0.0),
    "attention_dropout": ("attention_probs_dropout_prob", 0.0),
    "activation": ("hidden_act", "gelu_new"),
    "embedding_dim": ("embedding_size", 128),
    "num_groups": ("num_hidden_groups", 1),
}
_CLASSES = {
    "AlbertModel": HeadClass((), True),
    "AlbertForSequenceClassification": HeadClass(("classifier.",), True),
    "AlbertForTokenClassification": HeadClass(("classifier.",), False),
    "AlbertForMultipleChoice": HeadClass(("classifier.",), True),
    "AlbertForQuestionAnswering": HeadClass(("qa_outputs.",), False),
    "AlbertForMaskedLM": HeadClass(("cls.predictions.",), False),
    "AlbertForPreTraining": HeadClass(("cls.predictions.", "cls.sentence_order."), True),
}
# The sentence order is no next sentence: it gets a name of its own.
_HEADS = {
    "cls.predictions.transform.dense.": "predictions.dense.",
    "cls.predictions.transform.LayerNorm.": "predictions.LayerNorm.",
    "cls.predictions.": "predictions.",
    "cls.sentence_order.": "sop_classifier.classifier.",
}
_NAMES = bert.NAMES | weight_names(
    {"embedding_projection": ("encoder.embedding_hidden_mapping_in",), "pooler": ("pooler",)},
    TORCH_ENDS,
)
# A group has a number of layers of its own, one in all published models.
_LAYER = "encoder.albert_layer_groups.{i}.albert_layers.0"
_SELF = f"{_LAYER}.attention"
_BLOCK_NAMES = weight_names(
    {
        "attention/qkv": (f"{_SELF}.query", f"{_SELF}.key", f"{_SELF}.value"),
        "attention/output": (f"{_SELF}.dense",),
        "attention_residual/layer_norm": (f"{_SELF}.LayerNorm",),
        "feed_forward/intermediate": (f"{_LAYER}.ffn",),
        "feed_forward/output": (f"{_LAYER}.ffn_output",),
        "feed_forward_residual/layer_norm": (f"{_LAYER}.full_layer_layer_norm",),
    },
    TORCH_ENDS,
)


def albert_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns the name and the shape of each weight, in the order in which the model runs.

    With E the width of the embeddings, D hidden, G groups: the embeddings are those of a BERT of
    width E, and there are G blocks of width D. The pooler comes last.
    """
    narrow, hidden = config["embedding_dim"], config["hidden_dim"]
    shapes = canonical_shapes({**config, "hidden_dim": narrow, "num_layers": 0})
    shapes = {name: shape for name, shape in shapes.items() if name.startswith("embeddings/")}
    shapes |= linear_shapes("embedding_projection", narrow, hidden)
    for index in range(config["num_groups"]):
        shapes |= block_shapes(index, hidden, config["intermediate_dim"])
    return shapes | linear_shapes("pooler", hidden, hidden)


LAYOUT = EncoderLayout(
    architecture="albert",
    title="an ALBERT encoder",
    transformers=HuggingFaceLayout(
        model_type="albert",
        class_prefix="Albert",
        keys=_KEYS,
        classes=_CLASSES,
        names=_NAMES,
        block_names=_BLOCK_NAMES,
        plain={**bert.PLAIN, "inner_group_num": (None, 1), "is_decoder": (None, False)},
        head_dropout="classifier_dropout_prob",
        head_names=_HEADS,
    ),
    shapes=albert_shapes,
    sizes=("embedding_dim", "num_groups"),
)
