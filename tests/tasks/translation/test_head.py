import keras
import numpy as np
import pytest

from kbert.models.encoder_decoders.transformer import Transformer
from kbert.optimization.adamw import AdamW
from kbert.tasks.translation.head import Translation

SIZES = {
    "vocabulary_size": 13,
    "hidden_dim": 16,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "num_heads": 2,
    "intermediate_dim": 32,
    "max_sequence_length": 12,
    "dropout": 0.0,
}


def reversed_pairs(count, seed):
    """Sources of 5 tokens, and their reversal as the target; 2 starts, 3 ends."""
    source = np.random.default_rng(seed).integers(4, 13, (count, 5)).astype("int32")
    start, end = (np.full((count, 1), token, "int32") for token in (2, 3))
    target = source[:, ::-1]
    inputs = {
        "source_token_ids": source,
        "source_padding_mask": np.ones_like(source, bool),
        "target_token_ids": np.concatenate([start, target], axis=1),
    }
    return inputs, np.concatenate([target, end], axis=1)


def test_it_learns_to_reverse():
    keras.utils.set_random_seed(2)
    model = Translation(Transformer(**SIZES), label_smoothing=0.0)
    model.compile(optimizer=AdamW(1e-2, 0.0, 0.9, 0.98, 1e-9))
    inputs, targets = reversed_pairs(512, seed=1)
    losses = model.fit(inputs, targets, batch_size=32, epochs=7, verbose=0).history["loss"]
    assert losses[-1] < 0.2 * losses[0]


def test_padding_of_the_target_counts_nothing():
    model = Translation(Transformer(**SIZES))
    model.compile(run_eagerly=True)
    inputs, targets = reversed_pairs(4, seed=2)
    before = model.evaluate(inputs, targets, verbose=0)
    padded = {**inputs, "target_token_ids": np.pad(inputs["target_token_ids"], ((0, 0), (0, 3)))}
    wider = np.pad(targets, ((0, 0), (0, 3)), constant_values=-1)
    assert model.evaluate(padded, wider, verbose=0) == pytest.approx(before, abs=1e-5)


def test_defaults_are_the_papers():
    model = Translation(Transformer(**SIZES))
    model.compile()
    assert model.loss.smoothing == 0.1
    # d^-0.5 warmup^-0.5 at the end of the warm-up (Vaswani et al. 2017, equation 3).
    rate = model.optimizer._learning_rate
    assert float(rate(3999)) == pytest.approx(16**-0.5 * 4000**-0.5, rel=1e-5)
    assert (model.optimizer.beta_2, model.optimizer.epsilon) == (0.98, 1e-9)


def test_configuration():
    model = Translation(Transformer(**SIZES), 0.2, name="t")
    again = Translation.from_config(model.get_config())
    assert again.label_smoothing == 0.2
    assert again.transformer.get_config() == model.transformer.get_config()
