"""The captioner of Xu et al., beside a NumPy reference that knows nothing of it."""

from typing import Any

import numpy as np
import pytest

from kbert.decoding.search import beam_search
from kbert.layers.recurrent.attention_steps import Sampling
from kbert.models.captioning.show_attend_tell import ShowAttendTell
from kbert.models.encoder_decoders.encoder_decoder import EncoderDecoder
from tests import numpy_captioning as reference
from tests.models.captioning import check_captioner as checks
from tests.models.captioning.check_captioner import FEATURES, INPUTS, TARGET, L, M, V
from tests.models.encoder_decoders.check_sequence_model import check_search, randomized

SETTINGS: list[dict[str, Any]] = [
    {},
    {"attention": "hard"},
    {"attention": "mean"},
    {"gated": False},
    {"attention": "hard", "gated": False, "embedding_dim": 4, "attention_dim": 3},
    {"embedding_dim": 9, "attention_dim": 7},
]


def small(**more: Any) -> ShowAttendTell:
    return randomized(ShowAttendTell(V, M, **{"hidden_dim": 6, **more}), scale=0.7)


@pytest.mark.parametrize("settings", SETTINGS)
def test_numbers(settings: dict[str, Any]):
    """Logits and weights; of hard attention by the likeliest places."""
    model = small(**settings)
    assert isinstance(model, EncoderDecoder)
    assert ("decoder/gate_kernel" in checks.weights_of(model)) == settings.get("gated", True)
    outputs = model(INPUTS)
    assert set(outputs) == {"logits", "weights"}
    scores = model.memory_scores(TARGET, model.encode(INPUTS))
    attention = settings.get("attention", "soft")
    assert len(scores) == model.num_decoder_layers == (attention != "mean")
    for row, image in enumerate(FEATURES):
        weights = checks.weights_of(model)
        wanted = reference.caption(weights, image, TARGET[row], attention=attention)
        np.testing.assert_allclose(outputs["logits"][row], wanted.logits, atol=1e-5)
        np.testing.assert_allclose(outputs["weights"][row], wanted.attention, atol=1e-5)
        for layer in scores:
            np.testing.assert_allclose(layer[row, 0], wanted.attention, atol=1e-5)


@pytest.mark.parametrize("settings", SETTINGS[:5])
def test_steps(settings: dict[str, Any]):
    model = small(**settings)
    checks.check_steps(model)
    checks.check_images_and_order(model)
    checks.check_saved(model)


@pytest.mark.parametrize("attention", ["soft", "hard"])
def test_low_precision(attention: str):
    checks.check_low_precision(small(attention=attention))


def test_search():
    check_search(randomized(ShowAttendTell(4, M, hidden_dim=3), scale=0.9), INPUTS)


@pytest.mark.parametrize("gated", [True, False])
def test_gates(gated: bool):
    """The gate, by which the context is what the weights give, scaled."""
    model = small(gated=gated)
    memory = model.encode(INPUTS)
    state = memory["initial"][:, None]
    contexts, chances = model.decoder.attend(state, model_annotations(model))
    for row, image in enumerate(FEATURES):
        weights = checks.weights_of(model)
        h, c = reference.initial_state(weights, image)
        np.testing.assert_allclose(memory["initial"][row], [*h, *c], atol=1e-5)
        gate = reference.gate_value(weights, h)
        assert (gate == 1.0) != gated
        mean = reference.attention_weights(weights, image, h) @ image
        np.testing.assert_allclose(contexts[row, 0], gate * mean, atol=1e-5)
        np.testing.assert_allclose(chances[row, 0].numpy() @ image, mean, atol=1e-5)


def model_annotations(model: ShowAttendTell) -> Any:
    return model.decoder.annotations(FEATURES, np.ones((3, L), bool))


@pytest.mark.parametrize("attention", ["soft", "hard", "mean"])
def test_one_step(attention: str):
    """From a state that is not the first one."""
    model = small(attention=attention)
    state = model.start_decoding(model.encode(INPUTS))
    given = np.random.default_rng(2).normal(size=(3, 1, 12)).astype("float32")
    tokens = np.array([[4], [0], [5]])
    logits, new = model.decode_step(
        tokens, np.int32(0), np.zeros((3, 1, 1), "int32"), {**state, "initial": given}
    )
    for row, image in enumerate(FEATURES):
        before = (given[row, 0, :6].astype("float64"), given[row, 0, 6:].astype("float64"))
        wanted = reference.caption_step(
            checks.weights_of(model), image, before, tokens[row, 0], attention=attention
        )
        np.testing.assert_allclose(logits[row, 0], wanted.logits, atol=1e-5)
        np.testing.assert_allclose(new["initial"][row, 0], np.concatenate(wanted.state), atol=1e-5)


def test_given_places():
    """Hard attention at places that noise decides: not the likeliest ones, or soft in a row."""
    model = small(attention="hard", dropout=0.0)
    places = np.array([[0, 3, 1, 1], [2, 2, 0, 3], [1, 0, 3, 2]])
    noise = 99.0 * np.eye(L, dtype="float32")[places]
    is_soft = np.array([[0.0], [0.0], [1.0]], "float32")
    model._sampling = lambda *_: Sampling(noise, is_soft)
    outputs = model(INPUTS, training=True)
    assert set(outputs) == {"logits", "weights", "chosen", "is_soft"}
    for row, image in enumerate(FEATURES):
        known: dict[str, Any] = {"attention": "soft"}
        if row < 2:
            known = {"attention": "hard", "places": places[row].tolist()}
            np.testing.assert_array_equal(outputs["chosen"][row], np.eye(L)[places[row]])
        wanted = reference.caption(checks.weights_of(model), image, TARGET[row], **known)
        np.testing.assert_allclose(outputs["logits"][row], wanted.logits, atol=1e-5)
        np.testing.assert_allclose(outputs["weights"][row], wanted.attention, atol=1e-5)


def test_places_are_drawn_by_their_weights():
    """The first place of 4000 rows alike, of which half attend softly, as often as it is likely."""
    model = small(attention="hard", dropout=0.0)
    count = 4000
    given = {"features": np.tile(FEATURES[:1], (count, 1, 1)), "target_token_ids": TARGET[:1, :1]}
    given["target_token_ids"] = np.tile(TARGET[:1, :1], (count, 1))
    outputs = model(given, training=True)
    is_soft = outputs["is_soft"].numpy()[:, 0] > 0
    assert abs(is_soft.mean() - 0.5) < 4 * 0.5 / count**0.5
    chances = outputs["weights"].numpy()[0, 0]
    drawn = outputs["chosen"].numpy()[~is_soft, 0]
    assert set(np.unique(drawn)) == {0.0, 1.0}
    error = np.sqrt(chances * (1 - chances) / len(drawn))
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - chances), 4 * error)
    np.testing.assert_allclose(outputs["chosen"].numpy()[is_soft][0, 0], chances, atol=1e-6)
    assert not np.array_equal(outputs["chosen"], model(given, training=True)["chosen"])


@pytest.mark.parametrize("attention", ["soft", "hard", "mean"])
def test_the_best_caption_is_that_of_the_reference(attention: str):
    """Beam search that keeps every beginning, beside all captions of the reference."""
    tiny = randomized(ShowAttendTell(4, M, hidden_dim=3, attention=attention), scale=0.9)
    state = tiny.start_decoding(tiny.encode(INPUTS), 16)
    ends = {"start_id": 1, "end_id": 2, "max_lengths": np.full(3, 3, "int32")}
    found = beam_search(tiny.decode_step, state, 3, beam_size=16, nbest=1, **ends)
    for row, image in enumerate(FEATURES):
        ids, score = reference.best_caption(
            checks.weights_of(tiny),
            image,
            start_id=1,
            end_id=2,
            max_tokens=3,
            attention=attention,
            unfinished=False,
        )
        count = int(found.lengths[row, 0])
        assert tuple(found.token_ids[row, 0, :count].numpy().tolist()) == ids
        np.testing.assert_allclose(found.log_probabilities[row, 0], score, atol=1e-5)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"attention": "sharp"}, r"`attention` must be one of \['soft', 'hard', 'mean'\]. Rec.*sh"),
        ({"attention_dim": 0}, "`attention_dim` must be at least 1"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        small(**arguments)
