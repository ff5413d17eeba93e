"""Small Marian folders, written as transformers writes them, without transformers.

The names and shapes of the tensors are those of transformers' `models/marian/modeling_marian.py`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

ENGLISH = [
    "the old man reads a book in the garden",
    "a child plays with the red ball",
    "two women drink coffee near the river",
] * 3
GERMAN = [
    "der alte Mann liest ein Buch im Garten",
    "ein Kind spielt mit dem roten Ball",
    "zwei Frauen trinken Kaffee am Fluß",
] * 3
# "th" is a piece of the English model that the vocabulary lacks.
MISSING = "th"
LANGUAGE = ">>deu<<"
HIDDEN, INNER, POSITIONS = 16, 24, 24


@cache
def subword_models() -> tuple[bytes, bytes]:
    """SentencePiece models of English and German, with the library's own ids."""
    import io

    import sentencepiece

    models = []
    for lines in (ENGLISH, GERMAN):
        written = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=written,
            vocab_size=40,
            hard_vocab_limit=False,
            model_type="unigram",
            minloglevel=2,
        )
        models.append(written.getvalue())
    return models[0], models[1]


def vocabulary(*models: bytes) -> dict[str, int]:
    """The pieces of SentencePiece models as `vocab.json` has them, the padding last."""
    import sentencepiece

    pieces = ["</s>", "<unk>"]
    for model in models:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        every = [processor.id_to_piece(number) for number in range(len(processor))]
        pieces += [p for p in every if p not in (*pieces, "<s>", MISSING)]
    return {piece: number for number, piece in enumerate([*pieces, LANGUAGE, "<pad>"])}


def write_tokenizer(folder: Path, separate: bool = False) -> dict[str, int]:
    """Writes `source.spm`, `target.spm` and the vocabularies; returns that of the target."""
    source, target = subword_models()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    every = vocabulary(source, target)
    if separate:
        every = vocabulary(target)
        (folder / "target_vocab.json").write_text(json.dumps(every))
        (folder / "vocab.json").write_text(json.dumps(vocabulary(source)))
    else:
        (folder / "vocab.json").write_text(json.dumps(every))
    return every


def marian_config(size: int, **changes: Any) -> dict[str, Any]:
    """`config.json` of a model with 2 + 1 layers, with the fields of published models."""
    config = {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "vocab_size": size,
        "d_model": HIDDEN,
        "encoder_layers": 2,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": INNER,
        "decoder_ffn_dim": INNER,
        "max_position_embeddings": POSITIONS,
        "activation_function": "swish",
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "scale_embedding": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "static_position_embeddings": True,
        "pad_token_id": size - 1,
        "decoder_start_token_id": size - 1,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
        "num_beams": 4,
        "bad_words_ids": [[size - 1]],
    }
    return {**config, **changes}


def marian_tensors(size: int) -> dict[str, np.ndarray]:
    """Random tensors of that model, with one table."""
    shapes: dict[str, tuple[int, ...]] = {
        "model.shared.weight": (size, HIDDEN),
        "final_logits_bias": (1, size),
    }
    for side, layers in (("encoder", 2), ("decoder", 1)):
        attentions = ["self_attn"] + ["encoder_attn"] * (side == "decoder")
        for index in range(layers):
            layer = f"model.{side}.layers.{index}."
            for attention in attentions:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    shapes[f"{layer}{attention}.{part}.weight"] = (HIDDEN, HIDDEN)
                    shapes[f"{layer}{attention}.{part}.bias"] = (HIDDEN,)
            shapes[f"{layer}fc1.weight"] = (INNER, HIDDEN)
            shapes[f"{layer}fc1.bias"] = (INNER,)
            shapes[f"{layer}fc2.weight"] = (HIDDEN, INNER)
            shapes[f"{layer}fc2.bias"] = (HIDDEN,)
            for norm in (*(f"{a}_layer_norm" for a in attentions), "final_layer_norm"):
                shapes[f"{layer}{norm}.weight"] = shapes[f"{layer}{norm}.bias"] = (HIDDEN,)
    draw = np.random.default_rng(8)
    return {name: draw.normal(size=shape).astype("float32") for name, shape in shapes.items()}


def write_marian(
    folder: Path, tensors: dict[str, np.ndarray] | None = None, **changes: Any
) -> Path:
    """Writes a whole folder; `changes` are of the configuration."""
    ids = write_tokenizer(folder)
    (folder / "config.json").write_text(json.dumps(marian_config(len(ids), **changes)))
    if tensors is None:
        tensors = marian_tensors(len(ids))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
