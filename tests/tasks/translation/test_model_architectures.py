"""Translators on models that are no Transformers, one of which kbert does not have."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import kbert
from kbert.architectures import ENCODER_DECODERS, encoder_decoder_class
from kbert.decoding.search import Hypotheses
from kbert.export_check.check import check
from kbert.models.encoder_decoders.encoder_decoder import EncoderDecoder
from kbert.tasks.translation.model import Translator
from kbert.tasks.translation.saved_translator import save_ctranslate2
from kbert.tasks.translation.task import TASK
from tests.models.encoder_decoders import running_sums
from tests.small_translator import LINES, small_subwords, small_translator

TEXTS = ["the red ball", "a child reads", "two women"]
# A line of the table is all that a model of another package needs.
SIZES: dict[str, dict[str, Any]] = {
    running_sums.NAME: {},
    "rnn": {"dropout": 0.0},
    "bahdanau": {"dropout": 0.0},
    "convs2s": {"dropout": 0.0, "num_encoder_layers": 1, "num_decoder_layers": 2},
}


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{running_sums.__name__}.RunningSums"
    monkeypatch.setitem(ENCODER_DECODERS, running_sums.NAME, name)


@pytest.fixture(scope="module", params=SIZES)
def trained(request: pytest.FixtureRequest) -> Translator:
    keras.utils.set_random_seed(3)
    subwords = small_subwords()
    options = {"beam_size": 3, "length_ratio": 0.4, "length_extra": 2}
    kind = running_sums.RunningSums
    if request.param != running_sums.NAME:
        kind = encoder_decoder_class(request.param)
    inner = kind(len(subwords), 16, **SIZES[request.param])
    model = Translator(inner, subwords, subwords, **options)
    model.compile(keras.optimizers.Adam(1e-2))
    losses = model.fit(LINES[:3], LINES[3:6], epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    return model


def searched(model: Translator) -> Hypotheses:
    """Step by step without a graph: to trace one would take longer."""
    inputs, lengths, _ = model.source_inputs(tf.constant(TEXTS))
    return model.search(inputs, lengths)


def test_a_folder_and_translations(trained: Translator, tmp_path: Path):
    assert isinstance(trained.transformer, EncoderDecoder)
    again = kbert.load(trained.save_pretrained(tmp_path / "model"))
    assert type(again.transformer) is type(trained.transformer)
    found = searched(again)
    texts = again.target_subwords.detokenize(found.token_ids, found.lengths)[:, 0]
    assert [text.decode() for text in texts.numpy()] == trained.translations(TEXTS)


def test_scores_are_those_of_the_known_target(trained: Translator):
    """A search that lost the parents of its hypotheses would have others."""
    found = searched(trained)
    inputs, _, _ = trained.source_inputs(tf.constant(TEXTS))
    memory = trained.transformer.encode(inputs)
    for row in range(3):
        count = int(found.lengths[row, 0])
        tokens = found.token_ids[row : row + 1, 0, :count]
        start = tf.fill((1, 1), trained.target_subwords.start_id)
        one = {name: tensor[row : row + 1] for name, tensor in memory.items()}
        states = trained.transformer.target_states(tf.concat([start, tokens[:, :-1]], 1), one)
        logs = tf.nn.log_softmax(trained.transformer.logits(states))[0].numpy()
        total = logs[np.arange(count), tokens[0].numpy()].sum()
        np.testing.assert_allclose(found.log_probabilities[row, 0], total, atol=1e-4)
    assert trained.translation_columns(TEXTS)["translation"].shape == (3,)


def test_alignments(trained: Translator):
    if trained.transformer.architecture == "rnn":
        with pytest.raises(ValueError, match="aligned by the attention.*Received: a RnnEncoderD"):
            trained.align(tf.constant(TEXTS))
        assert list(trained.signatures()) == ["serving_default"]
        return
    found = trained.align(tf.constant(TEXTS))
    translated = trained.translation_columns(TEXTS)["translation"]
    assert found["translation"].numpy().tolist() == translated.tolist()
    pieces = int(found["source_lengths"][0])
    row = found["alignment"][0, 0].numpy()
    assert row.sum() == pytest.approx(1) and not row[pieces:].any()
    if trained.transformer.architecture == running_sums.NAME:
        np.testing.assert_allclose(row[:pieces], 1 / pieces, atol=1e-6)


@pytest.mark.slow
def test_an_export(trained: Translator, tmp_path: Path):
    report = check(kbert.export(trained, tmp_path, "sums"))
    assert report.passed(), report.problems


def test_what_ctranslate2_has_not(trained: Translator, tmp_path: Path):
    name = type(trained.transformer).__name__
    with pytest.raises(ValueError, match=f"a plain Transformer.*Received: a {name}"):
        save_ctranslate2(trained, tmp_path / "model")


def test_it_need_not_have_self_attention(trained: Translator):
    tokens, scores = TASK.attention(trained, TEXTS[:1])
    assert tokens and scores == []


def test_forced_branches_count_for_what_was_translated_before():
    model = small_translator(fused=True)
    before = model.translation_columns(TEXTS)["score"]
    model.transformer.force_branches((0.0, 1.0))
    found = model.translation_columns(TEXTS)["score"]
    new = small_translator(fused=True)
    new.transformer.force_branches((0.0, 1.0))
    np.testing.assert_allclose(found, new.translation_columns(TEXTS)["score"], rtol=1e-5)
    assert np.abs(found - before).max() > 1e-3
