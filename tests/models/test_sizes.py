"""The published sizes: their arguments and their exact numbers of parameters."""

import keras
import pytest

from kbert.models.bert import Bert
from kbert.models.sizes import BERT_SIZES, bert_size
from kbert.tasks.classification.head import SequenceClassification

# Layers, width, heads, inner width: Turc et al. 2019, table 1, and Devlin et al. 2018, section 3.
PUBLISHED = {
    "tiny": (2, 128, 2, 512),
    "mini": (4, 256, 4, 1024),
    "small": (4, 512, 8, 2048),
    "medium": (8, 512, 8, 2048),
    "base": (12, 768, 12, 3072),
    "large": (24, 1024, 16, 4096),
}
# Of the published uncased models (30,522 tokens, 512 positions) with pooler, as transformers counts
# BertModel's parameters; by hand:
# D (30522 + 512 + 2 + 2) + layers (4 D^2 + 4 D + 2 D I + D + I + 4 D) + D^2 + D.
PARAMETERS = {
    "tiny": 4_385_920,
    "mini": 11_170_560,
    "small": 28_763_648,
    "medium": 41_373_184,
    "base": 109_482_240,
    "large": 335_141_888,
}


@pytest.fixture
def unallocated():
    """Variables get a shape but no memory: BERT-large alone would be 1.3 GB."""
    with keras.StatelessScope(initialize_variables=False):
        yield
    keras.utils.clear_session()  # forgets the variables that wait for their values


def parameters(model):
    total = 0
    for variable in model.weights:
        count = 1
        for size in variable.shape:
            count *= size
        total += count
    return total


@pytest.mark.parametrize("size", list(PUBLISHED))
def test_arguments(size):
    names = ("num_layers", "hidden_dim", "num_heads", "intermediate_dim")
    assert tuple(bert_size(size)[name] for name in names) == PUBLISHED[size]


def test_all_sizes_are_tested():
    assert list(BERT_SIZES) == list(PUBLISHED) == list(PARAMETERS)


@pytest.mark.parametrize("size", list(PUBLISHED))
def test_parameters(size, unallocated):
    layers, d, _, inner = PUBLISHED[size]
    block = 4 * d * d + 4 * d + 2 * d * inner + d + inner + 4 * d
    by_hand = d * (30522 + 512 + 2 + 2) + layers * block + d * d + d
    assert by_hand == PARAMETERS[size]
    assert parameters(Bert.from_size(size)) == PARAMETERS[size]


def test_parameters_of_classifiers(unallocated):
    encoder = Bert.from_size("base")
    # One layer on the pooler: 768 * 2 + 2 more.
    assert parameters(SequenceClassification(encoder, 2)) == 109_483_778
    # Two layers on [CLS], the pooler is kept: 768 * 768 + 768 + 768 * 2 + 2 more.
    assert parameters(SequenceClassification(encoder, 2, head="two_layer")) == 110_074_370


def test_a_built_model_counts_the_same():
    assert Bert.from_size("tiny").count_params() == PARAMETERS["tiny"]


def test_other_arguments():
    model = Bert.from_size("tiny", vocabulary_size=30, num_layers=1, max_sequence_length=8)
    assert (model.vocabulary_size, model.num_layers, model.max_sequence_length) == (30, 1, 8)
    assert model.hidden_dim == 128


def test_unknown_size():
    message = r"`size` must be one of \['tiny', .*'large'\]. Received: size='huge'"
    with pytest.raises(ValueError, match=message):
        Bert.from_size("huge")


def test_the_table_cannot_be_changed_by_its_users():
    bert_size("tiny")["num_layers"] = 7
    assert bert_size("tiny")["num_layers"] == 2
