"""Raw strings to translations: the graph against one row at a time, and the export.

To trace a search takes a second, so the tests share models and graphs; a test that changes a model
makes its own.
"""

import functools
import math
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.models.bert import Bert
from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
from kbert.models.encoder_decoders.transformer import Transformer
from kbert.serving.export.export import export
from kbert.serving.loading.exported import load_export
from kbert.tasks.translation.batching import SourceChunks
from kbert.tasks.translation.model import Translator
from tests.small_pipelines import TOKENIZER
from tests.small_translator import graph_of, small_subwords

TEXTS = ["the old man", "", "two women drink coffee near the red river in the garden", "a ball"]


def made(fused=False, **options):
    keras.utils.set_random_seed(3)
    subwords = small_subwords()
    sizes = (len(subwords), 16, 1, 1, 2, 32, 40)
    tokenizer = None
    if fused:
        bert = Bert(len(TOKENIZER.vocabulary), 8, 1, 2, 16, max_sequence_length=20)
        transformer = BertFusedTransformer(*sizes, bert=bert)
        tokenizer = TOKENIZER
    else:
        transformer = Transformer(*sizes)
    # Random weights say much the same everywhere; larger ones have opinions.
    for variable in transformer.trainable_variables:
        if variable.path.endswith("kernel"):
            variable.assign(variable * 4.0)
    options = {"beam_size": 3, "nbest": 2, "length_extra": 4, **options}
    return Translator(transformer, subwords, subwords, tokenizer, **options)


@functools.cache
def shared(fused=False, beam=3):
    """A model that no test changes."""
    return made(fused, beam_size=beam, nbest=min(beam, 2))


def translated(model, texts):
    found = graph_of(model)(tf.constant(texts, tf.string))
    return {key: value.numpy() for key, value in found.items()}


@pytest.fixture
def without_graphs():
    """To trace a search takes longer than a step of it."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@functools.cache
def search_of(model):
    """The search for texts of one size, with all shapes known."""
    text = tf.constant(TEXTS)
    inputs, lengths, _ = model.source_inputs(text)
    inputs |= SourceChunks(model, text).beside
    graph = tf.function(model.search, autograph=False).get_concrete_function(inputs, lengths)
    assert graph.inputs[0].shape.is_fully_defined()
    return graph(inputs, lengths)


@pytest.mark.parametrize(
    "fused, beam",
    [
        pytest.param(False, 1, marks=pytest.mark.slow),
        pytest.param(False, 3, marks=pytest.mark.slow),
        (True, 3),
    ],
)
def test_a_row_does_not_depend_on_the_others(fused, beam):
    model = shared(fused, beam)
    together = translated(model, TEXTS)
    for row, text in enumerate(TEXTS):
        alone = translated(model, [text])
        assert together["translation"][row] == alone["translation"][0]
        # A sum of up to forty float32 numbers, about -90: its spacing alone is 7.6e-6.
        np.testing.assert_allclose(together["score"][row], alone["score"][0], rtol=1e-6, atol=1e-5)
    assert len(set(together["translation"])) > 2


def test_what_comes_out():
    model = shared()
    found = translated(model, TEXTS)
    assert found["nbest_translation"].shape == found["nbest_score"].shape == (4, 2)
    np.testing.assert_array_equal(found["translation"], found["nbest_translation"][:, 0])
    assert (found["nbest_score"][:, 0] >= found["nbest_score"][:, 1]).all()
    assert (found["translation"][1], found["score"][1]) == (b"", 0.0)
    assert not found["truncated"].any()
    assert model.predict(TEXTS) == [text.decode() for text in found["translation"]]


def test_the_score_is_that_of_the_translation():
    """The mean log-probability of its pieces and the end, with the target known."""
    model = shared()
    inputs, _, _ = model.source_inputs(tf.constant(TEXTS))
    found = search_of(model)
    for row in (0, 2, 3):
        count = int(found.lengths[row, 0])
        pieces = found.token_ids[row : row + 1, 0, :count]
        start = tf.fill((1, 1), model.target_subwords.start_id)
        target = tf.concat([start, pieces[:, :-1]], axis=1)
        of_row = {name: value[row : row + 1] for name, value in inputs.items()}
        logits = model.transformer({**of_row, "target_token_ids": target})
        logs = tf.nn.log_softmax(logits)[0].numpy()
        expected = logs[np.arange(count), pieces[0].numpy()].mean()
        np.testing.assert_allclose(found.scores[row, 0], expected, atol=1e-5)


@pytest.mark.parametrize(
    "fused, beam",
    [
        pytest.param(False, 1, marks=pytest.mark.slow),
        (False, 3),
        pytest.param(True, 3, marks=pytest.mark.slow),
    ],
)
def test_the_search_in_a_graph_of_fixed_shapes(fused, beam):
    model = shared(fused, beam)
    found, expected = search_of(model), translated(model, TEXTS)
    texts = model.target_subwords.detokenize(found.token_ids, found.lengths)
    said = [row for row, text in enumerate(TEXTS) if text]  # an empty text is not translated
    np.testing.assert_array_equal(
        texts.numpy()[said], expected["nbest_translation"][said]
    )
    # The spacing of float32 where sums of forty logarithms are, about -90, is 7.6e-6.
    np.testing.assert_allclose(
        found.scores.numpy()[said], expected["nbest_score"][said], rtol=1e-6, atol=1e-5
    )


@pytest.mark.parametrize(
    "fused, function", [(False, "align"), pytest.param(True, "translate", marks=pytest.mark.slow)]
)
def test_chunks_are_independent_of_each_other(fused, function):
    """A loop that reads variables has effects: each of its turns would wait for the one before."""
    operations = graph_of(shared(fused), function).get_concrete_function().graph.get_operations()
    loops = [op.type for op in operations if op.type.endswith("While")]
    assert loops == ["StatelessWhile"]


@pytest.mark.slow
@pytest.mark.parametrize("fused, function", [(False, "align"), (True, "translate")])
def test_a_graph_has_the_weights_of_the_moment_when_it_runs(fused, function):
    model = made(fused)
    graph = graph_of(model, function)
    text = tf.constant(TEXTS[:1])
    before = graph(text)["score"].numpy()
    for variable in model.transformer.trainable_variables:
        variable.assign(variable * 0.5)
    after = graph(text)["score"].numpy()
    assert abs(before - after) > 1e-3
    np.testing.assert_allclose(getattr(model, function)(text)["score"], after, atol=1e-5)


def test_no_rows_and_a_long_text():
    assert translated(shared(), [])["nbest_translation"].shape == (0, 2)
    found = translated(shared(), [" ".join(["garden"] * 50), "a ball"])
    assert found["truncated"].tolist() == [True, False]


def test_texts_that_nobody_should_send():
    """Each is answered, and as if it had come alone."""
    model = shared()
    strange = [b"the \xff\xfe man \xc3", "החתול ישן", "a\0b", "   "]
    texts = [*strange, "a" * 100_000, "man " * 25_000]
    found = model.answers([*texts, "the old man"])
    assert [row["truncated"] for row in found] == [False] * 4 + [True] * 2 + [False]
    assert (found[3]["translation"], found[3]["score"]) == ("", 0.0)  # nothing is left of blanks
    for text, row in zip(texts, found):
        (alone,) = model.answers([text])
        assert alone["translation"] == row["translation"]
        assert alone["score"] == pytest.approx(row["score"], abs=1e-5)
    assert model.predict([]) == model.translations([]) == []


def test_megabytes_without_a_piece():
    """The op takes a quarter of an hour for what is beyond the beginning; nothing of it is read."""
    model = shared()
    texts = ["the old man " + "\u4e2d\u0302" * 3_000_000, "the old man " + "\u4e2d\u0302" * 9_000]
    far, near = model.answers(texts)
    assert far["truncated"] and near["truncated"]
    assert far["translation"] == near["translation"] and far["score"] == near["score"]


@pytest.mark.slow
def test_five_thousand_sentences_that_repeat():
    texts = ["the old man", "", "a ball", "der rote Ball", "the river"]
    found = translated(shared(beam=1), texts * 1000)
    for row, text in enumerate(texts):
        alone = translated(shared(beam=1), [text])
        assert set(found["translation"][row::5]) == {alone["translation"][0]}
        np.testing.assert_allclose(found["score"][row::5], alone["score"][0], rtol=1e-6, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("fused", [False, True])
def test_the_export_translates_alike(fused, tmp_path):
    model = shared(fused, 3 if fused else 1)
    exported = load_export(export(model, tmp_path))
    found = exported.run({"text": TEXTS})
    expected = translated(model, TEXTS)
    for key in ("translation", "nbest_translation", "truncated"):
        np.testing.assert_array_equal(found[key], expected[key])
    np.testing.assert_allclose(found["nbest_score"], expected["nbest_score"], atol=1e-5)


@pytest.mark.slow
def test_a_life_in_a_file(tmp_path):
    model = shared(fused=True)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    assert again.predict(TEXTS) == model.predict(TEXTS)
    with zipfile.ZipFile(tmp_path / "model.keras") as file:
        assert file.read("config.json").count(b"kbert>Subword") == 1  # both sides share it


def test_a_configuration_that_holds_subwords_twice_makes_one_model():
    """As files of older versions have it."""
    config = made().get_config()
    twice = {**config, "target_subwords": config["source_subwords"]}
    assert Translator.from_config(twice).get_config() == config


@pytest.mark.parametrize(
    "options, message",
    [
        ({"nbest": 4}, r"`nbest` must be in \[1, beam_size=3\]. Received: nbest=4"),
        ({"length_penalty": "none"}, "`length_penalty` must be one of .*Received: 'none'"),
        ({"alpha": "x"}, "`alpha` must be a finite number. Received: alpha='x'"),
        ({"beam_size": 0}, "`beam_size` must be at least 1. Received: beam_size=0"),
        ({"length_ratio": -1.0}, "`length_ratio` must be a finite number.*Received: .*-1.0"),
        ({"length_ratio": math.inf}, "`length_ratio` must be a finite number.*Received: .*inf"),
        ({"length_extra": -1}, "`length_extra` must be a finite number, at least 0"),
        ({"patience": 0.0}, "`patience` must be positive or None. Received: patience=0.0"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        made(**options)


@pytest.mark.slow
def test_a_limit_beyond_all_numbers_is_that_of_the_model():
    ratios = {"beam_size": 1, "nbest": 1}
    far, own = (made(length_ratio=ratio, **ratios).answers(TEXTS) for ratio in (1e9, 40.0))
    assert far == own and all(one["translation"] for text, one in zip(TEXTS, own) if text)


def test_a_translation_has_a_piece_at_least(without_graphs):
    (found,) = made(length_ratio=0.0, length_extra=0).answers(["a ball"])
    # Only the end fits; there is no second best.
    assert found["translation"] == "" and math.isfinite(found["score"])
    assert found["nbest"] == [{"translation": "", "score": found["score"]}]


def test_greedy_scores_are_divided_like_those_of_a_beam():
    model = made(beam_size=1, nbest=1, alpha=0.7, length_ratio=0.2)
    subwords = model.target_subwords
    found = translated(model, TEXTS)
    # A few steps without a graph, which takes longer to trace.
    searched = model.search(*model.source_inputs(tf.constant(TEXTS))[:2])
    of_search = searched.token_ids[:, 0].numpy().tolist()
    for text, said, score, ids in zip(TEXTS, found["translation"], found["score"], of_search):
        inputs, _, _ = model.source_inputs(tf.constant([text]))
        ids = ids[: ids.index(subwords.end_id) + 1]
        start = [subwords.start_id, *ids[:-1]]
        logits = model.transformer({**inputs, "target_token_ids": np.array([start], "int32")})
        logs = tf.nn.log_softmax(logits[0]).numpy()[np.arange(len(ids)), ids].sum()
        # An empty text is not translated.
        assert score == pytest.approx(logs / len(ids) ** 0.7 if text else 0.0, rel=1e-4)
        assert said.decode() == (subwords.detokenize([ids])[0].numpy().decode() if text else "")


def test_vocabularies_and_tokenizers_must_fit():
    subwords = small_subwords()
    small = Transformer(5, 16, 1, 1, 2, 32)
    with pytest.raises(ValueError, match="`source_subwords` must have as many pieces .*, 5. Rec"):
        Translator(small, subwords, subwords)
    good = Transformer(len(subwords), 16, 1, 1, 2, 32)
    with pytest.raises(ValueError, match="`bert_tokenizer` must be given for a fused transformer"):
        Translator(good, subwords, subwords, TOKENIZER)
