"""The BERT-fused Transformer against the NumPy reference, and its warm start."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.models.bert import Bert
from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
from kbert.models.encoder_decoders.transformer import Transformer
from kbert.models.weights import assign_arrays, encoder_arrays
from tests import translation_reference as reference
from tests.models.encoder_decoders.test_transformer import (
    DECODER,
    ENCODER,
    INNER,
    INPUTS,
    MASK,
    SIZES,
    SOURCE,
    TARGET,
    D,
    N,
    V,
)

M, L = 8, 7
DRAW = np.random.default_rng(8)
BERT_IDS = DRAW.integers(0, 11, (3, L)).astype("int32")
BERT_MASK = np.array([[1] * 7, [1] * 3 + [0] * 4, [0] * 7], bool)
STATES = DRAW.normal(size=(3, L, M)).astype("float32")
WITH_STATES = {**INPUTS, "bert_states": STATES, "bert_padding_mask": BERT_MASK}
WITH_IDS = {**INPUTS, "bert_token_ids": BERT_IDS, "bert_padding_mask": BERT_MASK}


def small_bert(seed=1, dropout=0.0):
    keras.utils.set_random_seed(seed)
    return Bert(11, M, 1, 2, 16, max_sequence_length=9, dropout=dropout, name="bert")


def fused(**options):
    bert = options.pop("bert", None) or small_bert()
    return BertFusedTransformer(**SIZES, bert=bert, **options)


def with_arrays(norm="post"):
    """A model and its arrays, those of BERT apart."""
    shapes = reference.translation_array_shapes(
        V, D, INNER, ENCODER, DECODER, norm=norm, bert_dim=M
    )
    arrays = reference.random_translation_arrays(shapes, seed=5)
    model = fused(norm=norm)
    own = {k: v for k, v in encoder_arrays(model).items() if k.startswith("bert/")}
    assign_arrays(model, {**arrays, **own})
    return model, arrays


def expected(arrays, states, norm, weights):
    architecture = reference.Architecture(N, ENCODER, DECODER, norm, "relu", 1e-6)
    bert = reference.BertMemory(states, BERT_MASK, weights)
    return reference.transformer(arrays, SOURCE, TARGET, architecture, MASK, bert=bert)


# One that no test changes.
unchanged = functools.cache(with_arrays)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_logits(norm):
    model, arrays = with_arrays(norm)
    for weights in (None, (1.0, 0.0), (0.0, 1.0), (0.25, 0.5)):
        model.force_branches(weights)
        wanted = expected(arrays, STATES, norm, weights or (0.5, 0.5))
        np.testing.assert_allclose(model(WITH_STATES), wanted, atol=1e-5, err_msg=f"{weights}")


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_scores_are_those_of_the_own_attentions(norm):
    model, arrays = unchanged(norm)
    architecture = reference.Architecture(N, ENCODER, DECODER, norm, "relu", 1e-6)
    bert = reference.BertMemory(STATES, BERT_MASK)
    memory = reference.encode(arrays, SOURCE, architecture, MASK, bert)
    own = reference.encoder_scores(arrays, SOURCE, architecture, MASK, bert)
    to_memory = reference.memory_scores(arrays, TARGET, memory, architecture, MASK, bert)
    found = model.attention_scores(WITH_STATES)
    for one, wanted in zip(found, own, strict=True):
        np.testing.assert_allclose(one, wanted, atol=1e-5)
    found = model.memory_scores(TARGET, model.encode(WITH_STATES))
    for one, wanted in zip(found, to_memory, strict=True):
        np.testing.assert_allclose(one, wanted, atol=1e-5)


def test_bert_reads_its_own_tokens_with_its_own_mask():
    model, arrays = unchanged("post")
    states = model.bert({"token_ids": BERT_IDS, "padding_mask": BERT_MASK})["sequence_output"]
    wanted = expected(arrays, np.asarray(states), "post", (0.5, 0.5))
    np.testing.assert_allclose(model(WITH_IDS), wanted, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_steps_equal_teacher_forcing(norm):
    model, _ = unchanged(norm)
    wanted = np.asarray(model(WITH_STATES))
    state = model.start_decoding(model.encode(WITH_STATES), 2)
    for time in range(5):
        count = 2 if time else 1
        slots = np.zeros((3, count, 5), "int32")
        slots[:, :, time] = np.arange(count)
        tokens = np.repeat(TARGET[:, time : time + 1], count, axis=1)
        logits, state = model.decode_step(tf.constant(tokens), time, tf.constant(slots), state)
        for one in range(count):
            np.testing.assert_allclose(logits[:, one], wanted[:, time], atol=1e-5)


def test_a_warm_start_with_only_own_branches_is_the_model_without_bert():
    vanilla, model = Transformer(**SIZES, name="vanilla"), fused()
    report = model.warm_start_from(vanilla)
    assert report.loaded == sorted(encoder_arrays(vanilla))
    blocks = [f"encoder_block_{i}" for i in range(ENCODER)]
    blocks += [f"decoder_block_{i}" for i in range(DECODER)]
    assert report.new == sorted(
        f"{block}/bert_attention/{part}/{kind}"
        for block in blocks
        for part in ("query", "key_value", "output")
        for kind in ("kernel", "bias")
    )
    assert not report.missing and not report.mismatched
    model.force_branches((1.0, 0.0))
    np.testing.assert_array_equal(model(WITH_IDS), vanilla(INPUTS))
    memory = model.encode(WITH_IDS)
    state = model.start_decoding(memory)
    slots = np.zeros((3, 1, 5), "int32")
    logits, _ = model.decode_step(TARGET[:, :1], 0, slots, state)
    np.testing.assert_allclose(logits[:, 0], np.asarray(vanilla(INPUTS))[:, 0], atol=1e-5)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_decoder_layers": 2}, "Without a place here: .'decoder_block_1/cross_attention"),
        ({"num_encoder_layers": 1}, "not in it: .'encoder_block_1/attention/output/bias'"),
        ({"intermediate_dim": 24}, r"feed_forward/intermediate/bias \(expected \(20,\), found"),
        ({"tied": "target"}, "Without a place here: .'target_embedding/embeddings'"),
        # The same weights, which mean something else.
        (
            {"num_heads": 1, "layer_norm_epsilon": 0.01},
            r"must compute as this .*num_heads=1 \(here 3\), layer_norm_epsilon=0.01 \(here 1e-0",
        ),
        ({"activation": "gelu"}, "activation='gelu'"),
        ({"positions": "sinusoidal_halves"}, "positions='sinusoidal_halves'"),
    ],
)
def test_a_warm_start_that_does_not_fit_changes_nothing(options, message):
    model, _ = unchanged("post")
    before = encoder_arrays(model)
    with pytest.raises(ValueError, match=message):
        model.warm_start_from(Transformer(**{**SIZES, **options}))
    after = encoder_arrays(model)
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_warm_start_beside_a_bert_of_another_name():
    model = fused(bert=Bert(11, M, 1, 2, 16, max_sequence_length=9, name="other"))
    assert len(model.warm_start_from(Transformer(**SIZES)).loaded) > 9


def test_a_warm_start_from_a_fused_model_is_refused():
    with pytest.raises(ValueError, match="attentions to BERT in it: .'encoder_block_0/bert_att"):
        fused().warm_start_from(fused())


def test_a_frozen_bert_gets_no_gradient_and_no_dropout():
    model = fused(bert=small_bert(dropout=0.5))
    own = {v.path for v in model.bert.weights}
    trained = {v.path for v in model.trainable_variables}
    assert own and trained and not own & trained
    model.trainable = False
    assert not any(v.trainable for v in model.variables)
    model.trainable = True
    assert {v.path for v in model.trainable_variables} == trained
    found = [np.asarray(model.bert_states(WITH_IDS, training=True)) for _ in range(2)]
    np.testing.assert_array_equal(*found)


def test_a_bert_that_learns():
    model = fused(bert=small_bert(dropout=0.5), train_bert=True)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(WITH_IDS, training=True)))
    kernel = model.bert.blocks[0].attention.qkv.kernel
    assert any(v is kernel for v in model.trainable_variables)
    gradient = tape.gradient(loss, kernel.value)
    assert float(tf.reduce_max(tf.abs(gradient))) > 0


def test_a_bert_that_learns_takes_no_states_from_before():
    model = fused(train_bert=True)
    message = "`bert_states` must be left out where BERT learns.*Received: bert_states in training"
    with pytest.raises(ValueError, match=message):
        model(WITH_STATES, training=True)
    assert model(WITH_STATES).shape == (*TARGET.shape, V)  # as they are now


def test_drop_nets_are_drawn_in_the_graph_for_each_block():
    model = fused(dropout=0.0)
    traced = tf.function(lambda: model(WITH_STATES, training=True))
    found = {float(tf.reduce_sum(tf.abs(traced()))) for _ in range(12)}
    # Three blocks of two outcomes each: many different sums, and a Python draw would give one.
    assert len(found) > 3


def test_the_count_of_new_weights():
    # Each block has one. At width 512 and BERT's 768 its weights are
    # 512 513 + 2 512 769 + 512 513.
    bert = Bert(20, 768, 1, 12, 4)
    sizes = (30, 512, 1, 1, 8, 2048)
    model = BertFusedTransformer(*sizes, bert=bert)
    vanilla = Transformer(*sizes)
    counts = [sum(int(np.prod(v.shape)) for v in m.trainable_variables) for m in (model, vanilla)]
    assert counts[0] - counts[1] == 2 * 1_312_768 == 2_625_536


def test_config_round_trip(tmp_path):
    model = fused(drop_net=0.4)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.drop_net == 0.4 and again.train_bert is False
    np.testing.assert_allclose(again(WITH_IDS), model(WITH_IDS), atol=1e-6)


def test_weights_of_the_branches_are_saved(tmp_path):
    model = fused()
    free = np.asarray(model(WITH_IDS))
    model.force_branches((0.9, 0.1))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.branch_weights == (0.9, 0.1)
    np.testing.assert_allclose(again(WITH_IDS), model(WITH_IDS), atol=1e-6)
    assert np.abs(np.asarray(again(WITH_IDS)) - free).max() > 1e-3
    again.force_branches(None)
    np.testing.assert_allclose(again(WITH_IDS), free, atol=1e-6)
