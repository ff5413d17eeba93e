"""The names of BERT's tensors in Hugging Face checkpoints.

Source: transformers, `models/bert/modeling_bert.py`; the gamma and beta of old files come from
their conversion from TensorFlow.
"""

from collections.abc import Iterable

NAMES = {
    "embeddings/token_embedding/embeddings": ("embeddings.word_embeddings.weight",),
    "embeddings/position_embedding/embeddings": ("embeddings.position_embeddings.weight",),
    "embeddings/segment_embedding/embeddings": ("embeddings.token_type_embeddings.weight",),
    "embeddings/layer_norm/gamma": ("embeddings.LayerNorm.weight",),
    "embeddings/layer_norm/beta": ("embeddings.LayerNorm.bias",),
    "pooler/kernel": ("pooler.dense.weight",),
    "pooler/bias": ("pooler.dense.bias",),
}
_LAYER = "encoder.layer.{i}."
_QKV = tuple(f"{_LAYER}attention.self.{part}." for part in ("query", "key", "value"))
BLOCK_NAMES = {
    "attention/qkv/kernel": tuple(f"{part}weight" for part in _QKV),
    "attention/qkv/bias": tuple(f"{part}bias" for part in _QKV),
    "attention/output/kernel": (f"{_LAYER}attention.output.dense.weight",),
    "attention/output/bias": (f"{_LAYER}attention.output.dense.bias",),
    "attention_residual/layer_norm/gamma": (f"{_LAYER}attention.output.LayerNorm.weight",),
    "attention_residual/layer_norm/beta": (f"{_LAYER}attention.output.LayerNorm.bias",),
    "feed_forward/intermediate/kernel": (f"{_LAYER}intermediate.dense.weight",),
    "feed_forward/intermediate/bias": (f"{_LAYER}intermediate.dense.bias",),
    "feed_forward/output/kernel": (f"{_LAYER}output.dense.weight",),
    "feed_forward/output/bias": (f"{_LAYER}output.dense.bias",),
    "feed_forward_residual/layer_norm/gamma": (f"{_LAYER}output.LayerNorm.weight",),
    "feed_forward_residual/layer_norm/beta": (f"{_LAYER}output.LayerNorm.bias",),
}
PREFIX = "bert."
HEAD_PREFIXES = ("classifier.", "qa_outputs.", "cls.")
# Buffers that older versions saved with the weights: position ids and zeros.
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
_OLD_ENDS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


def modern_names(names: Iterable[str], report: list[str]) -> dict[str, str]:
    """Maps current names, without the prefix `bert.`, to the names in a file.

    Args:
        names: The names in the file.
        report: Gets a sentence about each kind of change.

    Returns:
        Current name -> name in the file.

    Raises:
        ValueError: If two tensors of the file are the same weight.
    """
    modern: dict[str, str] = {}
    twice = []
    renamed = 0
    for name in sorted(names):
        new = name.removeprefix(PREFIX)
        for old_end, new_end in _OLD_ENDS.items():
            if new.endswith(old_end):
                new = new.removesuffix(old_end) + new_end
                renamed += 1
        if new in modern:
            twice.append(f"{modern[new]} and {name}")
        modern[new] = name
    if twice:
        raise ValueError(f"Each weight must be there once. Received: {'; '.join(twice)}")
    if renamed:
        report.append(f"Read gamma and beta as weight and bias in {renamed} LayerNorm tensors.")
    return modern


def is_head(name: str) -> bool:
    """Returns whether a tensor belongs to a known task head."""
    return name.startswith(HEAD_PREFIXES)
