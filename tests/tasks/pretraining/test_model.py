"""Raw strings with [MASK] in, words with probabilities out."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

from kbert.models.bert import Bert
from kbert.models.weights import encoder_arrays
from kbert.optimization.adamw import AdamW
from kbert.tasks.classification.model import Classifier
from kbert.tasks.pretraining.model import MaskedLanguageModel
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece
from tests import numpy_reference as reference
from tests.checkpoints.synthetic_bert import hf_tensors, same_bytes, write_hf
from tests.small_pipelines import (
    TEXTS,
    TOKENIZER,
    VOCABULARY,
    random_texts,
    small_encoder,
    small_masked_language_model,
    special_tokenizer,
)

TOKEN_HEAD = {
    "cls.predictions.bias": (11,),
    "cls.predictions.transform.dense.weight": (4, 4),
    "cls.predictions.transform.dense.bias": (4,),
    "cls.predictions.transform.LayerNorm.weight": (4,),
    "cls.predictions.transform.LayerNorm.bias": (4,),
}
PAIR_HEAD = {"cls.seq_relationship.weight": (2, 4), "cls.seq_relationship.bias": (2,)}
MASK = VOCABULARY.mask_id


@pytest.fixture(scope="module")
def model():
    return small_masked_language_model()


@pytest.fixture(scope="module")
def causal_model():
    return small_masked_language_model("lm")


def head_arrays(model):
    return {v.path.split("token_head/")[-1]: np.asarray(v) for v in model.token_head.weights}


def expected_probabilities(model, text):
    """Of each [MASK] of a text, over the vocabulary (V,), by the reference.

    Each is read in the window in which the nearer edge is farthest away; of two such, the left one.
    """
    tokens = special_tokenizer().tokenize(tf.constant([text])).values.numpy()
    room = model.max_sequence_length - 2
    step = room - model.stride
    firsts = [0]
    while firsts[-1] + room < len(tokens):
        firsts.append(firsts[-1] + step)
    arrays, head = encoder_arrays(model.encoder), head_arrays(model)
    table = arrays["embeddings/token_embedding/embeddings"]
    found = []
    for place in np.flatnonzero(tokens == MASK):
        edges = [(min(place - f, min(f + room, len(tokens)) - 1 - place), -f) for f in firsts]
        first = -max(edges)[1]
        ids = [VOCABULARY.cls_id, *tokens[first : first + room], VOCABULARY.sep_id]
        causal = model.encoder.causal
        states = reference.bert(arrays, [ids], 1, 2, causal=causal).sequence_output[0]
        state = states[1 + place - first - (1 if causal else 0)]
        found.append(reference.softmax(reference.masked_token_logits(state, head, table)))
    return np.array(found)


def check_fill(model, text, found):
    """Whether the masks of one answer are what the reference says."""
    expected = expected_probabilities(model, text)
    assert len(found["masks"]) == len(expected)
    words = iter(found["masks"])
    for probabilities, mask in zip(expected, words, strict=True):
        best = np.argsort(-probabilities)[: model.nbest]
        scores = [one["score"] for one in mask["words"]]
        np.testing.assert_allclose(scores, probabilities[best], atol=2e-5)
        assert [one["word"] for one in mask["words"]] == [VOCABULARY.tokens[i] for i in best]
        content = text.encode() if isinstance(text, str) else text
        assert content[mask["start_byte"] : mask["end_byte"]] == b"[MASK]"
        if isinstance(text, str):
            assert text[mask["start"] : mask["end"]] == "[MASK]"


MASKED = [
    "a good [MASK].",
    "[MASK]",
    "the [MASK] film [MASK] bad [MASK]",
    "nothing to fill",
    "",
    "ÉÉ \U0001f600 [MASK] 中[MASK]中",
    "x" * 300 + " [MASK]",
    "film " * 30 + "[MASK] " + "good bad " * 30 + "[MASK]" + " a" * 40,
    "[MASK] " * 50,
]


# --- filling ---------------------------------------------------------------------------------


def test_numbers(model):
    answers = model.answers(MASKED)
    assert [len(answer["masks"]) for answer in answers] == [1, 1, 3, 0, 0, 2, 1, 2, 50]
    for text, answer in zip(MASKED, answers, strict=True):
        check_fill(model, text, answer)


def test_a_causal_model_knows_the_left_side_alone(causal_model):
    for text, answer in zip(MASKED, causal_model.answers(MASKED), strict=True):
        check_fill(causal_model, text, answer)
    texts = ["the film [MASK] good", "the film [MASK] bad bad", "the bad [MASK] good"]
    one, same, other = causal_model.fill(tf.constant(texts))["score"].numpy()[:, 0]
    np.testing.assert_allclose(same, one, atol=1e-6)
    assert np.abs(other - one).max() > 1e-3


def test_the_filled_text_has_the_best_words(model):
    text = "The [MASK]  FILM [MASK] bad."
    (answer,) = model.answers([text])
    words = [mask["words"][0]["word"] for mask in answer["masks"]]
    expected = text
    for word in words:
        glue = "\\s*" if word.startswith("##") else ""
        before, after = expected.split("[MASK]", 1)
        expected = (before.rstrip() if glue else before) + word.removeprefix("##") + after
    assert answer["filled"] == expected
    assert model.answers(["no MASK"]) == [{"filled": "no MASK", "masks": []}]


def test_no_row_changes_another(model):
    texts = MASKED[:6] + random_texts(4, seed=3)
    together = model.answers(texts)
    for text, answer in zip(texts, together, strict=True):
        (alone,) = model.answers([text])
        assert alone["filled"] == answer["filled"]
        for one, other in zip(alone["masks"], answer["masks"], strict=True):
            assert one["start"] == other["start"]
            scores = [[w["score"] for w in mask["words"]] for mask in (one, other)]
            np.testing.assert_allclose(*scores, atol=1e-5)
    assert model.answers([]) == []


def test_only_windows_with_a_mask_are_read(model):
    seen = []
    encoder = model.encoder
    before = encoder.call
    encoder.call = lambda inputs, training=None: seen.append(inputs) or before(inputs, training)
    try:
        model.fill(tf.constant(["good " * 300 + "[MASK]" + " bad" * 300, "film " * 100]))
    finally:
        encoder.call = before
    assert [inputs["token_ids"].shape for inputs in seen] == [(1, 24)]


def test_what_users_and_attackers_send(model):
    # Each "[MASK]" that is typed is one token, whatever stands around it.
    around = [t if isinstance(t, bytes) else t.encode() for t in TEXTS]
    around += [b"\xe4", b"\xcc\x81", "\u200b".encode(), b"##", b"[", b"]", b"[MASK", b"x" * 99]
    texts = [one + b"[MASK]" + other for one in around for other in around]
    found = model.fill(tf.constant(texts))
    typed = [text.count(b"[MASK]") for text in texts]
    assert found["count"].numpy().tolist() == typed
    starts = found["start_byte"].numpy()[:, 0]
    assert {text[start : start + 6] for text, start in zip(texts, starts)} == {b"[MASK]"}
    best = found["word"].numpy()[:, :, 0] == b"[MASK]"  # which a random model may find best
    left = [text.count(b"[MASK]") for text in found["filled"].numpy()]
    assert left == best.sum(axis=1).tolist()


def test_rows_of_the_table_without_a_token_are_no_words():
    encoder = Bert(len(VOCABULARY) + 9, 16, 1, 2, 32, 32, initializer_range=0.5)
    model = MaskedLanguageModel(
        encoder, special_tokenizer(), "mlm", 24, 4, nbest=len(VOCABULARY)
    )
    found = model.fill(tf.constant(["a [MASK]"]))
    words = found["word"].numpy()[0, 0].tolist()
    assert sorted(words) == sorted(token.encode() for token in VOCABULARY.tokens)
    assert 0.5 < float(tf.reduce_sum(found["score"])) < 1.0 - 1e-4


def test_settings_can_be_changed_at_any_time():
    model = small_masked_language_model("mlm")
    assert len(model.answers(["[MASK]"])[0]["masks"][0]["words"]) == 5
    model.nbest = 2
    assert len(model.answers(["[MASK]"])[0]["masks"][0]["words"]) == 2


# --- pairs -----------------------------------------------------------------------------------


def test_whether_a_text_follows(model):
    pairs = [("a film", "good"), ("", "bad"), ("film " * 40, "good " * 40)]
    found = model.follows(*(tf.constant(column) for column in zip(*pairs)))
    assert found["truncated"].numpy().tolist() == [False, False, True]
    arrays = encoder_arrays(model.encoder)
    head = {v.path.split("/")[-1]: np.asarray(v) for v in model.pair_head.weights}
    for (one, other), score in zip(pairs[:2], found["score"].numpy()):
        a, b = (special_tokenizer().tokenize([t]).values.numpy().tolist() for t in (one, other))
        ids = [VOCABULARY.cls_id, *a, VOCABULARY.sep_id, *b, VOCABULARY.sep_id]
        segments = [0] * (len(a) + 2) + [1] * (len(b) + 1)
        pooled = reference.bert(arrays, [ids], 1, 2, segment_ids=[segments]).pooled_output
        logits = reference.dense(pooled, head["kernel"], head["bias"])
        assert score == pytest.approx(reference.softmax(logits)[0, 0], abs=2e-5)


def test_signatures_of_each_objective(model, causal_model):
    assert list(model.signatures()) == ["serving_default", "follows"]
    assert list(causal_model.signatures()) == ["serving_default"]
    assert list(small_masked_language_model("mlm").signatures()) == ["serving_default"]


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["mlm_nsp", "mlm", "lm_nsp", "lm"])
def test_kbert_format(tmp_path, objective):
    model = small_masked_language_model(objective, nbest=3)
    again = MaskedLanguageModel.from_pretrained(model.save_pretrained(tmp_path / "saved"))
    assert again.get_config() == model.get_config()
    found, expected = (m.fill(tf.constant(MASKED)) for m in (again, model))
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize("objective", ["mlm_nsp", "mlm", "lm"])
@pytest.mark.parametrize("format", ["huggingface", "tf1"])
def test_other_formats(tmp_path, objective, format):
    model = small_masked_language_model(objective)
    if objective == "lm" and format == "tf1":
        with pytest.raises(ValueError, match="`causal` must be False in Google's format"):
            model.save_pretrained(tmp_path / "saved", format=format)
        return
    folder = model.save_pretrained(tmp_path / "saved", format=format)
    again = MaskedLanguageModel.from_pretrained(folder, max_sequence_length=24, stride=4)
    assert again.objective == objective
    found, expected = (m.fill(tf.constant(MASKED)) for m in (again, model))
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_a_causal_pair_head_has_no_class_of_transformers(tmp_path):
    message = "`architecture` must be a class with the heads .*cls.seq_relationship"
    with pytest.raises(ValueError, match=message):
        small_masked_language_model("lm_nsp").save_pretrained(tmp_path / "s", format="huggingface")


@pytest.mark.parametrize(
    "architecture, heads, objective",
    [
        ("BertForPreTraining", {**TOKEN_HEAD, **PAIR_HEAD}, "mlm_nsp"),
        ("BertForMaskedLM", TOKEN_HEAD, "mlm"),
        ("BertLMHeadModel", TOKEN_HEAD, "lm"),
    ],
)
def test_hugging_face_to_kbert_to_hugging_face(tmp_path, architecture, heads, objective):
    tensors = hf_tensors(prefix="bert.", pooler=objective == "mlm_nsp", heads=heads)
    more = {"is_decoder": True} if objective == "lm" else {}
    source = write_hf(tmp_path / "source", tensors, architectures=[architecture], **more)
    model = MaskedLanguageModel.from_pretrained(source)
    assert model.objective == objective and model.max_sequence_length == 8
    native = model.save_pretrained(tmp_path / "native")
    model = MaskedLanguageModel.from_pretrained(native)
    back = load_file(model.save_pretrained(tmp_path / "back", "huggingface") / "model.safetensors")
    assert back.keys() == tensors.keys()
    assert all(same_bytes(back[name], tensors[name]) for name in tensors)


def test_an_encoder_without_heads_gets_new_ones(tmp_path, caplog):
    source = write_hf(tmp_path / "source", hf_tensors())
    model = MaskedLanguageModel.from_pretrained(source)
    assert model.objective == "mlm_nsp"
    assert "source has no cls.predictions, cls.predictions.transform.dense, " in caplog.text
    assert "cls.seq_relationship: new, random weights are taken." in caplog.text
    caplog.clear()
    # One head is there, the other is not, and that is told.
    source = write_hf(
        tmp_path / "masked",
        hf_tensors(prefix="bert.", heads=TOKEN_HEAD),
        architectures=["BertForMaskedLM"],
    )
    model = MaskedLanguageModel.from_pretrained(source, objective="mlm_nsp")
    assert "masked has no cls.seq_relationship: new, random weights are taken." in caplog.text
    kernel = load_file(source / "model.safetensors")["cls.predictions.transform.dense.weight"].T
    np.testing.assert_array_equal(model.token_head.transform.kernel, kernel)
    # And a head that the objective does not need is passed over.
    tensors = hf_tensors(prefix="bert.", heads={**TOKEN_HEAD, **PAIR_HEAD})
    source = write_hf(tmp_path / "both", tensors, architectures=["BertForPreTraining"])
    assert not MaskedLanguageModel.from_pretrained(source, objective="mlm").learns_pairs


def test_an_encoder_can_be_made_causal(tmp_path):
    source = write_hf(tmp_path / "source", hf_tensors())
    model = MaskedLanguageModel.from_pretrained(source, objective="lm", causal=True)
    assert model.encoder.causal
    with pytest.raises(ValueError, match="Received: objective='lm', causal=False"):
        MaskedLanguageModel.from_pretrained(source, objective="lm")


def test_a_part_of_a_head_is_an_error(tmp_path):
    part = {name: TOKEN_HEAD[name] for name in list(TOKEN_HEAD)[:2]}
    source = write_hf(
        tmp_path / "part",
        hf_tensors(prefix="bert.", heads=part),
        architectures=["BertForMaskedLM"],
    )
    message = r"the head `cls.predictions.transform.dense` must have a bias of shape \(4,\)"
    with pytest.raises(ValueError, match=message):
        MaskedLanguageModel.from_pretrained(source)


def test_what_was_pretrained_is_an_encoder_to_every_task(tmp_path, model):
    folder = model.save_pretrained(tmp_path / "saved")
    classifier = Classifier.from_pretrained(folder, ["a", "b"])
    for name, array in encoder_arrays(model.encoder).items():
        np.testing.assert_array_equal(encoder_arrays(classifier.encoder)[name], array)
    assert not classifier.tokenizer.special_tokens_in_text  # a user's [SEP] is text again
    assert classifier.max_sequence_length == 32  # the classifier's own default
    assert isinstance(Bert.from_pretrained(folder), Bert)


# --- as a Keras model ------------------------------------------------------------------------


def test_it_trains_on_batches_and_is_saved_whole(tmp_path):
    model = small_masked_language_model()
    ids = np.full((8, 6), 9, "int32")
    ids[:, 0], ids[:, 3], ids[:, 5] = VOCABULARY.cls_id, MASK, VOCABULARY.sep_id
    inputs = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids, bool),
        "masked_positions": np.full((8, 1), 3, "int32"),
    }
    targets = {"masked_tokens": np.full((8, 1), 7), "next_sentence": np.zeros(8, "int32")}
    data = tf.data.Dataset.from_tensors((inputs, targets)).repeat(30)
    model.compile(AdamW(3e-3))
    history = model.fit(data, epochs=1, verbose=0).history
    assert history["masked_loss"][0] > 0
    after = model.evaluate(data.take(1), verbose=0, return_dict=True)
    assert after["masked_accuracy"] == 1.0 and after["masked_loss"] < history["masked_loss"][0]
    model.save(tmp_path / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config() and int(again.optimizer.iterations) == 30
    # Without a graph: one call is faster than its tracing.
    found, expected = (one.fill(tf.constant(["a [MASK]"])) for one in (again, model))
    np.testing.assert_array_equal(found["word"], expected["word"])
    np.testing.assert_array_equal(found["score"], expected["score"])
    assert model.predict(inputs)["masked_tokens"].shape == (8, 1, len(VOCABULARY))


def test_texts_to_train_on_are_refused(model):
    model.compile()
    message = "`x` must be batches of `kbert.data.pretraining.dataset`, .* Received: texts"
    for x in (["a film"], "a film", np.array(["a"])):
        with pytest.raises(ValueError, match=message):
            model.fit(x, None)
    with pytest.raises(ValueError, match="`x` must be a list of texts. Received: x='a', a single"):
        model.predict("a")


def test_mixed_precision_and_double():
    plain = small_masked_language_model("mlm")
    expected = plain.fill(tf.constant(["a [MASK]"]))["score"]
    for dtype, room in (("mixed_bfloat16", 0.05), ("float64", 1e-6)):
        model = small_masked_language_model("mlm", dtype=dtype)
        model.set_weights(plain.get_weights())
        found = model.fill(tf.constant(["a [MASK]"]))["score"]
        assert found.dtype == "float32"
        np.testing.assert_allclose(found, expected, atol=room)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"tokenizer": TOKENIZER}, "special_tokens_in_text=True and .*=False, with .MASK."),
        ({"nbest": 0}, r"`nbest` must be in \[1, 66\], the vocabulary. Received: nbest=0"),
        ({"nbest": 67}, "Received: nbest=67"),
        ({"stride": 30}, "`max_sequence_length` must be at least 33"),
        ({"max_sequence_length": 64}, r"must be a whole number in \[1, 32\], the encoder's"),
        ({"objective": "lm"}, "`encoder.causal` must be True"),
    ],
)
def test_wrong_arguments(arguments, message):
    settings = {"tokenizer": special_tokenizer(), "max_sequence_length": 24, "stride": 4}
    with pytest.raises(ValueError, match=message):
        MaskedLanguageModel(small_encoder(), **{**settings, **arguments})


def test_a_vocabulary_without_a_mask():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"]
    tokenizer = WordPiece(Vocabulary(tokens), special_tokens_in_text=True)
    with pytest.raises(ValueError, match="special_tokens_in_text=True, without .MASK."):
        MaskedLanguageModel(Bert(5, 8, 1, 2, 8, 32), tokenizer, stride=4, max_sequence_length=24)
