"""A frozen BERT's states on disk: the same as in the graph, and the same after a kill."""

import signal
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.features.cache import cached_features
from kbert.models.bert import Bert
from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
from kbert.pipelines.frozen_states import (
    encoder_fingerprint,
    frozen_encoder,
    frozen_states,
    with_policy,
)

SIZES = {
    "vocabulary_size": 29,
    "hidden_dim": 8,
    "num_layers": 2,
    "num_heads": 2,
    "intermediate_dim": 16,
    "max_sequence_length": 12,
}
LENGTHS = [5, 11, 2, 7, 5, 3, 9, 6]


def small_bert(seed=1, kind=Bert, **options):
    keras.utils.set_random_seed(seed)
    bert = kind(**{**SIZES, **options})
    for variable in bert.weights:  # so that no weight is 0 or 1, and all have a part
        if "seed_generator" not in variable.path:
            variable.assign(variable + 0.3 * keras.random.normal(variable.shape))
    return bert


def small_texts(lengths=tuple(LENGTHS)):
    lengths = np.array(lengths, "int32")
    ids = np.random.default_rng(2).integers(1, 29, lengths.sum()).astype("int32")
    starts = np.cumsum(lengths, dtype="int64") - lengths
    return PackedExamples(ids, np.zeros_like(ids), starts, lengths, np.zeros(len(lengths), bool))


def quiet(done, total):
    """Draws no bar."""


def fused_and_inputs():
    """A fused model with logits of some size, and the inputs of a batch but for BERT's side."""
    bert = small_bert()
    keras.utils.set_random_seed(4)
    sizes = {"vocabulary_size": 17, "hidden_dim": 12, "num_heads": 3, "intermediate_dim": 20}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 1, "max_sequence_length": 9}
    model = BertFusedTransformer(**sizes, **layers, bert=bert)
    for variable in model.trainable_variables:
        if variable.path.endswith("kernel"):
            variable.assign(variable * 2.0)
    draw = np.random.default_rng(5)
    inputs = {
        "source_token_ids": draw.integers(0, 17, (len(LENGTHS), 6)).astype("int32"),
        "source_padding_mask": np.ones((len(LENGTHS), 6), bool),
        "target_token_ids": draw.integers(0, 17, (len(LENGTHS), 5)).astype("int32"),
    }
    return model, inputs


def padded(packed):
    """Token ids (n, T) and which are real, by a loop."""
    ids = np.zeros((len(packed), packed.lengths.max()), "int32")
    real = np.zeros(ids.shape, bool)
    for row, (start, length) in enumerate(zip(packed.starts, packed.lengths)):
        ids[row, :length] = packed.token_ids[start : start + length]
        real[row, :length] = True
    return ids, real


def logits_both_ways(tmp_path, dtype, **options):
    """Logits with BERT in the graph and with cached states, and the inputs of the latter."""
    model, inputs = fused_and_inputs()
    packed = small_texts()
    ids, real = padded(packed)
    inputs["bert_padding_mask"] = real
    in_graph = model({**inputs, "bert_token_ids": ids}).numpy()
    features, _ = frozen_states(model.bert, packed, tmp_path, dtype, progress=quiet, **options)
    rows = np.arange(len(packed))
    inputs["bert_states"] = features.batch(rows)
    return model, inputs, in_graph, model(inputs).numpy()


# All texts in one batch, as in the graph; and in several.
@pytest.mark.parametrize("batch_tokens", [1000, 12])
def test_float32_states_give_the_logits_of_the_graph(tmp_path, batch_tokens):
    _, _, expected, found = logits_both_ways(tmp_path, "float32", batch_tokens=batch_tokens)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


# Significant bits of a type; rounding moves a number by at most 2^-bits of itself.
@pytest.mark.parametrize(
    "dtype, bits", [pytest.param("float16", 11, marks=pytest.mark.slow), ("bfloat16", 8)]
)
def test_half_precision_moves_the_logits_as_far_as_it_may(tmp_path, dtype, bits):
    model, inputs, expected, found = logits_both_ways(tmp_path, dtype)
    states = tf.constant(inputs.pop("bert_states").astype("float32"))
    with tf.GradientTape() as tape:
        tape.watch(states)
        logits = model({**inputs, "bert_states": states})
    slopes = tape.jacobian(logits, states).numpy()  # (n, 5, 17, n, T, M)
    # To first order; 2^-25 is half the smallest float16, and 1e-5 the rounding of the model.
    moved = np.abs(states.numpy()) * 2.0**-bits + 2.0**-25
    bound = np.einsum("abcnlm,nlm->abc", np.abs(slopes), moved) + 1e-5
    difference = np.abs(found - expected)
    assert (difference <= bound).all()
    assert difference.max() > 1e-5  # it is half precision indeed


def test_states_of_each_text_alone(tmp_path):
    bert, packed = small_bert(), small_texts()
    features, report = frozen_states(
        bert, packed, tmp_path, "float32", batch_tokens=20, progress=quiet
    )
    assert report.encoded_tokens == sum(LENGTHS)
    for row in range(len(packed)):
        ids = packed.token_ids[packed.starts[row] :][: packed.lengths[row]][None]
        alone = bert({"token_ids": ids})["sequence_output"]
        np.testing.assert_allclose(features.batch([row]), alone, atol=1e-5)


def test_other_weights_never_get_old_states(tmp_path):
    bert, packed = small_bert(), small_texts()
    before, _ = frozen_states(bert, packed, tmp_path, "float32", progress=quiet)
    kernel = bert.blocks[1].feed_forward.output_linear.kernel
    kernel.assign(kernel * 1.1)
    after, report = frozen_states(bert, packed, tmp_path, "float32", progress=quiet)
    assert report.encoded_tokens == sum(LENGTHS)
    assert np.abs(before.batch([0]) - after.batch([0])).max() > 1e-3


def changed(bert, part):
    (variable,) = [v for v in bert.weights if v.path.endswith(part)]
    variable.assign(variable + 0.01)
    return bert


SAME = {
    "another name": lambda: small_bert(name="other"),
    "frozen": lambda: small_bert(trainable=False),
    "another pooler": lambda: changed(small_bert(), "pooler/kernel"),
    "dropout": lambda: small_bert(dropout=0.3, attention_dropout=0.2),
    "gradient checkpointing": lambda: small_bert(gradient_checkpointing=True),
    "in a fused model": lambda: fused_and_inputs()[0].bert,
}


def adapted(bert):
    bert.add_adapter("one", "pfeiffer")
    bert.set_active_adapters("one")
    return bert


DIFFERENT = {
    "other weights": lambda: small_bert(2),
    "a bias": lambda: changed(small_bert(), "encoder_block_0/attention/qkv/bias"),
    "heads": lambda: small_bert(num_heads=4),
    "activation": lambda: small_bert(activation="gelu_approximate"),
    "epsilon": lambda: small_bert(layer_norm_epsilon=1e-6),
    "computation": lambda: small_bert(dtype="mixed_bfloat16"),
    "adapters": lambda: adapted(small_bert()),
}


@pytest.mark.parametrize("made", SAME.values(), ids=SAME)
def test_the_fingerprint_stays(made):
    assert encoder_fingerprint(made()) == encoder_fingerprint(small_bert())


def test_the_fingerprint_changes():
    found = [encoder_fingerprint(made()) for made in (*DIFFERENT.values(), small_bert)]
    assert len(set(found)) == len(found)


def test_computed_in_bfloat16(tmp_path):
    bert, packed = small_bert(), small_texts()
    exact, _ = frozen_states(bert, packed, tmp_path, "float32", progress=quiet)
    options = {"policy": "mixed_bfloat16", "progress": quiet}
    rough, report = frozen_states(bert, packed, tmp_path, "float32", **options)
    assert report.encoded_tokens == sum(LENGTHS)
    rows = np.arange(len(packed))
    error = np.abs(exact.batch(rows) - rough.batch(rows)).max() / np.abs(exact.batch(rows)).max()
    assert 1e-4 < error < 0.1
    # The same as an encoder that was made so.
    other = small_bert(dtype="mixed_bfloat16")
    again, report = frozen_states(other, packed, tmp_path, "float32", progress=quiet)
    assert report.encoded_tokens == 0
    ids, real = padded(packed)
    states = other({"token_ids": ids, "padding_mask": real})["sequence_output"]
    expected = np.asarray(tf.cast(states, "float32"))[real]
    found = again.batch(rows)[real]
    assert np.abs(found - expected).max() / np.abs(expected).max() < 0.05


def test_an_encoder_in_another_policy_has_its_own_weights():
    bert = small_bert()
    other = with_policy(bert, "mixed_bfloat16")
    assert other.compute_dtype == "bfloat16" and bert.compute_dtype == "float32"
    assert encoder_fingerprint(other) == encoder_fingerprint(bert, "mixed_bfloat16")
    changed(other, "embeddings/layer_norm/beta")
    assert encoder_fingerprint(bert) == encoder_fingerprint(small_bert())


def test_a_text_that_is_too_long(tmp_path):
    with pytest.raises(ValueError, match="at most 12 tokens for this encoder. Received: one of 13"):
        frozen_states(small_bert(), small_texts((3, 13)), tmp_path)


def test_the_bar_is_on_stderr(tmp_path, capsys):
    frozen_states(small_bert(), small_texts(), tmp_path)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "48/48" in captured.err and "tokens_per_second" in captured.err
    frozen_states(small_bert(), small_texts(), tmp_path)
    assert capsys.readouterr().err == ""


def test_one_graph_for_all_shapes(tmp_path):
    traces = []

    class Counting(Bert):
        def call(self, inputs, training=None):
            traces.append(training)
            return super().call(inputs, training)

    bert = small_bert(kind=Counting)
    traces.clear()
    frozen_states(bert, small_texts(), tmp_path, batch_tokens=12, progress=quiet)
    assert traces == [False]


WORKER = """
import sys, time
from tests.pipelines import test_frozen_states as tests

def progress(done, total):
    sys.stdout.write(f"{done}\\n")
    sys.stdout.flush()
    time.sleep(0.05)

sys.stdout.write("ready\\n")
tests.many_features(sys.argv[1], progress)
"""


def many_features(directory, progress):
    """60 texts in many small batches, with a shard for each."""
    texts = small_texts(tuple(LENGTHS) + tuple(range(2, 12)) * 5 + (12, 12))
    return cached_features(
        texts, frozen_encoder(small_bert()), directory, "float16", 24, 0.0, progress
    )


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on(tmp_path, repository):
    command = [sys.executable, "-c", WORKER, str(tmp_path / "killed")]
    with subprocess.Popen(command, cwd=repository, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.strip().isdigit() and int(line) >= 100:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL

    again, resumed = many_features(tmp_path / "killed", quiet)
    features, undisturbed = many_features(tmp_path / "whole", quiet)
    assert undisturbed.encoded_tokens == undisturbed.tokens > 300
    # The shard of the last batch that it told of is there, whole.
    assert 0 < resumed.encoded_tokens <= undisturbed.tokens - 100
    assert resumed.folder.name == undisturbed.folder.name  # the key, made in another process
    assert contents(resumed.folder) == contents(undisturbed.folder)
    rows = np.arange(len(features))
    np.testing.assert_array_equal(again.batch(rows), features.batch(rows))
    assert np.abs(features.batch([0])).max() > 0.1


@pytest.mark.slow
def test_two_processes_at_once(tmp_path, repository):
    command = [sys.executable, "-c", WORKER, str(tmp_path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, cwd=repository, **pipes) for _ in range(2)]
    outputs = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    # Only the one that computes tells of progress.
    told = sorted(len(output.split()) - 1 for output, _ in outputs)
    assert told[0] == 0 and told[1] > 10
    _, report = many_features(tmp_path, quiet)
    assert report.encoded_tokens == 0
