"""Shortlists of translators: of all pieces, of some, learned, saved and exported."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import kbert
from kbert.architectures import encoder_decoder_class
from kbert.decoding.shortlist import Shortlist
from kbert.tasks.translation.model import Translator
from kbert.tasks.translation.saved_translator import search_arguments
from kbert.tasks.translation.shortlist import candidates_of
from tests.models.encoder_decoders.running_sums import RunningSums
from tests.small_translator import LINES, small_subwords, small_translator

END = 0
SHORT = {"length_ratio": 0.4, "length_extra": 2}
TEXTS = ["the red ball", "a child reads the book", "", "two women"]
PIECES = len(small_subwords())
EVERYTHING = Shortlist(np.zeros((PIECES, 1), int), np.arange(PIECES))
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "rnn": ("rnn", {}),
    "bahdanau": ("bahdanau", {"tied": "none"}),
    "convs2s": ("convs2s", {"num_encoder_layers": 1, "num_decoder_layers": 2}),
    "transformer": ("transformer", {"output_bias": True}),
    "transformer untied": ("transformer", {"tied": "none"}),
}


def sources(token_ids: Any, mask: Any) -> dict[str, tf.Tensor]:
    ids, real = tf.constant(token_ids, tf.int32), tf.constant(np.array(mask) > 0)
    return {"source_token_ids": ids, "source_padding_mask": real}


def test_candidates_of_a_batch():
    shortlist = Shortlist([[END, END], [5, 3], [7, 3]], [2])
    # The last token of the second row is padding.
    inputs = sources([[1, 0], [2, 1], [0, 0]], [[1, 1], [1, 0], [1, 1]])
    found = candidates_of(shortlist, inputs, END, 9, multiple=4)
    assert found.token_ids.numpy().tolist() == [END, 2, 3, 5, 7, END, END, END]
    allowed = [
        [1, 1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 1, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0, 0],
    ]
    hidden = np.where(np.array(allowed) == 1, 0.0, -np.inf)
    np.testing.assert_array_equal(found.hidden, hidden)


def test_candidates_that_need_no_filling_and_a_batch_without_rows():
    shortlist = Shortlist([[1], [2]], [3])
    full = candidates_of(shortlist, sources([[0, 1]], [[1, 1]]), END, 4, multiple=4)
    assert full.token_ids.numpy().tolist() == [END, 1, 2, 3]
    none = candidates_of(shortlist, sources(np.zeros((0, 2), int), np.zeros((0, 2))), END, 4, 4)
    assert none.token_ids.numpy().tolist() == [END] * 4
    assert none.hidden.shape == (0, 4)


def translator(name: str) -> Translator:
    keras.utils.set_random_seed(4)
    kind, given = MODELS[name]
    if kind == "transformer":
        given = {**given, "num_encoder_layers": 1, "num_decoder_layers": 1, "num_heads": 2}
        given["intermediate_dim"] = 32
    inner = encoder_decoder_class(kind)(PIECES, 16, **given)
    for variable in inner.trainable_variables:
        if len(variable.shape) == 1:
            variable.assign(np.random.default_rng(1).normal(0.0, 0.5, variable.shape))
    return Translator(inner, small_subwords(), None, beam_size=3, nbest=2, **SHORT)


def searched(model: Translator, texts: list[str]) -> Any:
    """Step by step without a graph: to trace one would take longer."""
    inputs, lengths, _ = model.source_inputs(tf.constant(texts))
    return model.search(inputs, lengths)


@pytest.mark.parametrize("name", MODELS)
def test_all_pieces_change_nothing(name: str):
    model = translator(name)
    wanted = searched(model, TEXTS)
    model.shortlist = EVERYTHING
    found = searched(model, TEXTS)
    np.testing.assert_array_equal(found.token_ids, wanted.token_ids)
    np.testing.assert_allclose(found.scores, wanted.scores, atol=1e-5)
    assert len(set(found.token_ids.numpy().flat)) > 2


def some(model: Translator) -> Shortlist:
    """Three pieces for each piece, and one everywhere."""
    draw = np.random.default_rng(7)
    first = model.target_subwords.end_id + 1
    return Shortlist(draw.integers(first, PIECES, (PIECES, 3)), [PIECES - 1])


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_row_says_what_its_own_pieces_allow(beam_size: int):
    model = small_translator(beam_size=beam_size, length_ratio=1.0)
    model.shortlist = some(model)
    together = searched(model, TEXTS)
    said = set()
    for row, text in enumerate(TEXTS):
        ids = model.source_inputs(tf.constant([text]))[0]["source_token_ids"].numpy()[0]
        may = {*model.shortlist.translations[ids].flat, PIECES - 1, model.target_subwords.end_id}
        own = set(together.token_ids.numpy()[row].flat)
        assert own <= may
        said |= own
        alone = searched(model, [text])
        length = int(alone.lengths[0, 0])
        assert int(together.lengths[row, 0]) == length
        np.testing.assert_array_equal(
            together.token_ids[row, 0, :length], alone.token_ids[0, 0, :length]
        )
        np.testing.assert_allclose(together.scores[row], alone.scores[0], atol=1e-5)
    assert len(said) > 3


@pytest.fixture(scope="module")
def learned() -> Translator:
    model = small_translator(beam_size=1, length_ratio=1.0)
    model.learn_shortlist(LINES[:3], LINES[3:6], translations=4, everywhere=2)
    return model


def test_learned_from_texts(learned: Translator):
    table = learned.shortlist.translations
    assert table.shape == (PIECES, 5)
    subwords = learned.target_subwords
    # The same piece is allowed, which a name or a number is translated by.
    same = [subwords.end_id if subwords.pieces[i].startswith("<") else i for i in range(PIECES)]
    np.testing.assert_array_equal(table[:, -1], same)
    ids, _, _ = learned.source_inputs(tf.constant(["ball"]))
    near = {subwords.pieces[i] for i in table[ids["source_token_ids"].numpy()[0]].flat}
    assert near & {piece for piece in subwords.tokens("mit dem roten Ball")}


def test_a_setting_of_predictions(learned: Translator):
    kept, short = learned.shortlist, learned.translations(TEXTS)
    learned.shortlist = None
    free = learned.translations(TEXTS)
    learned.shortlist = kept
    assert learned.translations(TEXTS) == short != free


def test_saved_and_exported(learned: Translator, tmp_path: Path):
    short = learned.translations(TEXTS)
    folder = learned.save_pretrained(tmp_path / "model")
    again = kbert.load(folder)
    np.testing.assert_array_equal(again.shortlist.everywhere, learned.shortlist.everywhere)
    assert again.translations(TEXTS) == short
    (folder / "shortlist.npz").write_bytes(b"x")
    with pytest.raises(ValueError, match="shortlist.npz"):
        kbert.load(folder)
    path = kbert.export(learned, tmp_path / "exports", "short")
    loaded = tf.saved_model.load(path).signatures["serving_default"]
    found = loaded(text=tf.constant(TEXTS))["translation"].numpy()
    assert [text.decode() for text in found] == short


def test_another_program_is_said_to_get_none(learned: Translator):
    _, notes = search_arguments(learned)
    assert notes[-1] == "CTranslate2 gets no shortlist: its search takes all pieces."
    assert notes[:-1] == search_arguments(small_translator(beam_size=1, length_ratio=1.0))[1]


def test_a_copy_in_another_precision_keeps_it(learned: Translator):
    config = keras.saving.serialize_keras_object(learned)
    copy = keras.saving.deserialize_keras_object(config)
    np.testing.assert_array_equal(copy.shortlist.translations, learned.shortlist.translations)
    assert "shortlist" not in keras.saving.serialize_keras_object(small_translator())["config"]


def test_a_shortlist_of_other_subwords():
    model = small_translator()
    wrong = Shortlist([[1], [2]], [3])
    model.shortlist = wrong
    with pytest.raises(ValueError, match=f"a row for each of {PIECES} source pieces.*2 rows"):
        model.translations(["a"])


def test_what_is_no_shortlist():
    model = small_translator()
    model.shortlist = 3
    with pytest.raises(ValueError, match="`shortlist` must be one of .*, or None. .*: shortlist=3"):
        model.translations(["a"])
    with pytest.raises(ValueError, match="equally many sentences, at least one. Received: 0 and 0"):
        model.learn_shortlist([], [])


def test_a_model_of_another_package_that_cannot_have_one():
    model = Translator(RunningSums(PIECES, 8), small_subwords(), None, shortlist=EVERYTHING)
    with pytest.raises(ValueError, match="must be None for a model without `candidate_logits`"):
        searched(model, TEXTS)
