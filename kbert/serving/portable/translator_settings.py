"""Settings beside a translator's networks, in the layout of Marian's models at Hugging Face.

The subword models are read by the `sentencepiece` library; a BERT's tokenizer by `tokenizers`.
"""

from pathlib import Path
from typing import Any

from kbert import __version__
from kbert.checkpoints.huggingface_config import activation_to_huggingface
from kbert.checkpoints.huggingface_files import CONFIG
from kbert.checkpoints.marian_files import GENERATION, SIZES
from kbert.serving.portable.tokenizer_json import tokenizer_json
from kbert.storage.json_files import json_text
from kbert.text.subword import Subword

SOURCE, TARGET = "source.spm", "target.spm"
# How texts become what goes in, for the card.
TEXTS = (
    f"`sentencepiece` makes ids of a source with `{SOURCE}`, behind which comes the end token, and "
    f"a translation of ids with `{TARGET}`. The encoder runs once; the decoder first with the "
    "start token, and then, with what it returned for each layer i, token by token. Logits come "
    "out, before any softmax. Rows need one real token at least."
)


def write_translator_settings(folder: Path, model: Any) -> None:
    """Writes configuration, search settings and subwords of a `Translator` with a Transformer.

    A model with a BERT has BERT's `tokenizer.json` too, and no `model_type`: there is no such class
    at Hugging Face.
    """
    source, target, bert = model.source_subwords, model.target_subwords, model.transformer.bert
    (folder / SOURCE).write_bytes(source.model)
    (folder / TARGET).write_bytes(target.model)
    files = {CONFIG: _config(model), GENERATION: _generation(model)}
    files["tokenizer_config.json"] = {
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": source != target,
        "model_max_length": model.max_source_length,
        **{f"{name}_token": source.pieces[number] for name, number in _special(source).items()},
    }
    files["vocab.json"] = _ids(source)
    if source != target:
        files["target_vocab.json"] = _ids(target)
    for name, content in files.items():
        (folder / name).write_text(json_text(content), encoding="utf-8")
    if bert is not None:
        made = tokenizer_json(model.bert_tokenizer, bert.max_sequence_length)
        (folder / "tokenizer.json").write_text(made, encoding="utf-8")


def _special(subwords: Subword) -> dict[str, int]:
    ids = subwords.unknown_id, subwords.end_id, subwords.padding_id
    return dict(zip(("unk", "eos", "pad"), ids, strict=True))


def _ids(subwords: Subword) -> dict[str, int]:
    return {piece: number for number, piece in enumerate(subwords.pieces)}


def _config(model: Any) -> dict[str, Any]:
    transformer, target = model.transformer, model.target_subwords
    raw = {name: getattr(transformer, key) for key, (name, _) in SIZES.items()}
    raw |= {
        "decoder_attention_heads": transformer.num_heads,
        "decoder_ffn_dim": transformer.intermediate_dim,
        "vocab_size": len(model.source_subwords),
        "decoder_vocab_size": len(target),
        "share_encoder_decoder_embeddings": transformer.tied == "all",
        "tie_word_embeddings": transformer.tied != "none",
        "scale_embedding": True,
        "activation_function": activation_to_huggingface(transformer.activation, None),
        "is_encoder_decoder": True,
        **_ends(target),
    }
    if transformer.bert is None:
        raw |= {"model_type": "marian", "architectures": ["MarianMTModel"]}
    settings = {key: getattr(model, key) for key in model.arguments}
    own = {"norm": transformer.norm, "positions": transformer.positions, **settings}
    return {**raw, "kbert": {"class": type(model).__name__, "version": __version__, **own}}


def _generation(model: Any) -> dict[str, Any]:
    """Returns what `generate` of transformers reads; its lengths do not depend on the source's."""
    return {
        "max_length": model.transformer.max_sequence_length,
        "num_beams": model.beam_size,
        "num_return_sequences": model.nbest,
        "length_penalty": model.alpha if model.length_penalty == "power" else 0.0,
        **_ends(model.target_subwords),
    }


def _ends(target: Subword) -> dict[str, int]:
    return {
        "decoder_start_token_id": target.start_id,
        "bos_token_id": target.start_id,
        "eos_token_id": target.end_id,
        "pad_token_id": target.padding_id,
    }
