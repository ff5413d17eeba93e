"""The weights of a folder of kbert as a Marian model of transformers.

Marian has the same layers; its positions are made those of the model that is converted.
"""

import json
import math
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import MarianConfig, MarianMTModel

ATTENTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def converted(folder: Path) -> MarianMTModel:
    """The weights of a folder of kbert as a Marian model."""
    about = json.loads((folder / "kbert_translation.json").read_text())["transformer"]
    config = MarianConfig(
        vocab_size=about["vocabulary_size"],
        d_model=about["hidden_dim"],
        encoder_layers=about["num_encoder_layers"],
        decoder_layers=about["num_decoder_layers"],
        encoder_attention_heads=about["num_heads"],
        decoder_attention_heads=about["num_heads"],
        encoder_ffn_dim=about["intermediate_dim"],
        decoder_ffn_dim=about["intermediate_dim"],
        max_position_embeddings=about["max_sequence_length"],
        activation_function=about["activation"],
        scale_embedding=True,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config).eval()
    given, own = load_file(folder / "model.safetensors"), {}
    own["model.shared.weight"] = given["source_embedding/embeddings"]
    for side in ("encoder", "decoder"):
        for i in range(about[f"num_{side}_layers"]):
            block = f"{side}_block_{i}/"
            arrays = {k.removeprefix(block): v for k, v in given.items() if k.startswith(block)}
            for name, array in layer(arrays).items():
                own[f"model.{side}.layers.{i}.{name}"] = array
    missing = model.load_state_dict({**model.state_dict(), **own}, strict=True)
    if missing.missing_keys or set(own) - set(model.state_dict()):
        raise SystemExit(f"not converted: {missing}")
    model.tie_weights()
    table = sinusoids(about["max_sequence_length"], about["hidden_dim"])
    for side in (model.model.encoder, model.model.decoder):
        side.embed_positions.weight.data.copy_(table)
    return model


def layer(arrays: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """One layer under Marian's names, whose matrices are transposed."""
    found = {}
    for name, array in arrays.items():
        *path, part, kind = name.split("/")
        own = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}[kind]
        place, array = path[0], array.T.contiguous()
        if place.endswith("_residual"):
            place = place.removesuffix("_residual").replace("attention", "attn")
            place = {"cross_attn": "encoder_attn", "attn": "self_attn"}.get(place, place)
            norm = "final" if place == "feed_forward" else place
            found[f"{norm}_layer_norm.{own}"] = array
        elif place == "feed_forward":
            found[f"{'fc1' if part == 'intermediate' else 'fc2'}.{own}"] = array
        else:
            place = "encoder_attn" if place == "cross_attention" else "self_attn"
            parts = {"qkv": ["query", "key", "value"], "key_value": ["key", "value"]}
            names = parts.get(part, [part])
            for one, piece in zip(names, array.chunk(len(names), dim=0)):
                found[f"{place}.{ATTENTIONS[one]}.{own}"] = piece.contiguous()
    return found


def sinusoids(positions: int, width: int) -> torch.Tensor:
    """Sines and cosines, interleaved as in Vaswani et al. 2017, section 3.5."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    angles = torch.arange(positions)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(positions, width)
