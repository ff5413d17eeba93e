"""What trains of an encoder with a trained adapter once it, or a part of it, is frozen."""

from typing import Any

import numpy as np

from kbert.models.bert import Bert
from kbert.models.feature_based import FeatureBasedEncoder
from kbert.tasks.classification.head import SequenceClassification
from kbert.tasks.ner.head import TokenClassification
from tests.small_bert import small_bert
from tests.small_pipelines import small_classifier


def adapted() -> Bert:
    model = small_bert()
    model.add_adapter("one")
    model.train_adapter("one")
    return model


def trained(model: Any) -> set[str]:
    return {variable.path.split("/")[1] for variable in model.trainable_variables}


def test_a_frozen_encoder_is_frozen_whole():
    model = adapted()
    model.trainable = False
    assert not any(variable.trainable for variable in model.variables)
    assert not FeatureBasedEncoder(adapted(), "last", "linear").trainable_variables
    model.add_adapter("two")
    assert not any(variable.trainable for variable in model.variables)
    model.trainable = True
    assert trained(model) == {"adapters", "pooler"}


def test_an_adapter_of_a_frozen_encoder_trains_where_it_is_said():
    model = small_bert()
    model.trainable = False
    model.add_adapter("one")
    model.set_active_adapters("one")
    assert not any(variable.trainable for variable in model.variables)
    model.train_adapter("one")
    assert trained(model) == {"adapters", "pooler"}
    assert {v.path for v in model.variables if v.trainable} == {
        v.path for v in model.trainable_variables
    }


def test_a_pooler_that_no_head_reads_stays_frozen():
    for freeze_first in (True, False):
        model = small_bert()
        model.trainable = not freeze_first
        TokenClassification(model, 2)
        model.trainable = False
        model.add_adapter("one")
        model.train_adapter("one")
        assert trained(model) == {"adapters"}
        model.train_encoder()
        assert "pooler" not in trained(model)
        SequenceClassification(model, 2)
        assert "pooler" in trained(model)


def test_the_head_alone_trains_and_the_weights_stay():
    model = small_classifier()
    encoder = model.encoder
    encoder.add_adapter("one")
    encoder.train_adapter("one")
    encoder.trainable = False
    before = [np.asarray(variable).copy() for variable in encoder.variables]
    model.compile("sgd", run_eagerly=True)
    model.fit(["a film", "a plot"], ["no", "yes"], verbose=0)
    for variable, value in zip(encoder.variables, before):
        np.testing.assert_array_equal(variable, value, err_msg=variable.path)
    assert len(model.trainable_variables) == 2


def test_a_part_that_was_frozen_stays_so_whatever_follows():
    model = adapted()
    model.embeddings.trainable = model.blocks[0].trainable = False
    model.add_adapter("two")
    assert trained(model) == {"adapters", "pooler"}
    model.train_encoder()
    assert trained(model) == {"encoder_block_1", "adapters", "pooler"}
    model.embeddings.trainable = True
    assert trained(model) == {"embeddings", "encoder_block_1", "adapters", "pooler"}
