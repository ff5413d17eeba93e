"""Translators small enough to make in a test; their weights are random."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from kbert.models.bert import Bert
from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
from kbert.models.encoder_decoders.transformer import Transformer
from kbert.tasks.translation.model import Translator
from kbert.text.subword import Subword
from kbert.text.subword_training import train_subwords
from tests.small_pipelines import TOKENIZER

LINES = [
    "the old man reads a book in the garden",
    "a child plays with the red ball",
    "two women drink coffee near the river",
    "der alte Mann liest ein Buch im Garten",
    "ein Kind spielt mit dem roten Ball",
    "zwei Frauen trinken Kaffee am Fluss",
] * 3


@functools.cache
def small_subwords(model_type: str = "bpe", size: int = 60) -> Subword:
    """Pieces of both languages."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "joint.model"
        return train_subwords([LINES], path, vocabulary_size=size, model_type=model_type)


def small_translator(
    fused: bool = False,
    decoder_layers: int = 1,
    dtype: str = "float32",
    hidden_dim: int = 16,
    **options: Any,
) -> Translator:
    """One that attends to some pieces more than to others, and says little."""
    keras.utils.set_random_seed(5)
    subwords = small_subwords()
    sizes = (len(subwords), hidden_dim, 1, decoder_layers, 2, 2 * hidden_dim, 40)
    bert = Bert(len(TOKENIZER.vocabulary), 8, 1, 2, 16, max_sequence_length=20, dtype=dtype)
    kind: Any = BertFusedTransformer if fused else Transformer
    transformer = kind(*sizes, dtype=dtype, **({"bert": bert} if fused else {}))
    for variable in transformer.trainable_variables:
        if variable.path.endswith("kernel"):
            variable.assign(variable * 4.0)
    options = {"beam_size": 2, "length_ratio": 0.4, "length_extra": 3, **options}
    tokenizer = TOKENIZER if fused else None
    return Translator(transformer, subwords, subwords, tokenizer, dtype=dtype, **options)


def shared_translator(fused: bool = False, decoder_layers: int = 1, **options: Any) -> Translator:
    """A small translator that no test changes, one for all ways to ask for the same."""
    return _shared(fused, decoder_layers, **{"beam_size": 2, **options})


@functools.cache
def _shared(fused: bool, decoder_layers: int, **options: Any) -> Translator:
    return small_translator(fused, decoder_layers, **options)


@functools.cache
def graph_of(translator: Translator, function: str = "translate") -> Any:
    """`translate` or `align` as one graph for batches of any size; to trace it takes a second."""
    specs = [tf.TensorSpec((None,), tf.string)]
    return tf.function(getattr(translator, function), input_signature=specs, autograph=False)
