"""The counts of BERT-base and BERT-large are the published models'."""

import math

import pytest

from kbert.checkpoints.arrays.weight_table import canonical_shapes
from tests.checkpoints.synthetic_bert import CONFIG


@pytest.mark.parametrize(
    ("hidden", "layers", "parameters"), [(768, 12, 109_482_240), (1024, 24, 335_141_888)]
)
def test_the_number_of_parameters(hidden: int, layers: int, parameters: int) -> None:
    config = CONFIG | {
        "vocabulary_size": 30522,
        "hidden_dim": hidden,
        "num_layers": layers,
        "intermediate_dim": 4 * hidden,
        "max_sequence_length": 512,
    }
    assert sum(math.prod(shape) for shape in canonical_shapes(config).values()) == parameters


def test_names_and_shapes() -> None:
    shapes = canonical_shapes(CONFIG)
    assert len(shapes) == 5 + 2 * 12 + 2
    assert shapes["encoder_block_1/attention/qkv/kernel"] == (4, 12)
    assert shapes["encoder_block_1/feed_forward/output/kernel"] == (6, 4)
    assert list(shapes)[0] == "embeddings/token_embedding/embeddings"
    assert list(shapes)[-1] == "pooler/bias"
