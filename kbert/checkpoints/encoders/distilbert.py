"""DistilBERT on disk (Sanh et al. 2019): blocks of BERT, no segments and no pooler.

Source: transformers, `models/distilbert/modeling_distilbert.py` and `configuration_distilbert.py`.
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
    canonical_shapes,
    weight_names,
)
from kbert.checkpoints.encoders import bert

_KEYS: dict[str, tuple[str, Any]] = {
    "vocabulary_size": ("vocab_size", 30522),
    "hidden_dim": ("dim", 768),
    "num_layers": ("n_layers", 6),
    "num_heads": ("n_heads", 12),
    "intermediate_dim": ("hidden_dim", 3072),
    "max_sequence_length": ("max_position_embeddings", 512),
    "dropout": ("dropout", 0.1),
    "attention_dropout": ("attention_dropout", 0.1),
    "activation": ("activation", "gelu"),
    "initializer_range": ("initializer_range", 0.02),
    "span_dropout": ("qa_dropout", 0.1),
}
_CLASSES = {
    "DistilBertModel": HeadClass((), False),
    "DistilBertForSequenceClassification": HeadClass(("classifier.", "hidden."), False),
    # The dropout of the encoder serves this head too.
    "DistilBertForTokenClassification": HeadClass(("classifier.",), False, dropout=""),
    "DistilBertForMultipleChoice": HeadClass(("classifier.", "hidden."), False),
    "DistilBertForQuestionAnswering": HeadClass(("qa_outputs.",), False),
    "DistilBertForMaskedLM": HeadClass(("cls.predictions.",), False),
}
_HEADS = {
    "hidden.": "pre_classifier.",
    "cls.predictions.transform.dense.": "vocab_transform.",
    "cls.predictions.transform.LayerNorm.": "vocab_layer_norm.",
    "cls.predictions.bias": "vocab_projector.bias",
    "cls.predictions.decoder.": "vocab_projector.",
}
_ABSENT = ("embeddings/segment_embedding/", "pooler/")
_NAMES = {name: theirs for name, theirs in bert.NAMES.items() if not name.startswith(_ABSENT)}
_LAYER = "transformer.layer.{i}"
_SELF = f"{_LAYER}.attention"
_BLOCK_NAMES = weight_names(
    {
        "attention/qkv": (f"{_SELF}.q_lin", f"{_SELF}.k_lin", f"{_SELF}.v_lin"),
        "attention/output": (f"{_SELF}.out_lin",),
        "attention_residual/layer_norm": (f"{_LAYER}.sa_layer_norm",),
        "feed_forward/intermediate": (f"{_LAYER}.ffn.lin1",),
        "feed_forward/output": (f"{_LAYER}.ffn.lin2",),
        "feed_forward_residual/layer_norm": (f"{_LAYER}.output_layer_norm",),
    },
    TORCH_ENDS,
)


def distilbert_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns the name and the shape of each weight, in the order in which the model runs."""
    shapes = canonical_shapes({**config, "num_segments": 0})
    return {name: shape for name, shape in shapes.items() if not name.startswith(_ABSENT)}


LAYOUT = EncoderLayout(
    architecture="distilbert",
    title="a DistilBERT encoder",
    transformers=HuggingFaceLayout(
        model_type="distilbert",
        class_prefix="DistilBert",
        keys=_KEYS,
        classes=_CLASSES,
        names=_NAMES,
        block_names=_BLOCK_NAMES,
        plain=bert.PLAIN,
        head_dropout="seq_classif_dropout",
        head_names=_HEADS,
    ),
    shapes=distilbert_shapes,
    rates=("span_dropout",),
    lacking=("num_segments", "layer_norm_epsilon", "causal"),
    pooler=False,
)
