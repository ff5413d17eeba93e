"""Masked tokens on ALBERT, whose token embeddings are narrower than its states."""

import numpy as np

from kbert.tasks.pretraining.head import Pretraining
from tests import numpy_reference as reference
from tests.models.test_albert import ARRAYS, expected, small_albert
from tests.small_bert import INPUTS

# D is 12, E is 5, V is 23.
SHAPES = {
    "transform/kernel": (12, 5),
    "transform/bias": (5,),
    "layer_norm/gamma": (5,),
    "layer_norm/beta": (5,),
    "output/bias": (23,),
}
HEAD = reference.random_arrays(SHAPES, seed=11)
POSITIONS = np.array([[1, 3], [5, 2], [3, 0], [0, 0]], "int32")


def test_the_head_has_the_width_of_the_embeddings():
    encoder = small_albert(dropout=0.0, attention_dropout=0.0)
    model = Pretraining(encoder, "mlm", name="model")
    for variable in model.token_head.weights:
        variable.assign(HEAD[variable.path.split("token_head/")[-1]])
    outputs = model({**INPUTS, "masked_positions": POSITIONS})
    states = np.stack([row[at] for row, at in zip(expected().sequence_output, POSITIONS)])
    table = ARRAYS["embeddings/token_embedding/embeddings"]
    activation = encoder.activation
    wanted = reference.masked_token_logits(states, HEAD, table, activation)
    np.testing.assert_allclose(outputs["masked_tokens"], wanted, atol=2e-5)
