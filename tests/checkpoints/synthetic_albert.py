"""A small ALBERT with random weights, in the names that transformers really has.

The names are spelled here a second time on purpose: they come from transformers'
`modeling_albert.py`, not from kbert's table.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from tests.checkpoints.synthetic_bert import random, write_vocabulary

CONFIG = {
    "vocabulary_size": 11,
    "hidden_dim": 4,
    "num_layers": 3,
    "num_heads": 2,
    "intermediate_dim": 6,
    "max_sequence_length": 8,
    "num_segments": 2,
    "dropout": 0.1,
    "attention_dropout": 0.2,
    "activation": "gelu_approximate",
    "layer_norm_epsilon": 1e-12,
    "initializer_range": 0.02,
    "embedding_dim": 3,
    "num_groups": 2,
}
HF_CONFIG = {
    "architectures": ["AlbertModel"],
    "model_type": "albert",
    "vocab_size": 11,
    "hidden_size": 4,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 6,
    "max_position_embeddings": 8,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.2,
    "hidden_act": "gelu_new",
    "layer_norm_eps": 1e-12,
    "initializer_range": 0.02,
    "embedding_size": 3,
    "num_hidden_groups": 2,
}
TOKENS = {
    "predictions.bias": (11,),
    "predictions.dense.weight": (3, 4),
    "predictions.dense.bias": (3,),
    "predictions.LayerNorm.weight": (3,),
    "predictions.LayerNorm.bias": (3,),
}
ORDER = {
    "sop_classifier.classifier.weight": (2, 4),
    "sop_classifier.classifier.bias": (2,),
}


def albert_tensors(
    heads: dict[str, tuple[int, ...]] | None = None, pooler: bool = True, dtype: str = "float32"
) -> dict[str, np.ndarray]:
    """An encoder and heads (name -> shape) as Hugging Face stores them."""
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (11, 3),
        "embeddings.position_embeddings.weight": (8, 3),
        "embeddings.token_type_embeddings.weight": (2, 3),
        "embeddings.LayerNorm.weight": (3,),
        "embeddings.LayerNorm.bias": (3,),
        "encoder.embedding_hidden_mapping_in.weight": (4, 3),
        "encoder.embedding_hidden_mapping_in.bias": (4,),
    }
    for group in range(2):
        for name, shape in {
            "full_layer_layer_norm.weight": (4,),
            "full_layer_layer_norm.bias": (4,),
            "attention.query.weight": (4, 4),
            "attention.query.bias": (4,),
            "attention.key.weight": (4, 4),
            "attention.key.bias": (4,),
            "attention.value.weight": (4, 4),
            "attention.value.bias": (4,),
            "attention.dense.weight": (4, 4),
            "attention.dense.bias": (4,),
            "attention.LayerNorm.weight": (4,),
            "attention.LayerNorm.bias": (4,),
            "ffn.weight": (6, 4),
            "ffn.bias": (6,),
            "ffn_output.weight": (4, 6),
            "ffn_output.bias": (4,),
        }.items():
            shapes[f"encoder.albert_layer_groups.{group}.albert_layers.0.{name}"] = shape
    if pooler:
        shapes |= {"pooler.weight": (4, 4), "pooler.bias": (4,)}
    prefix = "albert." if heads else ""
    shapes = {f"{prefix}{name}": shape for name, shape in shapes.items()} | (heads or {})
    rng = np.random.default_rng(11)
    return {name: random(rng, shape, dtype) for name, shape in shapes.items()}


def write_albert(folder: Path, tensors: dict[str, np.ndarray], **config: Any) -> Path:
    """Writes a folder of Hugging Face with a vocabulary; `config` overrides fields."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(HF_CONFIG | config))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_vocabulary(folder)
    return folder
