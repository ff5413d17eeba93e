"""Translators as folders, and read again."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.models.albert import Albert
from kbert.models.bert import Bert
from kbert.models.distilbert import DistilBert
from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
from kbert.models.encoder_decoders.transformer import Transformer
from kbert.models.weights import encoder_arrays
from kbert.tasks.load import load
from kbert.tasks.translation.model import Translator
from kbert.text.subword_training import train_subwords
from kbert.text.wordpiece.wordpiece import WordPiece
from tests.small_pipelines import TOKENIZER

LINES = ["the old man reads a book", "der alte Mann liest ein Buch", "ein Kind spielt"] * 4
TEXTS = ["the old man", "", "ein Kind"]


@pytest.fixture(scope="module")
def subwords(tmp_path_factory):
    folder = tmp_path_factory.mktemp("subwords")
    sizes = {"one": 50, "other": 44}
    return {k: train_subwords([LINES], folder / k, vocabulary_size=n) for k, n in sizes.items()}


def made(subwords, fused=False, own=False):
    keras.utils.set_random_seed(2)
    sizes = (len(subwords["one"]), 16, 1, 1, 2, 32, 40)
    tokenizer, transformer = None, None
    if fused:
        bert = Bert(len(TOKENIZER.vocabulary), 8, 1, 2, 16, max_sequence_length=20)
        transformer, tokenizer = BertFusedTransformer(*sizes, bert=bert), TOKENIZER
    elif own:
        others = {"tied": "none", "source_vocabulary_size": len(subwords["other"]), "norm": "pre"}
        transformer = Transformer(*sizes, **others)
    else:
        transformer = Transformer(*sizes)
    source = subwords["other" if own else "one"]
    options = {"beam_size": 3, "alpha": 0.7, "length_ratio": 0.3, "length_extra": 3}
    return Translator(transformer, source, subwords["one"], tokenizer, **options)


@pytest.mark.parametrize(
    "kind", [{}, pytest.param({"fused": True}, marks=pytest.mark.slow), {"own": True}]
)
def test_what_is_read_again_is_the_same(subwords, tmp_path, kind):
    model = made(subwords, **kind)
    folder = model.save_pretrained(tmp_path / "model")
    assert (folder / "target.model").exists() == ("own" in kind)
    again = load(folder)
    assert type(again) is Translator
    before, after = encoder_arrays(model.transformer), encoder_arrays(again.transformer)
    assert sorted(before) == sorted(after)
    for name, array in before.items():
        np.testing.assert_array_equal(array, after[name], err_msg=name)
    assert again.alpha == 0.7 and again.beam_size == 3
    asked, expected = (one.translate(tf.constant(TEXTS)) for one in (again, model))
    assert asked["translation"].numpy().tolist() == expected["translation"].numpy().tolist()
    np.testing.assert_array_equal(asked["score"], expected["score"])


def test_the_bert_reads_as_it_did(subwords, tmp_path):
    model = made(subwords, fused=True)
    rules = {"strip_accents": False, "handle_cjk": False}
    model.bert_tokenizer = WordPiece(TOKENIZER.vocabulary, True, **rules)
    again = load(model.save_pretrained(tmp_path / "model")).bert_tokenizer
    assert again.get_config() == model.bert_tokenizer.get_config()


@pytest.mark.parametrize("kind, more", [(Albert, {"embedding_dim": 4}), (DistilBert, {})])
def test_the_encoder_beside_may_be_another(kind, more, subwords, tmp_path):
    model = made(subwords, fused=True)
    other = kind(len(TOKENIZER.vocabulary), 8, 2, 2, 16, max_sequence_length=20, **more)
    fused = BertFusedTransformer(**{**model.transformer.get_config(), "bert": other})
    one = Translator(fused, subwords["one"], subwords["one"], TOKENIZER)
    again = load(one.save_pretrained(tmp_path / "model")).transformer
    assert type(again) is BertFusedTransformer and type(again.bert) is kind
    before, after = encoder_arrays(fused), encoder_arrays(again)
    assert list(before) == list(after)
    for one, other in zip(before.values(), after.values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_settings_and_type_may_be_others(subwords, tmp_path):
    folder = made(subwords).save_pretrained(tmp_path / "model")
    again = Translator.from_pretrained(folder, beam_size=1, nbest=1, dtype="mixed_bfloat16")
    assert again.beam_size == 1
    assert again.transformer.compute_dtype == "bfloat16"


def test_damaged_folders_are_refused(subwords, tmp_path):
    folder = made(subwords).save_pretrained(tmp_path / "model")
    with pytest.raises(FileExistsError):
        made(subwords).save_pretrained(folder)
    assert made(subwords).save_pretrained(folder, overwrite=True) == folder
    with pytest.raises(ValueError, match="`path` must hold a BERT encoder. Received: a transl"):
        Bert.from_pretrained(folder)
    with pytest.raises(FileNotFoundError, match="with kbert_translation.json"):
        Translator.from_pretrained(tmp_path)
    about = json.loads((folder / "kbert_translation.json").read_text())
    (folder / "kbert_translation.json").write_text(json.dumps({**about, "format_version": 9}))
    with pytest.raises(ValueError, match="`format_version` must be 1.*format_version=9"):
        load(folder)
    del about["settings"]
    (folder / "kbert_translation.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match="Missing: settings"):
        load(folder)
    folder = made(subwords).save_pretrained(tmp_path / "again")
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-4] + b"\1\2\3\4")
    with pytest.raises(ValueError, match="model.safetensors"):
        load(folder)
