"""What a Transformer is made of: the paths of its variables are a contract."""

import pytest

from kbert.models.encoder_decoders.transformer import Transformer
from kbert.models.weights import encoder_arrays
from tests.models.encoder_decoders.test_transformer import SIZES, VARIANTS, arrays_of

LEARNED = {"source_positions/embeddings": (9, 12), "target_positions/embeddings": (9, 12)}


@pytest.mark.parametrize("name", VARIANTS)
def test_variable_paths_and_shapes(name):
    options = VARIANTS[name]
    wanted = {key: array.shape for key, array in arrays_of(options).items()}
    if options.get("positions") == "learned":
        wanted |= LEARNED
    model = Transformer(**SIZES, **options)
    assert {key: array.shape for key, array in encoder_arrays(model).items()} == wanted


def test_a_deep_encoder_with_a_shallow_decoder():
    model = Transformer.from_size("tiny", 20, num_encoder_layers=6, num_decoder_layers=1)
    assert len(model.encoder_blocks) == 6 and len(model.decoder_blocks) == 1
    assert model.get_config()["num_encoder_layers"] == 6
