"""Masked tokens, next tokens and next sentences, against the NumPy reference."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.models.bert import Bert
from kbert.optimization.adamw import AdamW
from kbert.tasks.pretraining.head import OBJECTIVES, Pretraining
from tests import numpy_reference as reference
from tests.small_bert import ARRAYS, INPUTS, MASK, SEGMENTS, expected_outputs, small_bert
from tests.tasks.check_task import POOLER, check_variables, untrained

TOKEN_HEAD = {
    "transform/kernel": (12, 12),
    "transform/bias": (12,),
    "layer_norm/gamma": (12,),
    "layer_norm/beta": (12,),
    "output/bias": (23,),
}
PAIR_HEAD = {"kernel": (12, 2), "bias": (2,)}
HEAD = reference.random_arrays(TOKEN_HEAD, seed=9)
PAIR = reference.random_arrays(PAIR_HEAD, seed=10)
TABLE = ARRAYS["embeddings/token_embedding/embeddings"]
# Two of a row are padding, one is asked for twice, and the last row is all padding.
POSITIONS = np.array([[1, 3, 0], [5, 2, 2], [3, 0, 0], [0, 0, 0]], "int32")
MASKED = {**INPUTS, "masked_positions": POSITIONS}
TARGETS = np.array([[4, 22, -1], [0, 7, 7], [9, -1, -1], [-1, -1, -1]])
NEXT_TOKENS = np.where(MASK & np.roll(MASK, -1, 1), np.roll(INPUTS["token_ids"], -1, 1), -1)
NEXT_TOKENS[:, -1] = -1
PAIRS = np.array([0, 1, 1, 0])


def made_model(objective="mlm_nsp", **kwargs):
    dtype = {"dtype": kwargs["dtype"]} if "dtype" in kwargs else {}
    causal = objective.startswith("lm")
    encoder = small_bert(dropout=0.0, attention_dropout=0.0, causal=causal, **dtype)
    model = Pretraining(encoder, objective, name="model", **kwargs)
    for variable in model.token_head.weights:
        variable.assign(HEAD[variable.path.split("token_head/")[-1]])
    for variable in model.pair_head.weights if model.learns_pairs else ():
        variable.assign(PAIR[variable.path.split("pair_head/")[-1]])
    return model


def batch_of(objective):
    """Inputs and targets of an objective."""
    left_to_right = objective.startswith("lm")
    targets = {"next_tokens": NEXT_TOKENS} if left_to_right else {"masked_tokens": TARGETS}
    if objective.endswith("_nsp"):
        targets["next_sentence"] = PAIRS
    return (INPUTS if left_to_right else MASKED), targets


def expected_logits(objective):
    """Of tokens (B, P or T, V) and of pairs (B, 2)."""
    causal = objective.startswith("lm")
    outputs = expected_outputs(segment_ids=SEGMENTS, padding_mask=MASK, causal=causal)
    states = outputs.sequence_output
    if not causal:
        states = np.stack([row[places] for row, places in zip(states, POSITIONS)])
    tokens = reference.masked_token_logits(states, HEAD, TABLE)
    return tokens, reference.dense(outputs.pooled_output, PAIR["kernel"], PAIR["bias"])


def expected_metrics(objective):
    """Mean losses and accuracies over all tokens, and over all pairs, that count."""
    inputs, targets = batch_of(objective)
    tokens, pairs = expected_logits(objective)
    truth = targets.get("masked_tokens", targets.get("next_tokens"))
    counts = truth >= 0
    prefix = "next_token" if objective.startswith("lm") else "masked"
    losses = reference.cross_entropy(tokens[counts], truth[counts])
    found = {
        f"{prefix}_loss": losses.mean(),
        f"{prefix}_accuracy": (tokens.argmax(-1) == truth)[counts].mean(),
        "perplexity": np.exp(losses.mean()),
    }
    found["loss"] = found[f"{prefix}_loss"]
    if objective.endswith("_nsp"):
        loss = reference.cross_entropy(pairs, PAIRS).mean()
        right = (pairs.argmax(-1) == PAIRS).mean()
        found |= {"next_sentence_loss": loss, "next_sentence_accuracy": right}
        found["loss"] += loss
    return found


# --- numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_numbers(objective):
    inputs, targets = batch_of(objective)
    outputs = made_model(objective)(inputs)
    assert sorted(outputs) == sorted(targets)
    tokens, pairs = expected_logits(objective)
    found = outputs.pop("next_sentence", None)
    (logits,) = outputs.values()
    assert logits.dtype == "float32"
    np.testing.assert_allclose(logits, tokens, atol=2e-4)
    if found is not None:
        np.testing.assert_allclose(found, pairs, atol=5e-5)


def test_without_positions_every_token_is_predicted():
    model = made_model()
    every = np.asarray(model(INPUTS)["masked_tokens"])
    assert every.shape == (4, 6, 23)
    chosen = np.stack([row[places] for row, places in zip(every, POSITIONS)])
    np.testing.assert_allclose(model(MASKED)["masked_tokens"], chosen, atol=1e-5)


def test_only_gathered_positions_meet_the_vocabulary():
    """The product with the table has P rows a sequence, not T."""
    model = made_model()
    specs = {name: tf.TensorSpec(array.shape, array.dtype) for name, array in MASKED.items()}
    graph = tf.function(model).get_concrete_function(specs).graph
    widths = [op.outputs[0].shape for op in graph.get_operations() if op.type == "MatMul"]
    of_vocabulary = [tuple(shape) for shape in widths if shape[-1] == 23]
    assert of_vocabulary == [(4 * 3, 23)]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_losses_and_metrics(objective):
    inputs, targets = batch_of(objective)
    model = made_model(objective)
    model.compile(run_eagerly=objective != "mlm_nsp")  # one of them in a graph
    found = model.evaluate(inputs, targets, batch_size=4, verbose=0, return_dict=True)
    expected = expected_metrics(objective)
    assert sorted(found) == sorted(expected)
    assert found == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize("objective", ["mlm_nsp", "lm"])
def test_metrics_are_over_the_tokens_of_all_batches(objective):
    inputs, targets = batch_of(objective)
    model = made_model(objective)
    model.compile(run_eagerly=True)
    # Of 2, 3, 1 and no masked tokens; the means of batches would be other numbers.
    found = model.evaluate(inputs, targets, batch_size=1, verbose=0, return_dict=True)
    expected = expected_metrics(objective)
    del expected["loss"], found["loss"]  # which Keras averages over batches
    assert found == pytest.approx(expected, rel=2e-5)


def loss_of(model, inputs, targets):
    outputs = model(inputs, training=True)
    return model.compute_loss(inputs, targets, outputs)


def gradients_of(model, inputs, targets):
    with tf.GradientTape() as tape:
        loss = loss_of(model, inputs, targets)
    found = tape.gradient(loss, [v.value for v in model.trainable_variables])
    return float(loss), [np.asarray(tf.convert_to_tensor(gradient)) for gradient in found]


@pytest.mark.parametrize("objective", ["mlm", "lm"])
def test_two_unequal_halves_make_the_whole(objective):
    """A half weighs as much as it has tokens: 5 and 1 of those that are masked."""
    inputs, targets = batch_of(objective)
    (truth,) = targets.values()
    model = made_model(objective, dtype="float64")
    model.compile()
    loss, gradients = gradients_of(model, inputs, targets)
    total, sums = 0.0, [0.0] * len(gradients)
    for half in (slice(0, 2), slice(2, 4)):
        batch = [{name: array[half] for name, array in part.items()} for part in (inputs, targets)]
        weight = (truth[half] >= 0).sum() / (truth >= 0).sum()
        of_half, parts = gradients_of(model, *batch)
        total += weight * of_half
        sums = [done + weight * part for done, part in zip(sums, parts, strict=True)]
    assert loss == pytest.approx(total, rel=1e-6)  # Keras reports losses in float32
    for whole, added in zip(gradients, sums, strict=True):
        np.testing.assert_allclose(whole, added, rtol=1e-9, atol=1e-12)


# --- as a task -------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_variable_paths_and_shapes(objective):
    model = made_model(objective)
    head = {f"token_head/{path}": shape for path, shape in TOKEN_HEAD.items()}
    if objective.endswith("_nsp"):
        head |= {f"pair_head/{path}": shape for path, shape in PAIR_HEAD.items()}
    check_variables(model, head)
    assert untrained(model) == (set() if objective.endswith("_nsp") else POOLER)
    names = ["", ".transform.dense", ".transform.LayerNorm"]
    expected = [f"cls.predictions{name}" for name in names]
    if objective.endswith("_nsp"):
        expected.append("cls.seq_relationship")
    assert list(model.head_layers()) == expected


def test_the_table_learns_from_both_its_ends():
    """A token that is neither read nor masked still has a gradient: it was not the answer."""
    _, gradients = gradients_of(compiled(made_model()), *batch_of("mlm_nsp"))
    unread = sorted(set(range(23)) - set(INPUTS["token_ids"].ravel()) - set(TARGETS.ravel()))
    assert unread and (np.abs(gradients[0][unread]).max(axis=-1) > 0).all()


def compiled(model):
    model.compile()
    return model


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "bfloat16", "mixed_float16"])
def test_low_precision(policy):
    model = made_model(dtype=policy)
    model.compile()
    outputs = model(MASKED)
    assert {logits.dtype.name for logits in outputs.values()} == {"float32"}
    _, gradients = gradients_of(model, *batch_of("mlm_nsp"))
    assert all(np.isfinite(gradient.astype("float32")).all() for gradient in gradients)
    tokens, _ = expected_logits("mlm_nsp")
    near = 0.05 * np.abs(tokens).max()
    np.testing.assert_allclose(outputs["masked_tokens"], tokens, atol=near)


def test_defaults_are_the_papers():
    model = compiled(made_model())
    optimizer = model.optimizer
    assert isinstance(optimizer, AdamW)
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.decay) == (0.9, 0.999, 0.01)
    # Devlin et al. 2019, A.2: 1e-4 after 10,000 steps, then linearly down to the 1,000,000th.
    rate = optimizer._learning_rate
    expected = {0: 0.0, 5_000: 5e-5, 10_000: 1e-4, 505_000: 5e-5, 1_000_000: 0.0}
    assert {step: float(rate(step)) for step in expected} == pytest.approx(expected, rel=1e-5)


def toy_language(count, seed):
    """Pairs of sentences of one word each, said four times; a sentence follows its own like.

    One word of the eight is masked. Of the seven next words, the one after the first sentence is
    another in half of the pairs, and any of eight.
    """
    draw = np.random.default_rng(seed)
    word = draw.integers(0, 9, (count, 1))
    is_random = draw.integers(0, 2, count)
    other = (word + is_random[:, None] * draw.integers(1, 9, (count, 1))) % 9
    words = np.concatenate([np.tile(word, 4), np.tile(other, 4)], axis=1) + 5
    ids = np.concatenate([np.full((count, 1), 2), words], axis=1).astype("int32")  # [CLS]
    positions = draw.integers(1, 9, (count, 1)).astype("int32")
    masked = ids.copy()
    np.put_along_axis(masked, positions, 4, axis=1)
    inputs = {
        "token_ids": masked,
        "segment_ids": np.tile((np.arange(9) > 4).astype("int32"), (count, 1)),
        "padding_mask": np.ones_like(masked, bool),
        "masked_positions": positions,
    }
    targets = {"masked_tokens": np.take_along_axis(ids, positions, axis=1)}
    return inputs, {**targets, "next_sentence": is_random}, ids


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["mlm_nsp", "lm_nsp"])
def test_it_learns_a_toy_language(objective):
    keras.utils.set_random_seed(3)
    causal = objective == "lm_nsp"
    encoder = Bert(14, 32, 1, 2, 64, 9, dropout=0.0, attention_dropout=0.0, causal=causal)
    model = Pretraining(encoder, objective)
    model.compile(optimizer=AdamW(1e-2))
    inputs, targets, ids = toy_language(1024, seed=1)
    if causal:
        inputs = {**inputs, "token_ids": ids}
        del inputs["masked_positions"]
        following = np.pad(ids[:, 1:], ((0, 0), (0, 1)), constant_values=-1)
        targets = {"next_tokens": following, "next_sentence": targets["next_sentence"]}
    data = tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(64)
    held_out = data.take(4).cache()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Keras warns of variables without gradients
        before = model.evaluate(held_out, verbose=0, return_dict=True)
        model.fit(data.skip(4).cache(), epochs=6, shuffle=False, verbose=0)
    after = model.evaluate(held_out, verbose=0, return_dict=True)
    name = "next_token_accuracy" if causal else "masked_accuracy"
    # From left to right, the first word cannot be known, nor half of the fifth ones: 6.5 of 8 can.
    known = 6.5 / 8 if causal else 1.0
    assert before[name] < 0.3 and known - 0.05 < after[name] < known + 0.05
    assert after["next_sentence_accuracy"] > 0.9
    assert after["perplexity"] < 0.3 * before["perplexity"]


def test_saved_and_loaded_it_trains_on(tmp_path):
    model = made_model()
    model.compile(AdamW(1e-2), run_eagerly=True)
    inputs, targets = batch_of("mlm_nsp")
    model.fit(inputs, targets, epochs=2, verbose=0)
    again = compared(model, tmp_path)
    assert again.objective == "mlm_nsp"
    losses = [m.fit(inputs, targets, epochs=2, verbose=0).history["loss"] for m in (model, again)]
    np.testing.assert_allclose(*losses, rtol=1e-6)


def compared(model, folder):
    """The model read back; of its outputs the tokens are compared."""
    model.save(folder / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = keras.models.load_model(folder / "model.keras")
    assert again.get_config() == model.get_config()
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations) > 0
    for name, logits in model(MASKED).items():
        np.testing.assert_array_equal(again(MASKED)[name], logits)
    return again


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"`objective` must be one of \['mlm_nsp', .*'cloze'"):
        Pretraining(small_bert(), "cloze")
    message = "`encoder.causal` must be True for .* Received: objective='lm', causal=False"
    with pytest.raises(ValueError, match=message):
        Pretraining(small_bert(), "lm")
    with pytest.raises(ValueError, match="Received: objective='mlm', causal=True"):
        Pretraining(small_bert(causal=True), "mlm")
