"""BERT on disk (Devlin et al. 2019).

Source: transformers, `models/bert/modeling_bert.py` and `configuration_bert.py`.
"""

from typing import Any

from kbert.architectures import BERT
from kbert.checkpoints.arrays.encoder_layout import (
    EncoderLayout,
    HeadClass,
    HuggingFaceLayout,
)
from kbert.checkpoints.arrays.weight_table import TORCH_ENDS, weight_names

KEYS: dict[str, tuple[str, Any]] = {
    "vocabulary_size": ("vocab_size", 30522),
    "hidden_dim": ("hidden_size", 768),
    "num_layers": ("num_hidden_layers", 12),
    "num_heads": ("num_attention_heads", 12),
    "intermediate_dim": ("intermediate_size", 3072),
    "max_sequence_length": ("max_position_embeddings", 512),
    "num_segments": ("type_vocab_size", 2),
    "dropout": ("hidden_dropout_prob", 0.1),
    "attention_dropout": ("attention_probs_dropout_prob", 0.1),
    "activation": ("hidden_act", "gelu"),
    "layer_norm_epsilon": ("layer_norm_eps", 1e-12),
    "initializer_range": ("initializer_range", 0.02),
}
# Fields that change what the encoder computes, with the values that change nothing.
PLAIN = {
    "position_embedding_type": (None, "absolute"),
    "add_cross_attention": (None, False),
    "is_encoder_decoder": (None, False),
    "pruned_heads": (None, {}),
    "quantization_config": (None,),
}
_CLASSES = {
    "BertModel": HeadClass((), True),
    "BertForSequenceClassification": HeadClass(("classifier.",), True),
    "BertForTokenClassification": HeadClass(("classifier.",), False),
    "BertForMultipleChoice": HeadClass(("classifier.",), True),
    "BertForQuestionAnswering": HeadClass(("qa_outputs.",), False),
    "BertForMaskedLM": HeadClass(("cls.predictions.",), False),
    "BertLMHeadModel": HeadClass(("cls.predictions.",), False),
    "BertForNextSentencePrediction": HeadClass(("cls.seq_relationship.",), True),
    "BertForPreTraining": HeadClass(("cls.predictions.", "cls.seq_relationship."), True),
}
NAMES = {
    "embeddings/token_embedding/embeddings": ("embeddings.word_embeddings.weight",),
    "embeddings/position_embedding/embeddings": ("embeddings.position_embeddings.weight",),
    "embeddings/segment_embedding/embeddings": ("embeddings.token_type_embeddings.weight",),
    **weight_names(
        {"embeddings/layer_norm": ("embeddings.LayerNorm",), "pooler": ("pooler.dense",)},
        TORCH_ENDS,
    ),
}
_LAYER = "encoder.layer.{i}"
_SELF = f"{_LAYER}.attention.self"
BLOCK_NAMES = weight_names(
    {
        "attention/qkv": (f"{_SELF}.query", f"{_SELF}.key", f"{_SELF}.value"),
        "attention/output": (f"{_LAYER}.attention.output.dense",),
        "attention_residual/layer_norm": (f"{_LAYER}.attention.output.LayerNorm",),
        "feed_forward/intermediate": (f"{_LAYER}.intermediate.dense",),
        "feed_forward/output": (f"{_LAYER}.output.dense",),
        "feed_forward_residual/layer_norm": (f"{_LAYER}.output.LayerNorm",),
    },
    TORCH_ENDS,
)

LAYOUT = EncoderLayout(
    architecture=BERT,
    title="a BERT encoder",
    transformers=HuggingFaceLayout(
        model_type="bert",
        class_prefix="Bert",
        keys=KEYS,
        classes=_CLASSES,
        names=NAMES,
        block_names=BLOCK_NAMES,
        plain=PLAIN,
        # The other property of a decoder, cross-attention, has its own field.
        causal="is_decoder",
        # Not those with a pooler before the head: transformers' pooler reads the first position,
        # which sees only itself there.
        causal_classes=(
            "BertModel",
            "BertLMHeadModel",
            "BertForTokenClassification",
            "BertForQuestionAnswering",
        ),
    ),
)
