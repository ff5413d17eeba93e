"""Small RoBERTa, DistilBERT and ELECTRA with random weights, in the names of transformers.

The names are spelled here a second time on purpose: they come from transformers'
`modeling_roberta.py`, `modeling_distilbert.py` and `modeling_electra.py`, not from kbert's tables.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from kbert.checkpoints.encoder_folder import read_native, write_native
from kbert.checkpoints.huggingface_files import read_huggingface, write_huggingface
from tests.checkpoints.synthetic_bert import CONFIG as BERT_CONFIG
from tests.checkpoints.synthetic_bert import HF_CONFIG as BERT_HF_CONFIG
from tests.checkpoints.synthetic_bert import hf_tensors, random, same_bytes, write_vocabulary

Shapes = dict[str, tuple[int, ...]]
LABELS: Shapes = {"classifier.weight": (3, 4), "classifier.bias": (3,)}
CHOICE: Shapes = {"classifier.weight": (1, 4), "classifier.bias": (1,)}
SPANS: Shapes = {"qa_outputs.weight": (2, 4), "qa_outputs.bias": (2,)}
# The two layers of RobertaClassificationHead and ElectraClassificationHead.
TWO_LAYERS: Shapes = {
    "classifier.dense.weight": (4, 4),
    "classifier.dense.bias": (4,),
    "classifier.out_proj.weight": (3, 4),
    "classifier.out_proj.bias": (3,),
}


@dataclass(frozen=True)
class Synthetic:
    """One architecture: its configurations, and for each class its heads and its pooler."""

    name: str
    config: dict[str, Any]
    hf_config: dict[str, Any]
    encoder: Shapes
    pooler: Shapes
    classes: dict[str, tuple[Shapes, bool]]

    def tensors(self, kind: str | None = None, dtype: str = "float32") -> dict[str, np.ndarray]:
        """The tensors of one of the classes, of the bare encoder by default."""
        heads, pooler = self.classes[kind or next(iter(self.classes))]
        prefix = f"{self.name}." if heads else ""
        shapes = {**self.encoder, **(self.pooler if pooler else {})}
        shapes = {f"{prefix}{name}": shape for name, shape in shapes.items()} | heads
        rng = np.random.default_rng(13)
        return {name: random(rng, shape, dtype) for name, shape in shapes.items()}

    def write(self, folder: Path, kind: str | None = None, **config: Any) -> Path:
        """Writes a folder of Hugging Face with a vocabulary; `config` overrides fields."""
        named = kind or next(iter(self.classes))
        return self.write_tensors(folder, self.tensors(kind), architectures=[named], **config)

    def write_tensors(self, folder: Path, tensors: dict[str, np.ndarray], **config: Any) -> Path:
        """Writes a folder with these tensors."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(self.hf_config | config))
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        write_vocabulary(folder)
        return folder

    def check_round_trip(self, folder: Path, kind: str, dtype: str) -> None:
        """A folder of a class comes back byte for byte, through kbert's own folder."""
        tensors = self.tensors(kind, dtype)
        more = {"architectures": [kind], "mine": 1}
        before = read_huggingface(self.write_tensors(folder / "source", tensors, **more))
        assert (before.architecture, before.config) == (self.name, self.config)
        write_native(before, folder / "own")
        after = read_native(folder / "own")
        assert (after.architecture, after.config) == (self.name, self.config)
        write_huggingface(after, folder / "back")
        written = load_file(folder / "back" / "model.safetensors")
        assert written.keys() == tensors.keys()
        assert all(same_bytes(written[key], tensors[key]) for key in tensors)
        config = json.loads((folder / "back" / "config.json").read_text())
        kept = {key: config[key] for key in (*self.hf_config, "mine")}
        assert kept == self.hf_config | more


def _blocks(prefix: str, parts: dict[str, tuple[int, ...]]) -> Shapes:
    weights = {f"{prefix}.{i}.{name}": shape for i in range(2) for name, shape in parts.items()}
    found: Shapes = {}
    for name, shape in weights.items():
        found |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return found


_BERT = {name: array.shape for name, array in hf_tensors(pooler=False).items()}
_POOLER: Shapes = {"pooler.dense.weight": (4, 4), "pooler.dense.bias": (4,)}
ROBERTA = Synthetic(
    "roberta",
    {**BERT_CONFIG, "num_segments": 1, "layer_norm_epsilon": 1e-5},
    BERT_HF_CONFIG
    | {"architectures": ["RobertaModel"], "model_type": "roberta", "layer_norm_eps": 1e-5}
    | {"max_position_embeddings": 10, "type_vocab_size": 1, "pad_token_id": 1},
    {
        **_BERT,
        "embeddings.position_embeddings.weight": (10, 4),
        "embeddings.token_type_embeddings.weight": (1, 4),
    },
    _POOLER,
    {
        "RobertaModel": ({}, True),
        "RobertaForSequenceClassification": (TWO_LAYERS, False),
        "RobertaForTokenClassification": (LABELS, False),
        "RobertaForMultipleChoice": (CHOICE, True),
        "RobertaForQuestionAnswering": (SPANS, False),
        "RobertaForMaskedLM": (
            {
                "lm_head.dense.weight": (4, 4),
                "lm_head.dense.bias": (4,),
                "lm_head.layer_norm.weight": (4,),
                "lm_head.layer_norm.bias": (4,),
                "lm_head.bias": (11,),
            },
            False,
        ),
    },
)
_PRE: Shapes = {"pre_classifier.weight": (4, 4), "pre_classifier.bias": (4,)}
DISTILBERT = Synthetic(
    "distilbert",
    {k: v for k, v in BERT_CONFIG.items() if k not in ("num_segments", "layer_norm_epsilon")}
    | {"span_dropout": 0.3},
    {
        "architectures": ["DistilBertModel"],
        "model_type": "distilbert",
        "vocab_size": 11,
        "dim": 4,
        "n_layers": 2,
        "n_heads": 2,
        "hidden_dim": 6,
        "max_position_embeddings": 8,
        "dropout": 0.1,
        "attention_dropout": 0.2,
        "activation": "gelu",
        "initializer_range": 0.02,
        "sinusoidal_pos_embds": True,
        "qa_dropout": 0.3,
        "seq_classif_dropout": 0.2,
    },
    {
        "embeddings.word_embeddings.weight": (11, 4),
        "embeddings.position_embeddings.weight": (8, 4),
        "embeddings.LayerNorm.weight": (4,),
        "embeddings.LayerNorm.bias": (4,),
        **_blocks(
            "transformer.layer",
            {
                **{f"attention.{part}": (4, 4) for part in ("q_lin", "k_lin", "v_lin", "out_lin")},
                "sa_layer_norm": (4,),
                "ffn.lin1": (6, 4),
                "ffn.lin2": (4, 6),
                "output_layer_norm": (4,),
            },
        ),
    },
    {},
    {
        "DistilBertModel": ({}, False),
        "DistilBertForSequenceClassification": (_PRE | LABELS, False),
        "DistilBertForTokenClassification": (LABELS, False),
        "DistilBertForMultipleChoice": (_PRE | CHOICE, False),
        "DistilBertForQuestionAnswering": (SPANS, False),
        "DistilBertForMaskedLM": (
            {
                "vocab_transform.weight": (4, 4),
                "vocab_transform.bias": (4,),
                "vocab_layer_norm.weight": (4,),
                "vocab_layer_norm.bias": (4,),
                "vocab_projector.bias": (11,),
            },
            False,
        ),
    },
)
ELECTRA = Synthetic(
    "electra",
    {**BERT_CONFIG, "embedding_dim": 3},
    BERT_HF_CONFIG
    | {"architectures": ["ElectraModel"], "model_type": "electra", "embedding_size": 3}
    | {"summary_last_dropout": 0.1, "summary_type": "first"},
    {
        **{n: (*s[:-1], 3) if n.startswith("embeddings.") else s for n, s in _BERT.items()},
        "embeddings_project.weight": (4, 3),
        "embeddings_project.bias": (4,),
    },
    {},
    {
        "ElectraModel": ({}, False),
        "ElectraForSequenceClassification": (TWO_LAYERS, False),
        "ElectraForTokenClassification": (LABELS, False),
        "ElectraForMultipleChoice": (
            {"sequence_summary.summary.weight": (4, 4), "sequence_summary.summary.bias": (4,)}
            | CHOICE,
            False,
        ),
        "ElectraForQuestionAnswering": (SPANS, False),
        "ElectraForMaskedLM": (
            {
                "generator_predictions.dense.weight": (3, 4),
                "generator_predictions.dense.bias": (3,),
                "generator_predictions.LayerNorm.weight": (3,),
                "generator_predictions.LayerNorm.bias": (3,),
                "generator_lm_head.bias": (11,),
            },
            False,
        ),
        "ElectraForPreTraining": (
            {
                "discriminator_predictions.dense.weight": (4, 4),
                "discriminator_predictions.dense.bias": (4,),
                "discriminator_predictions.dense_prediction.weight": (1, 4),
                "discriminator_predictions.dense_prediction.bias": (1,),
            },
            False,
        ),
    },
)
