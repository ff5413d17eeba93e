"""Computes layers, models and training on whatever backend Keras runs; run on two of them.

Every weight and input comes from NumPy, so that two backends can be compared number by number.
Nothing here needs TensorFlow.
"""

from typing import Any

import keras
import numpy as np

from kbert.layers.adapters.block_adapters import Bottleneck, HoulsbyAdapter, PfeifferAdapter
from kbert.layers.adapters.fusion import AdapterFusion, FusedAdapters
from kbert.layers.adapters.low_rank import LoraAdapter
from kbert.layers.attention import CrossAttention, SelfAttention
from kbert.layers.embeddings import (
    BertEmbeddings,
    LearnedPositions,
    SinusoidalPositions,
    TokenEmbedding,
)
from kbert.layers.encoder_block import EncoderBlock
from kbert.layers.linear import FeedForward, Linear, activate
from kbert.layers.masks import causal_attention_mask, padding_attention_mask
from kbert.layers.residual import Dropout, LayerNorm, Residual
from kbert.models.bert import Bert
from kbert.optimization.adamw import AdamW
from kbert.optimization.label_losses import SigmoidCrossEntropy, exact_match
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.optimization.sequence_losses import SpanCrossEntropy, TokenCrossEntropy, span_accuracy
from kbert.tasks.classification.head import SequenceClassification
from kbert.tasks.multi_label.head import MultiLabelClassification
from kbert.tasks.multiple_choice.head import ChoiceSelection
from kbert.tasks.ner.head import TokenClassification
from kbert.tasks.question_answering.head import SpanExtraction
from kbert.tasks.regression.head import SequenceRegression
from tests.parity.inputs import (
    INPUTS,
    LABEL_SETS,
    LABELS,
    MEMORY,
    MEMORY_PADDING,
    PADDING,
    SEGMENTS,
    SHARES,
    SPANS,
    TAGS,
    TOKENS,
    B,
    D,
    S,
    T,
    X,
    built,
    computed,
    with_weights,
)
from tests.parity.sequence_program import (
    caption_outputs,
    training_to_caption,
    training_to_translate,
    translation_outputs,
)

ACTIVATIONS = ("gelu", "gelu_approximate", "relu", "tanh", "silu")


def layer_outputs() -> dict[str, Any]:
    """Every layer of kbert.layers, and what has no weights, in float32."""
    x, memory = keras.ops.convert_to_tensor(X), keras.ops.convert_to_tensor(MEMORY)
    mask = padding_attention_mask(PADDING)
    causal = mask & causal_attention_mask(T)
    attention = built(SelfAttention(2), (B, T, D))
    cross = built(CrossAttention(2), (B, T, D), (B, S, 6))
    memory_mask = padding_attention_mask(MEMORY_PADDING)
    blocks = {n: built(EncoderBlock(2, 12, norm=n), (B, T, D)) for n in ("post", "pre")}
    linear = built(Linear(4, "gelu"), (B, T, D))
    embeddings = built(BertEmbeddings(11, D, 6), None)
    norm = built(LayerNorm(), (B, T, D))
    residual = built(Residual(0.1), (B, T, D))
    block = built(EncoderBlock(2, 12), (B, T, D))
    adapters = {
        "houlsby": built(HoulsbyAdapter(3), (B, T, D)),
        "pfeiffer": built(PfeifferAdapter(3), (B, T, D)),
        "lora": built(LoraAdapter(12, 2, targets=("query", "value", "output")), (B, T, D)),
    }
    fusion = built(AdapterFusion(), (B, T, D))
    adapters["fusion"] = FusedAdapters(fusion, [adapters["pfeiffer"]] * 2)
    return {
        **{name: activate(x, name) for name in ACTIVATIONS},
        "gelu_in_training": activate(x, "gelu", True),
        "attention": attention(x, attention_mask=causal),
        "attention_unmasked": attention(x),
        "attention_scores": attention.scores(x, causal),
        "cross_attention": cross(x, memory, attention_mask=memory_mask),
        "cross_attention_scores": cross.scores(x, memory, memory_mask),
        "post_block": blocks["post"](x, attention_mask=mask),
        "pre_block": blocks["pre"](x, attention_mask=mask),
        "pre_block_scores": blocks["pre"].scores(x, mask),
        "feed_forward": built(FeedForward(12), (B, T, D))(x),
        "linear": linear(x),
        "norm": norm(x),
        "norm_in_training": norm(x, training=True),
        "residual": residual(x, sublayer=lambda y: y * 2),
        "bottleneck": built(Bottleneck(3), (B, T, D))(x),
        **{
            f"block_with_{name}": block(x, attention_mask=mask, adapter=adapter)
            for name, adapter in adapters.items()
        },
        "dropout": built(Dropout(0.5), None)(x),
        "token_embedding": built(TokenEmbedding(11, D), None)(TOKENS),
        "learned_positions": built(LearnedPositions(6, D), None)(TOKENS),
        "sinusoidal_positions": SinusoidalPositions(6, D)(TOKENS),
        "sinusoidal_halves": SinusoidalPositions(6, D, interleaved=False)(TOKENS),
        "embeddings": embeddings(TOKENS, SEGMENTS),
        "embeddings_of_one_segment": embeddings(TOKENS),
    }


def small_encoder(dtype: str, layers: int = 1) -> Bert:
    return Bert(11, D, layers, 2, 12, 6, dropout=0.0, attention_dropout=0.0, dtype=dtype)


def adapted_encoder() -> Bert:
    encoder = small_encoder("float32")
    encoder.add_adapter("task", {"kind": "houlsby", "adapter_dim": 3})
    encoder.train_adapter("task")
    return encoder


def fusion_weights() -> Any:
    """What each of two layers gives to each of two adapters."""
    encoder = small_encoder("float32", layers=2)
    for name in ("one", "two"):
        encoder.add_adapter(name, {"kind": "pfeiffer", "adapter_dim": 3})
    encoder.add_adapter_fusion(["one", "two"])
    encoder.set_active_adapters(["one", "two"])
    return keras.ops.stack(with_weights(encoder).fusion_weights(INPUTS))


def encoder_outputs(dtype: str) -> dict[str, Any]:
    """Bert."""
    encoder = with_weights(small_encoder(dtype, layers=2))
    return {**encoder(INPUTS), "last_scores": encoder.attention_scores(INPUTS)[-1]}


def reading_outputs() -> dict[str, Any]:
    """The tasks over all tokens, one of them on adapters, and their losses, in float32."""
    adapted = adapted_encoder()
    spans = with_weights(SpanExtraction(adapted))(INPUTS)
    tags = with_weights(TokenClassification(small_encoder("float32"), 3))(INPUTS)
    return {
        "spans": keras.ops.maximum(spans, -100.0),  # padding has -1e9
        "tags": tags,
        "span_loss": SpanCrossEntropy(reduction="none")(SPANS, spans),
        "span_accuracy": span_accuracy(SPANS, spans),
        **{f"{per}_loss": TokenCrossEntropy(per)(TAGS, tags) for per in ("sequence", "token")},
        "soft_loss": TokenCrossEntropy("sequence")(SHARES, tags),
    }


def label_set_outputs() -> dict[str, Any]:
    """Several labels an example, their loss and their metrics, in float32."""
    logits = with_weights(MultiLabelClassification(small_encoder("float32"), 3))(INPUTS)
    loss = SigmoidCrossEntropy([1.0, 2.0, 0.5], 0.1, reduction="none")
    return {
        "labels": logits,
        "label_loss": loss(LABEL_SETS, logits),
        "exact_match": exact_match(LABEL_SETS, logits),
    }


def model_outputs() -> dict[str, Any]:
    """Bert with less than all inputs, and the tasks, in float32."""
    encoder = with_weights(small_encoder("float32"))
    tasks = {
        "pooler": SequenceClassification(small_encoder("float32"), 3),
        "two_layer": SequenceClassification(small_encoder("float32"), 3, "two_layer"),
        "regression": SequenceRegression(small_encoder("float32")),
    }
    choice = with_weights(ChoiceSelection(small_encoder("float32")))
    return {
        "hidden_state_1": encoder.hidden_states(INPUTS)[1],
        "tokens_alone": encoder({"token_ids": TOKENS})["pooled_output"],
        "fusion_weights": fusion_weights(),
        **{name: with_weights(task)(INPUTS) for name, task in tasks.items()},
        **label_set_outputs(),
        "choice": choice({name: x[:, None] for name, x in INPUTS.items()}),
        **reading_outputs(),
    }


def training(dtype: str, checkpointing: bool = False) -> np.ndarray:
    """The losses of some steps of AdamW, with clipping and a schedule."""
    encoder = with_weights(small_encoder(dtype))
    encoder.gradient_checkpointing = checkpointing
    task = with_weights(SequenceClassification(encoder, 3, dropout=0.0, dtype=dtype))
    task.compile(AdamW(WarmupLinearDecay(0.02, 8, 2), weight_decay=0.05, global_clipnorm=0.5))
    history = task.fit(INPUTS, LABELS, batch_size=3, epochs=6, shuffle=False, verbose=0).history
    return np.array(history["loss"])


def training_to_read() -> np.ndarray:
    """The losses of some steps on spans, where adapters and head alone train."""
    adapted = adapted_encoder()
    task = with_weights(SpanExtraction(adapted))
    task.compile(AdamW(0.02))
    history = task.fit(INPUTS, SPANS, batch_size=3, epochs=4, shuffle=False, verbose=0).history
    return np.array(history["loss"])


def with_dropout() -> np.ndarray:
    """Losses of training with dropout: other numbers on each backend, but numbers."""
    encoder = with_weights(Bert(11, D, 1, 2, 12, 6, gradient_checkpointing=True))
    task = with_weights(SequenceClassification(encoder, 3))
    task.compile()
    history = task.fit(INPUTS, LABELS, batch_size=3, epochs=3, shuffle=False, verbose=0).history
    return np.array(history["loss"])


def outputs() -> dict[str, Any]:
    """Every layer and model, in float32 where the backend's type is narrower."""
    found = {f"float32/layer/{name}": array for name, array in computed(layer_outputs).items()}
    found |= {f"float32/model/{name}": array for name, array in computed(model_outputs).items()}
    for kind, made in (("translation", translation_outputs), ("caption", caption_outputs)):
        written = computed(made)
        found |= {f"float32/{kind}/{name}": array for name, array in written.items()}
    for dtype in ("float32", "bfloat16"):
        encoded = computed(encoder_outputs, dtype)
        found |= {f"{dtype}/encoder/{name}": array for name, array in encoded.items()}
    found = {name: keras.ops.cast(array, "float32") for name, array in found.items()}
    return {name: keras.ops.convert_to_numpy(array) for name, array in found.items()}


def further_losses() -> dict[str, Any]:
    """The losses of trainings of other kinds, and of a plain one."""
    return {
        "losses": training("float32"),
        "losses_with_checkpointing": training("float32", checkpointing=True),
        "losses_in_mixed_precision": training("mixed_bfloat16"),
        "losses_with_dropout": with_dropout(),
        "losses_of_reading": training_to_read(),
        **training_to_translate(),
        **training_to_caption(),
    }


def main(path: str, part: str) -> None:
    """Writes arrays to an npz file.

    Args:
        path: the file.
        part: the function that makes them.
    """
    made = {"outputs": outputs, "further_losses": further_losses}
    found = {"losses": training("float32")} if part == "losses" else made[part]()
    np.savez(path, **found, backend=np.array(keras.backend.backend()))
