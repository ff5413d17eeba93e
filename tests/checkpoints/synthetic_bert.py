"""Small BERT checkpoints with random weights, in the names that their formats really have.

The names are spelled here a second time on purpose: they come from transformers'
`modeling_bert.py` and google-research/bert's `modeling.py`, not from kbert's tables.
"""

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

CONFIG = {
    "vocabulary_size": 11,
    "hidden_dim": 4,
    "num_layers": 2,
    "num_heads": 2,
    "intermediate_dim": 6,
    "max_sequence_length": 8,
    "num_segments": 2,
    "dropout": 0.1,
    "attention_dropout": 0.2,
    "activation": "gelu",
    "layer_norm_epsilon": 1e-12,
    "initializer_range": 0.02,
}
HF_CONFIG = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "vocab_size": 11,
    "hidden_size": 4,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 6,
    "max_position_embeddings": 8,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "initializer_range": 0.02,
}
GOOGLE_CONFIG = {key: HF_CONFIG[key] for key in list(HF_CONFIG)[2:] if key != "layer_norm_eps"}
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "a", "##s", "é", ".", "x"]
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return rng.normal(size=shape).astype(DTYPES[dtype])


def hf_tensors(
    dtype: str = "float32",
    prefix: str = "",
    pooler: bool = True,
    heads: dict[str, tuple[int, ...]] | None = None,
    old_names: bool = False,
) -> dict[str, np.ndarray]:
    """An encoder and heads (name -> shape) as Hugging Face stores them."""
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (11, 4),
        "embeddings.position_embeddings.weight": (8, 4),
        "embeddings.token_type_embeddings.weight": (2, 4),
        "embeddings.LayerNorm.weight": (4,),
        "embeddings.LayerNorm.bias": (4,),
    }
    for i in range(2):
        for name, shape in {
            "attention.self.query.weight": (4, 4),
            "attention.self.query.bias": (4,),
            "attention.self.key.weight": (4, 4),
            "attention.self.key.bias": (4,),
            "attention.self.value.weight": (4, 4),
            "attention.self.value.bias": (4,),
            "attention.output.dense.weight": (4, 4),
            "attention.output.dense.bias": (4,),
            "attention.output.LayerNorm.weight": (4,),
            "attention.output.LayerNorm.bias": (4,),
            "intermediate.dense.weight": (6, 4),
            "intermediate.dense.bias": (6,),
            "output.dense.weight": (4, 6),
            "output.dense.bias": (4,),
            "output.LayerNorm.weight": (4,),
            "output.LayerNorm.bias": (4,),
        }.items():
            shapes[f"encoder.layer.{i}.{name}"] = shape
    if pooler:
        shapes |= {"pooler.dense.weight": (4, 4), "pooler.dense.bias": (4,)}
    shapes = {f"{prefix}{name}": shape for name, shape in shapes.items()} | (heads or {})
    rng = np.random.default_rng(7)
    tensors = {name: random(rng, shape, dtype) for name, shape in shapes.items()}
    if old_names:
        old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        for new_end, old_end in old.items():
            for name in [name for name in tensors if name.endswith(new_end)]:
                tensors[name.removesuffix(new_end) + old_end] = tensors.pop(name)
    return tensors


def write_hf(folder: Path, tensors: dict[str, np.ndarray], **config: Any) -> Path:
    """Writes a folder of Hugging Face with a vocabulary; `config` overrides fields."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(HF_CONFIG | config))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_vocabulary(folder)
    return folder


def write_vocabulary(folder: Path) -> None:
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS), "utf-8")


def tf1_variables(pooler: bool = True) -> dict[str, np.ndarray]:
    """An encoder as google-research/bert names its variables; kernels are (in, out)."""
    shapes: dict[str, tuple[int, ...]] = {
        "bert/embeddings/word_embeddings": (11, 4),
        "bert/embeddings/position_embeddings": (8, 4),
        "bert/embeddings/token_type_embeddings": (2, 4),
        "bert/embeddings/LayerNorm/gamma": (4,),
        "bert/embeddings/LayerNorm/beta": (4,),
    }
    for i in range(2):
        for name, shape in {
            "attention/self/query/kernel": (4, 4),
            "attention/self/query/bias": (4,),
            "attention/self/key/kernel": (4, 4),
            "attention/self/key/bias": (4,),
            "attention/self/value/kernel": (4, 4),
            "attention/self/value/bias": (4,),
            "attention/output/dense/kernel": (4, 4),
            "attention/output/dense/bias": (4,),
            "attention/output/LayerNorm/gamma": (4,),
            "attention/output/LayerNorm/beta": (4,),
            "intermediate/dense/kernel": (4, 6),
            "intermediate/dense/bias": (6,),
            "output/dense/kernel": (6, 4),
            "output/dense/bias": (4,),
            "output/LayerNorm/gamma": (4,),
            "output/LayerNorm/beta": (4,),
        }.items():
            shapes[f"bert/encoder/layer_{i}/{name}"] = shape
    if pooler:
        shapes |= {"bert/pooler/dense/kernel": (4, 4), "bert/pooler/dense/bias": (4,)}
    rng = np.random.default_rng(8)
    return {name: random(rng, shape, "float32") for name, shape in shapes.items()}


def write_tf1(folder: Path, variables: dict[str, np.ndarray], **config: Any) -> Path:
    """Writes `bert_model.ckpt.{index,data,meta}` by TF1's own Saver, and what lies beside it."""
    import tensorflow as tf

    folder.mkdir(parents=True, exist_ok=True)
    graph = tf.Graph()
    with graph.as_default():
        made = [
            tf.compat.v1.get_variable(name, initializer=value, use_resource=False)
            for name, value in variables.items()
        ]
        with tf.compat.v1.Session(graph=graph) as session:
            session.run(tf.compat.v1.variables_initializer(made))
            tf.compat.v1.train.Saver(made).save(session, str(folder / "bert_model.ckpt"))
    (folder / "bert_config.json").write_text(json.dumps(GOOGLE_CONFIG | config))
    write_vocabulary(folder)
    return folder / "bert_model.ckpt"


def same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are equal byte for byte, dtype and shape included."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
