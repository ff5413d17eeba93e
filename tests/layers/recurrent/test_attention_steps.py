"""One look at the annotations; the steps over a batch are tested with the decoder."""

from typing import Any

import numpy as np
import pytest

from kbert.layers.recurrent.attention_steps import AttentionSteps, Kernels, Sampling, product_of_all
from kbert.layers.recurrent.cells import Cell

ROWS, HYPOTHESES, LENGTH, WIDE, UNITS = 2, 3, 4, 5, 3
MASK = np.array([[True, True, True, True], [True, True, False, False]])


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng([7, *shape]).normal(size=shape).astype("float32")


OUTPUT, VALUES, KEYS = (
    random(ROWS, HYPOTHESES, UNITS),
    random(ROWS, LENGTH, WIDE),
    random(ROWS, LENGTH, UNITS),
)


def steps(hard: bool = False, sampling: Any = None) -> AttentionSteps:
    cell: Any = Cell
    return AttentionSteps(cell, MASK, "float32", hard, sampling)


def kernels(gated: bool = False, additive: bool = True) -> Kernels:
    return Kernels(
        None,
        random(UNITS, UNITS) if additive else None,
        random(UNITS) if additive else None,
        random(UNITS, 1) if gated else None,
        np.array([0.3], "float32") if gated else None,
        (),
    )


def chances_by_hand(row: int, hypothesis: int, additive: bool) -> np.ndarray:
    output, known = OUTPUT[row, hypothesis], kernels()
    scores = np.array([
        np.tanh(output @ known.query + key) @ known.score_vector if additive else output @ key
        for key in KEYS[row][MASK[row]]
    ])
    powers = np.exp(scores - scores.max())
    return np.pad(powers / powers.sum(), (0, LENGTH - len(scores)))


@pytest.mark.parametrize("additive", [True, False])
@pytest.mark.parametrize("gated", [True, False])
def test_a_look_at_the_mean(gated: bool, additive: bool):
    seen = steps().look(OUTPUT, VALUES, KEYS, kernels(gated, additive))
    assert (seen.openness is None) != gated
    for row in range(ROWS):
        for k in range(HYPOTHESES):
            chances = chances_by_hand(row, k, additive)
            np.testing.assert_allclose(seen.chances[row, k], chances, atol=1e-6)
            gate = OUTPUT[row, k] @ kernels(True).openness + 0.3
            gate = 1 / (1 + np.exp(-gate)) if gated else 1.0
            np.testing.assert_allclose(seen.contexts[row, k], gate * chances @ VALUES[row], 1e-4)
    np.testing.assert_array_equal(seen.chosen, seen.chances)


def test_a_look_at_one_place():
    noise = np.zeros((ROWS, LENGTH), "float32")
    likeliest = steps(True).look(OUTPUT, VALUES, KEYS, kernels())
    for row in range(ROWS):
        for k in range(HYPOTHESES):
            place = chances_by_hand(row, k, True).argmax()
            np.testing.assert_array_equal(likeliest.chosen[row, k], np.eye(LENGTH)[place])
            np.testing.assert_allclose(likeliest.contexts[row, k], VALUES[row, place], 1e-5)
    noise[0, 2], noise[1, 3] = 50.0, 50.0  # the second is padding, which no noise reaches
    sampling = Sampling(noise[:, None], np.array([[0.0], [1.0]], "float32"))
    drawn = steps(True, sampling).look(OUTPUT, VALUES, KEYS, kernels(), noise)
    np.testing.assert_array_equal(drawn.chosen[0], np.eye(LENGTH)[[2] * HYPOTHESES])
    np.testing.assert_array_equal(drawn.chosen[1], drawn.chances[1])
    np.testing.assert_array_equal(drawn.chances, likeliest.chances)


def test_a_product_of_all_hypotheses():
    kernel = random(UNITS, 7)
    np.testing.assert_allclose(product_of_all(OUTPUT, kernel), OUTPUT @ kernel, atol=1e-5)
