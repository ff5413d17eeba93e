"""The names and shapes against those of the NumPy reference, which were written by hand."""

import pytest

from kbert.checkpoints.arrays.weight_table import transformer_shapes
from tests.models.encoder_decoders.test_transformer import SIZES, VARIANTS, arrays_of

DEFAULTS = {
    "positions": "sinusoidal",
    "tied": "all",
    "norm": "post",
    "output_bias": False,
    "source_vocabulary_size": None,
}
LEARNED = {"source_positions/embeddings": (9, 12), "target_positions/embeddings": (9, 12)}


@pytest.mark.parametrize("name", VARIANTS)
def test_names_and_shapes(name):
    options = VARIANTS[name]
    wanted = {key: array.shape for key, array in arrays_of(options).items()}
    if options.get("positions") == "learned":
        wanted |= LEARNED
    assert transformer_shapes({**SIZES, **DEFAULTS, **options}) == wanted
