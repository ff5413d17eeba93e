"""Writes adapterhub.tar.xz: encoders, adapters that AdapterHub's library saves, what it computes.

Run by a Python with `torch` and `adapters`, which kbert's own environment lacks: see README.md.
Weights are random multiples of 1/32, which any precision holds; the numbers come from float64.
"""

import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import adapters
import numpy as np
import torch
import transformers
from adapters import BnConfig, DoubleSeqBnConfig, LoRAConfig, SeqBnConfig
from adapters.composition import Fuse
from safetensors.numpy import save_file

IDS = torch.tensor([[2, 7, 9, 6, 3, 1, 1], [2, 5, 4, 10, 8, 7, 3]])
MASK = torch.tensor([[1, 1, 1, 1, 1, 0, 0], [1] * 7])
SIZES = {"vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 12, "max_position_embeddings": 10}
DISTILBERT = {"vocab_size": 11, "dim": 8, "n_layers": 2, "n_heads": 2, "hidden_dim": 12}
DISTILBERT |= {"max_position_embeddings": 10}
EVERYWHERE = {"attn_matrices": ["q", "k", "v"], "intermediate_lora": True, "output_lora": True}
PFEIFFER = {"mh_adapter": False, "output_adapter": True, "original_ln_before": True}
# Encoder -> its class, its configuration, and the settings of its adapters.
ENCODERS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "bert": (
        "BertModel",
        transformers.BertConfig(**SIZES),
        {
            "pfeiffer": "seq_bn",
            "gelu": SeqBnConfig(non_linearity="gelu", reduction_factor=2),
            "houlsby": DoubleSeqBnConfig(reduction_factor={"0": 4, "default": 4}),
            "lora": LoRAConfig(r=2, alpha=6),
            "lora-everywhere": LoRAConfig(r=3, alpha=5, dropout=0.1, **EVERYWHERE),
            "lora-keys": LoRAConfig(r=1, alpha=4, attn_matrices=["k"], output_lora=True),
        },
    ),
    "roberta": (
        "RobertaForSequenceClassification",
        transformers.RobertaConfig(**SIZES),
        {
            "pfeiffer": BnConfig(**PFEIFFER, reduction_factor=4, non_linearity="gelu_new"),
            "houlsby": DoubleSeqBnConfig(reduction_factor=2, non_linearity="tanh"),
            "lora": LoRAConfig(r=2, alpha=1, attn_matrices=["v", "k"]),
        },
    ),
    "distilbert": (
        "DistilBertModel",
        transformers.DistilBertConfig(**DISTILBERT),
        {
            "pfeiffer": SeqBnConfig(reduction_factor=4),
            "houlsby": DoubleSeqBnConfig(reduction_factor=4),
            "lora": LoRAConfig(r=2, alpha=3, **EVERYWHERE),
        },
    ),
    "electra": (
        "ElectraModel",
        transformers.ElectraConfig(**SIZES, embedding_size=4),
        {
            "pfeiffer": SeqBnConfig(reduction_factor=4),
            "houlsby": DoubleSeqBnConfig(reduction_factor=4),
            "lora": LoRAConfig(r=2, alpha=3, **EVERYWHERE),
        },
    ),
}


def draw(model: Any, seed: int) -> None:
    """Random numbers for all weights, around 1 for the gains of LayerNorms."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        center = 1.0 if "norm.weight" in name.lower() else 0.0
        numbers = center + 0.4 * torch.randn(parameter.shape, generator=generator)
        parameter.data = torch.round(numbers * 32) / 32
    model.eval()


def states(model: Any) -> np.ndarray:
    """The embeddings and the output of each layer, (layers + 1, B, T, D)."""
    model.double()
    with torch.no_grad():
        found = model(IDS, attention_mask=MASK, output_hidden_states=True).hidden_states
    model.float()
    return np.stack([state.numpy() for state in found]).astype("float32")


def write_encoder(folder: Path, kind: str) -> None:
    """Writes the encoder, each adapter, and the hidden states with each."""
    class_name, config, settings = ENCODERS[kind]
    model = getattr(transformers, class_name)(config)
    draw(model, 0)
    model.save_pretrained(folder / kind / "encoder")
    plain = {name: parameter.data.clone() for name, parameter in model.named_parameters()}
    adapters.init(model)
    for name, one in settings.items():
        model.add_adapter(name, config=one)
    fuse = Fuse("pfeiffer", "gelu")
    if kind == "bert":
        model.add_adapter_fusion(fuse)
    draw(model, 1)
    for name, parameter in model.named_parameters():
        old = plain.get(name.replace(".base_layer.", "."))
        if old is not None:
            parameter.data = old
    expected = {"plain": states(model)}
    for name in settings:
        model.set_active_adapters(name)
        expected[name] = states(model)
        model.save_adapter(str(folder / kind / name), name, use_safetensors=True)
    if kind == "bert":
        model.set_active_adapters(fuse)
        expected["fusion"] = states(model)
        model.save_adapter_fusion(str(folder / kind / "fusion"), fuse, use_safetensors=True)
    save_file(expected, folder / kind / "states.safetensors")


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    for kind in ENCODERS:
        write_encoder(folder, kind)
    save_file({"ids": IDS.numpy(), "mask": MASK.numpy()}, folder / "inputs.safetensors")
    with tarfile.open(Path(__file__).with_name("adapterhub.tar.xz"), "w:xz") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                info = archive.gettarinfo(path, path.relative_to(folder).as_posix())
                info.uid = info.gid = info.mtime = 0
                info.uname, info.gname, info.mode = "", "", 0o644
                archive.addfile(info, path.open("rb"))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
