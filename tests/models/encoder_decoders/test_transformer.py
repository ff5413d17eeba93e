"""The Transformer against the NumPy reference, in teacher forcing and step by step."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.models.encoder_decoders.transformer import Transformer
from kbert.models.weights import assign_arrays, weight_name
from tests import translation_reference as reference
from tests.check_layer import check_layer

V, D, INNER, N, ENCODER, DECODER = 17, 12, 20, 3, 2, 1
SIZES = {
    "vocabulary_size": V,
    "hidden_dim": D,
    "num_encoder_layers": ENCODER,
    "num_decoder_layers": DECODER,
    "num_heads": N,
    "intermediate_dim": INNER,
    "max_sequence_length": 9,
    "layer_norm_epsilon": 1e-6,
}
DRAW = np.random.default_rng(3)
SOURCE = DRAW.integers(0, V, (3, 6)).astype("int32")
TARGET = DRAW.integers(0, V, (3, 5)).astype("int32")
# None is padding; two are; all are.
MASK = np.array([[1] * 6, [1] * 4 + [0] * 2, [0] * 6], bool)
INPUTS = {"source_token_ids": SOURCE, "source_padding_mask": MASK, "target_token_ids": TARGET}
VARIANTS = {
    "post": {},
    "pre": {"norm": "pre"},
    "halves": {"positions": "sinusoidal_halves"},
    "learned": {"positions": "learned", "activation": "gelu"},
    "target": {"tied": "target", "source_vocabulary_size": 19},
    "none": {"tied": "none", "output_bias": True},
    "bias": {"output_bias": True, "norm": "pre"},
}


def arrays_of(options):
    shapes = reference.translation_array_shapes(
        options.get("source_vocabulary_size", V),
        D,
        INNER,
        ENCODER,
        DECODER,
        V if options.get("tied", "all") != "all" else None,
        options.get("tied", "all") != "none",
        options.get("output_bias", False),
        options.get("norm", "post"),
    )
    return reference.random_translation_arrays(shapes, seed=4)


def made(**options):
    """A model with random arrays, the arrays, and the tables of learned positions."""
    model = Transformer(**SIZES, **options)
    arrays = arrays_of(options)
    tables = (None, None)
    weights = dict(arrays)
    if options.get("positions") == "learned":
        tables = tuple(DRAW.normal(size=(9, D)).astype("float32") for _ in range(2))
        names = ("source_positions/embeddings", "target_positions/embeddings")
        weights |= dict(zip(names, tables))
    assign_arrays(model, weights)
    return model, arrays, tables


@functools.cache
def unchanged(name):
    """What `made` gives of a variant, for tests that change nothing."""
    return made(**VARIANTS[name])


def expected(arrays, tables, **options):
    kinds = {"sinusoidal": "interleaved", "sinusoidal_halves": "halves", "learned": "learned"}
    architecture = reference.Architecture(
        N,
        ENCODER,
        DECODER,
        options.get("norm", "post"),
        options.get("activation", "relu"),
        1e-6,
        kinds[options.get("positions", "sinusoidal")],
    )
    return reference.transformer(
        arrays, SOURCE, TARGET, architecture, MASK, learned_positions=tables
    )


@pytest.mark.parametrize("name", VARIANTS)
def test_logits(name):
    model, arrays, tables = unchanged(name)
    wanted = expected(arrays, tables, **VARIANTS[name])
    np.testing.assert_allclose(model(INPUTS), wanted, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_what_encoder_and_decoder_attend_to(norm):
    """Two decoder blocks, so that the second reads what the first has made."""
    shapes = reference.translation_array_shapes(V, D, INNER, ENCODER, 2, norm=norm)
    arrays = reference.random_translation_arrays(shapes, seed=14)
    model = Transformer(**{**SIZES, "num_decoder_layers": 2}, norm=norm)
    assign_arrays(model, arrays)
    architecture = reference.Architecture(N, ENCODER, 2, norm, "relu", 1e-6)
    own = reference.encoder_scores(arrays, SOURCE, architecture, MASK)
    memory = reference.encode(arrays, SOURCE, architecture, MASK)
    to_memory = reference.memory_scores(arrays, TARGET, memory, architecture, MASK)
    found = model.attention_scores(INPUTS)
    assert len(found) == ENCODER
    for one, wanted in zip(found, own):
        np.testing.assert_allclose(one, wanted, atol=1e-5)
    found = model.memory_scores(TARGET, model.encode(INPUTS))
    assert [tuple(one.shape) for one in found] == [(3, N, 5, 6)] * 2
    for one, wanted in zip(found, to_memory):
        np.testing.assert_allclose(one, wanted, atol=1e-5)
        assert not np.asarray(one)[1, ..., 4:].any()  # padding


def test_ritual_and_variable_paths():
    shapes = reference.translation_array_shapes(V, D, INNER, ENCODER, DECODER)
    check_layer(Transformer, SIZES, INPUTS, (3, 5, V), shapes, output_dtype="float32")


@pytest.mark.parametrize("name", ["post", "pre", "learned", "bias"])
@pytest.mark.parametrize("capacity", [None, 5])
@pytest.mark.parametrize("slots", [1, 3])
def test_steps_equal_teacher_forcing(name, capacity, slots):
    """Each hypothesis walks its own way through the slots; all say the same target."""
    model, _, _ = unchanged(name)
    wanted = np.asarray(model(INPUTS))
    state = model.start_decoding(model.encode(INPUTS), slots, capacity)
    draw = np.random.default_rng(6)
    path = np.zeros((3, 1, 5), "int32")
    for time in range(5):
        if time:
            # New hypotheses come from any of the old ones, and stand in a slot of their own.
            parents = draw.integers(0, path.shape[1], (3, slots))
            path = np.take_along_axis(path, parents[:, :, None], axis=1)
            path[:, :, time] = np.arange(slots)
        count = path.shape[1]
        tokens = np.repeat(TARGET[:, time : time + 1], count, axis=1)
        logits, state = model.decode_step(
            tf.constant(tokens), tf.constant(time), tf.constant(path), state
        )
        assert logits.shape == (3, count, V)
        for one in range(count):
            np.testing.assert_allclose(logits[:, one], wanted[:, time], atol=1e-5)


def test_a_hypothesis_does_not_see_the_others():
    model, _, _ = unchanged("post")
    memory = model.encode(INPUTS)
    other = (TARGET + 1) % V
    both = [np.asarray(model.decode(target, memory)) for target in (TARGET, other)]
    state = model.start_decoding(memory, 2)
    # The start is shared; from then on hypothesis 0 says TARGET, 1 the other.
    first = {"source_token_ids": SOURCE, "source_padding_mask": MASK}
    other[:, 0] = TARGET[:, 0]
    both[1] = np.asarray(model({**first, "target_token_ids": other}))
    path = np.zeros((3, 1, 5), "int32")
    _, state = model.decode_step(TARGET[:, :1], 0, path, state)
    path = np.zeros((3, 2, 5), "int32")
    for time in range(1, 5):
        path[:, :, time] = [0, 1]
        tokens = np.stack([TARGET[:, time], other[:, time]], axis=1)
        logits, state = model.decode_step(tokens, time, path, state)
        for one in range(2):
            np.testing.assert_allclose(logits[:, one], both[one][:, time], atol=1e-5)


def test_the_future_is_not_seen():
    model, _, _ = unchanged("pre")
    changed = TARGET.copy()
    changed[:, 3:] = (changed[:, 3:] + 5) % V
    before = np.asarray(model(INPUTS))
    after = np.asarray(model({**INPUTS, "target_token_ids": changed}))
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert abs(before[:, 3:] - after[:, 3:]).max() > 1e-3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "mixed_bfloat16"])
def test_a_source_of_padding_alone_gives_numbers(dtype):
    model = Transformer(**SIZES, dtype=dtype)
    assert np.isfinite(np.asarray(model(INPUTS))).all()


@pytest.mark.slow
def test_counts_of_the_published_sizes():
    # Vaswani et al. 2017 with 37,000 tied tokens and no bias of the output; by arithmetic.
    for size, count in (("base", 63_082_496), ("big", 214_245_376)):
        model = Transformer.from_size(size, 37_000)
        assert sum(int(np.prod(v.shape)) for v in model.trainable_variables) == count


def test_the_embeddings_are_shared():
    model = Transformer(**SIZES)
    names = [weight_name(model, v) for v in model.weights]
    assert names.count("source_embedding/embeddings") == 1
    assert not any(name.startswith(("target_embedding", "output")) for name in names)


def test_dropout_is_drawn_anew_in_training_only():
    keras.utils.set_random_seed(1)
    model = Transformer(**SIZES, dropout=0.3)
    first, second = (np.asarray(model(INPUTS, training=True)) for _ in range(2))
    assert abs(first - second).max() > 1e-3
    np.testing.assert_array_equal(model(INPUTS), model(INPUTS))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"positions": "waves"}, "`positions` must be one of .*Received: positions='waves'"),
        ({"tied": "some"}, "`tied` must be one of .*Received: tied='some'"),
        ({"source_vocabulary_size": 5}, '`tied` must not be "all" for vocabularies of different'),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        Transformer(**SIZES, **options)


def test_an_unknown_size():
    with pytest.raises(ValueError, match="`size` must be one of .*Received: size='huge'"):
        Transformer.from_size("huge", 10)
