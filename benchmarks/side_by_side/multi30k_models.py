"""The models that are compared on Multi30k: a small Transformer, and what goes on from it."""

from dataclasses import replace
from pathlib import Path

import keras

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.models.bert import Bert
from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
from kbert.models.encoder_decoders.transformer import Transformer
from kbert.pipelines.saved_pipeline import tokenizer_of
from kbert.tasks.translation.model import Translator
from kbert.text.subword import Subword

ENCODER = "all-MiniLM-L6-v2"
# vanilla: from random weights. more: the same model, trained on. fused: with a pretrained encoder.
# random: with an encoder of that size that has learned nothing.
KINDS = ("vanilla", "more", "fused", "random")


def made(
    kind: str,
    pieces: Subword,
    start: Path,
    dropout: float,
    drop_net: float,
    dtype: str,
    bert_layers: int | None = None,
) -> Translator:
    """A translator to train.

    Args:
        kind: one of `KINDS`.
        pieces: of both languages.
        start: a saved vanilla translator, from which the other kinds go on; not read for the first.
        dropout: of the Transformer.
        drop_net: rate of the drop-nets of fused ones.
        dtype: policy.
        bert_layers: how many of the encoder's first layers give the states; None for all.
    """
    sizes = {"dropout": dropout, "dtype": dtype}
    if kind == "vanilla":
        transformer = Transformer.from_size("tiny", len(pieces), **sizes)
        return Translator(transformer, pieces, pieces, dtype=dtype)
    vanilla = Translator.from_pretrained(start, dtype=dtype).transformer
    if kind == "more":
        transformer = Transformer.from_config({**vanilla.get_config(), **sizes})
        transformer.set_weights(vanilla.get_weights())
        return Translator(transformer, pieces, pieces, dtype=dtype)
    checkpoint = first_layers(read_checkpoint(ENCODER), bert_layers)
    if kind == "fused":
        bert = Bert.from_checkpoint(checkpoint)
    else:
        bert = Bert(**checkpoint.config)
    transformer = BertFusedTransformer.from_size(
        "tiny", len(pieces), bert=bert, drop_net=drop_net, **sizes
    )
    report = transformer.warm_start_from(vanilla)
    print(f"{len(report.loaded)} weights loaded, {len(report.new)} new", flush=True)
    return Translator(transformer, pieces, pieces, tokenizer_of(checkpoint), dtype=dtype)


def first_layers(checkpoint: Checkpoint, layers: int | None) -> Checkpoint:
    """The encoder that ends after some of its layers."""
    if layers is None:
        return checkpoint
    above = tuple(f"encoder_block_{n}/" for n in range(layers, checkpoint.config["num_layers"]))
    arrays = {k: v for k, v in checkpoint.arrays.items() if not k.startswith(above)}
    return replace(checkpoint, config={**checkpoint.config, "num_layers": layers}, arrays=arrays)


def seeded(seed: int) -> None:
    """Sets all random numbers, TensorFlow's too."""
    keras.utils.set_random_seed(seed)
