"""The encoder on frozen states: its numbers by the NumPy reference, and what trains of it."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.checkpoints.read_checkpoint import read_checkpoint, write_checkpoint
from kbert.models.bert import Bert
from kbert.models.encoder import Encoder, encoder_of
from kbert.models.feature_based import FeatureBasedEncoder, reader_weights
from kbert.serving.export.request_checks import InputLimits
from tests.small_bert import CONFIG, INPUTS, MASK, SEGMENTS, expected_outputs, small_bert

REAL = MASK[:3]  # the last row is all padding
FIRST = {name: array[:3] for name, array in INPUTS.items()}
OUTPUTS = expected_outputs(segment_ids=SEGMENTS, padding_mask=MASK)
STATES = [np.asarray(state)[:3] for state in OUTPUTS.hidden_states]


def made(features="last", reader="linear", **arguments):
    given = {"dropout": 0.0, **arguments}
    model = FeatureBasedEncoder(small_bert(), features, reader, **given)
    for i, (name, weight) in enumerate(sorted(reader_weights(model).items())):
        weight.assign(np.random.default_rng(i).normal(0.0, 0.5, weight.shape))
    return model


def four_layers():
    keras.utils.set_random_seed(3)
    return Bert(**{**CONFIG, "num_layers": 4}, initializer_range=0.3)


def test_the_states_of_one_block():
    for features, expected in (("last", STATES[-1]), ("second-to-last", STATES[-2])):
        found = made(features)(FIRST)
        np.testing.assert_allclose(found["sequence_output"][REAL], expected[REAL], atol=2e-5)
        means = [state[real].mean(axis=0) for state, real in zip(expected, REAL)]
        np.testing.assert_allclose(found["pooled_output"], means, atol=2e-5)


def mixed(model):
    """The sum of all states by the weights of a model."""
    weights, scale = np.asarray(model.mix), float(np.asarray(model.scale)[0])
    shares = np.exp(weights) / np.exp(weights).sum()
    assert abs(scale - 1.0) > 0.01 and np.ptp(shares) > 0.01
    return scale * sum(share * state for share, state in zip(shares, STATES))


def test_the_mix_is_weighted_and_scaled():
    model = made("mix")
    expected = mixed(model)
    np.testing.assert_allclose(model(FIRST)["sequence_output"][REAL], expected[REAL], atol=2e-5)
    new = FeatureBasedEncoder(small_bert(), "mix", "linear")(FIRST)["sequence_output"]
    np.testing.assert_allclose(np.asarray(new)[REAL], np.mean(STATES, axis=0)[REAL], atol=2e-5)


def test_the_last_four_blocks():
    encoder = four_layers()
    states = [np.asarray(state) for state in encoder.hidden_states(FIRST)]
    total = FeatureBasedEncoder(encoder, "last4-sum", "linear")
    np.testing.assert_allclose(total(FIRST)["sequence_output"], sum(states[1:]), atol=2e-5)
    beside = FeatureBasedEncoder(encoder, "last4-concat", "linear")
    expected = np.concatenate(states[1:], axis=-1)
    np.testing.assert_allclose(beside(FIRST)["sequence_output"], expected, atol=2e-5)
    assert (total.hidden_dim, beside.hidden_dim) == (12, 48)
    assert (total.frozen_dim, beside.frozen_dim) == (48, 48)


def test_the_bilstm_reads_what_is_frozen():
    model = made("mix", "bilstm", reader_dim=5)
    found = model(FIRST)
    expected = np.asarray(model.bilstm(mixed(model).astype("float32"), REAL))
    assert expected.shape == (3, 6, 10) and model.hidden_dim == 10
    np.testing.assert_allclose(found["sequence_output"][REAL], expected[REAL], atol=1e-5)
    highest = [state[real].max(axis=0) for state, real in zip(expected, REAL)]
    np.testing.assert_allclose(found["pooled_output"], highest, atol=1e-5)
    assert np.abs(expected[REAL]).max() > 0.1


@pytest.mark.parametrize("features", ["last", "mix"])
def test_known_states_replace_the_encoder(features):
    model = made(features, "bilstm")
    states = np.asarray(model.frozen_states(FIRST))
    found = model({**FIRST, "states": states})
    np.testing.assert_allclose(found["pooled_output"], model(FIRST)["pooled_output"], atol=1e-6)
    others = model({**FIRST, "states": states.astype("float16") * 0})
    assert np.abs(np.asarray(others["pooled_output"]) - found["pooled_output"]).max() > 0.01


def test_the_reader_alone_trains():
    model = made("mix", "bilstm", dropout=0.5)
    before = {v.path: v.numpy() for v in model.encoder.weights}

    def trained():
        return {v.path for v in model.trainable_variables}

    assert trained() == {v.path for v in reader_weights(model).values()}
    model.trainable = False
    assert not trained()
    model.trainable = True
    assert trained() == {v.path for v in reader_weights(model).values()}
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(FIRST, training=True)["pooled_output"] ** 2)
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
    assert all(float(tf.reduce_max(tf.abs(g))) > 0 for g in gradients)
    for variable in model.encoder.weights:
        np.testing.assert_array_equal(variable, before[variable.path])


def test_the_encoder_is_without_dropout_in_training():
    encoder = small_bert(dropout=0.5, attention_dropout=0.5)
    model = FeatureBasedEncoder(encoder, "mix", "linear", dropout=0.0)
    one, two = (model(FIRST, training=True)["sequence_output"] for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_it_is_an_encoder():
    model = made("mix", "bilstm", reader_dim=3)
    base = model.encoder
    assert isinstance(model, Encoder) and model.embeddings is base.embeddings
    for name in ("vocabulary_size", "max_sequence_length", "num_layers", "initializer_range"):
        assert getattr(model, name) == getattr(base, name)
    assert (model.token_activation, model.layer_norm_epsilon) == ("gelu", 1e-12)
    for one, two in zip(model.hidden_states(INPUTS), base.hidden_states(INPUTS), strict=True):
        np.testing.assert_array_equal(one, two)
    for one, two in zip(model.attention_scores(INPUTS), base.attention_scores(INPUTS)):
        np.testing.assert_array_equal(one, two)
    with pytest.raises(ValueError, match="here input_ids is `token_ids`"):
        model({"input_ids": INPUTS["token_ids"]})


def test_a_graph_of_any_length_gives_the_same_numbers():
    model = made("last", "bilstm")
    specs = {name: tf.TensorSpec((None, None), array.dtype) for name, array in FIRST.items()}
    graph = tf.function(lambda inputs: model(inputs), input_signature=[specs])
    found = graph({name: tf.constant(array) for name, array in FIRST.items()})
    np.testing.assert_allclose(found["pooled_output"], model(FIRST)["pooled_output"], atol=1e-5)


@pytest.mark.parametrize("features, reader", [("mix", "bilstm"), ("last", "linear")])
def test_files(features, reader, tmp_path):
    model = made(features, reader, num_reader_layers=1, pooling="mean")
    wanted = np.asarray(model(FIRST)["pooled_output"])
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config()
    np.testing.assert_array_equal(again(FIRST)["pooled_output"], wanted)
    folder = write_checkpoint(model.to_checkpoint(), tmp_path / "folder", "kbert")
    read = encoder_of(read_checkpoint(folder))
    assert read.features == features and read.num_reader_layers == 1
    np.testing.assert_array_equal(read(FIRST)["pooled_output"], wanted)
    # Other features of the same encoder have a new reader.
    other = encoder_of(read_checkpoint(folder), features="second-to-last", reader="bilstm")
    assert (other.features, other.num_reader_layers) == ("second-to-last", 2)
    for one, two in zip(other.encoder.weights, model.encoder.weights):
        np.testing.assert_array_equal(one, two)


def test_a_folder_with_another_reader(tmp_path):
    checkpoint = made("mix", "bilstm").to_checkpoint()
    del checkpoint.features["arrays"]["mix"]
    with pytest.raises(ValueError, match="`checkpoint.features` must .* of another shape: .'mix'"):
        encoder_of(checkpoint)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"features": "first"}, r"`features` must be one of \['last', .*Received: 'first'"),
        ({"reader": "gru"}, r"`reader` must be one of \['linear', 'bilstm'\]. Received: 'gru'"),
        ({"pooling": "cls"}, r"`pooling` must be one of \[None, 'mean', 'max'\]. Received: 'cls'"),
        ({"reader_dim": 0}, "`reader_dim` must be at least 1. Received: reader_dim=0"),
        ({"num_reader_layers": 0}, "`num_reader_layers` must be at least 1. Received: num_r"),
        (
            {"features": "last4-sum"},
            "`features` must be of an encoder with 3 blocks or more for 'last4-sum'. "
            "Received: Bert with 2",
        ),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        FeatureBasedEncoder(small_bert(), **{"features": "last", **arguments})


def test_what_it_reads_is_what_its_encoder_reads():
    model = made()
    assert (model.num_segments, model.vocabulary_size) == (2, CONFIG["vocabulary_size"])
    assert InputLimits.of(SimpleNamespace(encoder=model)).num_segments == 2
