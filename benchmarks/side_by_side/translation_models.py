"""Translators as files that each contender can read."""

import argparse
import json
from pathlib import Path

import keras
from side_by_side.multi30k_data import read_split

from kbert.models.bert import Bert
from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
from kbert.models.encoder_decoders.transformer import Transformer
from kbert.tasks.translation.model import Translator
from kbert.tasks.translation.saved_translator import save_ctranslate2
from kbert.text.subword_training import train_subwords
from kbert.text.wordpiece.wordpiece import WordPiece

VOCABULARY, ENCODER = 16_000, "all-MiniLM-L6-v2"


def prepare(folder: Path, arguments: argparse.Namespace) -> dict[str, str]:
    """Writes sentences and model in all formats; returns where they are."""
    split = read_split(arguments.directory, "test_2016_flickr")
    train = read_split(arguments.directory, "train")
    sentences = split.sources[: arguments.sentences]
    (folder / "texts.json").write_text(json.dumps(sentences))
    if arguments.size is None:
        model, fused = map(Translator.from_pretrained, (arguments.translator, arguments.fused))
    else:
        pieces = train_subwords(
            [train.sources, train.targets], folder / "pieces.model", vocabulary_size=VOCABULARY
        )
        model = Translator(Transformer.from_size(arguments.size, len(pieces)), pieces, pieces)
        bert = Bert.from_pretrained(ENCODER)
        transformer = BertFusedTransformer.from_size(arguments.size, len(pieces), bert=bert)
        fused = Translator(transformer, pieces, pieces, WordPiece.from_pretrained(ENCODER))
    if arguments.size is not None:
        for variable in (v for m in (model, fused) for v in m.trainable_weights):
            if len(variable.shape) == 1:  # a trained bias is not 0, which a program may leave out
                variable.assign_add(keras.random.normal(variable.shape, stddev=0.02))
    model.save_pretrained(folder / "kbert")
    fused.save_pretrained(folder / "fused")
    save_ctranslate2(model, folder / "ctranslate2")
    model.learn_shortlist(train.sources, train.targets)
    model.save_pretrained(folder / "shortlist")
    return {
        "data": str(folder / "texts.json"),
        "pieces": str(folder / "kbert" / "source.model"),
    }
