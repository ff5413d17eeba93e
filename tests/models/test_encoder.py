"""The protocol of encoders, their inputs, and the one of a checkpoint."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.models.bert import Bert
from kbert.models.encoder import (
    Encoder,
    check_inputs,
    checked_arguments,
    encoder_of,
    id_arrays,
)
from kbert.models.roberta import Roberta
from kbert.tasks.classification.head import SequenceClassification
from tests.small_bert import small_bert
from tests.small_pipelines import small_classifier

SIZES = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}
ENCODER = SimpleNamespace(vocabulary_size=20, max_sequence_length=8)


def test_the_encoders_have_it():
    assert isinstance(Bert(20, max_sequence_length=8, **SIZES), Encoder)


def test_anything_else_has_not():
    assert not isinstance(object(), Encoder)


def test_names_of_inputs():
    check_inputs({"token_ids": 0})
    check_inputs({"token_ids": np.zeros((2, 3), "int32"), "padding_mask": np.ones((2, 3), bool)})
    check_inputs({"token_ids": keras.KerasTensor((None, None), "int32")})
    with pytest.raises(ValueError, match="`inputs` must be a dict of `token_ids`.*here input_ids"):
        check_inputs({"input_ids": 0})


def test_shapes_of_inputs():
    ids = np.zeros((2, 3), "int32")
    with pytest.raises(ValueError, match=r"`token_ids` must have .* \(B, T\). Received: \(3,\)"):
        check_inputs({"token_ids": ids[0]})
    message = r"`segment_ids` must have the shape \(B, T\) with T=3. Received: \(2, 2\)"
    with pytest.raises(ValueError, match=message):
        check_inputs({"token_ids": ids, "segment_ids": ids[:, :2]})
    with pytest.raises(ValueError, match=r"`padding_mask` must have .* Received: \(2, 1, 3\)"):
        check_inputs({"token_ids": ids, "padding_mask": ids[:, None]})


def test_ids_that_are_no_integers():
    ids = np.zeros((2, 3), "int64")
    with pytest.raises(ValueError, match="`token_ids` must be of integers. Received: float32"):
        check_inputs({"token_ids": keras.KerasTensor((None, None))})
    with pytest.raises(ValueError, match="`segment_ids` must be of integers. Received: float64"):
        id_arrays({"token_ids": ids, "segment_ids": np.zeros((2, 3))}, ENCODER)
    with pytest.raises(ValueError, match="`token_ids` must be of integers. Received: <U1"):
        id_arrays({"token_ids": [["a"]]}, ENCODER)


def test_lists_of_ids_become_arrays():
    given = {"token_ids": [[1, 2], [19, 0]], "padding_mask": [[True, True], [True, False]]}
    found = id_arrays(given, ENCODER)
    assert found["token_ids"].tolist() == given["token_ids"]
    assert found["padding_mask"].dtype == bool and given["token_ids"] == [[1, 2], [19, 0]]
    with pytest.raises(ValueError, match=r"`token_ids` must have rows of .* \[\[1, 2\], \[1\]\]"):
        id_arrays({"token_ids": [[1, 2], [1]]}, ENCODER)


@pytest.mark.parametrize(
    "inputs, told",
    [
        ({"token_ids": [1, 2]}, r"`token_ids` must have the shape \(B, T\). Received: \(2,\)"),
        (
            {"token_ids": [[1, 2]] * 3, "segment_ids": [[0]]},
            r"`segment_ids` must have the shape \(3, 2\), as others. Received: \(1, 1\)",
        ),
        (
            {"token_ids": [[1, 2]], "padding_mask": [[True] * 3]},
            r"`padding_mask` must have the shape \(1, 2\), as others. Received: \(1, 3\)",
        ),
    ],
)
def test_shapes_of_lists(inputs, told):
    """They were read past the end, broadcast, or told by Keras in its own words."""
    with pytest.raises(ValueError, match=told):
        Bert(20, max_sequence_length=8, **SIZES)(inputs)
    with pytest.raises(ValueError, match=told):
        small_classifier().predict(inputs)


def test_choices_are_for_their_model_alone():
    choices = {"token_ids": [[[1, 2], [3, 4]]]}
    assert id_arrays(choices, ENCODER)["token_ids"].shape == (1, 2, 2)
    with pytest.raises(ValueError, match=r"`token_ids` must have .* \(B, T\). Received: \(1, 2, 2"):
        Bert(20, max_sequence_length=8, **SIZES)(choices)
    longer = {"token_ids": np.ones((1, 2, 9), "int32")}
    with pytest.raises(ValueError, match="must not be longer than .*=8. Received: length 9"):
        id_arrays(longer, ENCODER)


@pytest.mark.parametrize(
    "rows", [tf.ragged.constant([[3, 4], [3]]), tf.ragged.constant([[3, 4], [3, 4]])]
)
def test_ragged_rows(rows):
    with pytest.raises(ValueError, match="`token_ids` must have rows of one length, padded where"):
        Bert(20, max_sequence_length=8, **SIZES)({"token_ids": rows})


@pytest.mark.parametrize("wrong", [-1, 20])
def test_ids_outside_the_vocabulary(wrong):
    message = rf"`token_ids` must be in \[0, 20\), the encoder's vocabulary. Received: {wrong}"
    with pytest.raises(ValueError, match=message):
        id_arrays({"token_ids": np.array([[3, wrong, 4]])}, ENCODER)
    with pytest.raises(ValueError, match=message):
        Bert(20, max_sequence_length=8, **SIZES)({"token_ids": np.array([[3, wrong, 4]])})


@pytest.mark.parametrize(
    "inputs, told",
    [
        ({"token_ids": np.zeros((1, 0), "int32")}, r"have a token a row. Received: shape=\(1, 0\)"),
        ({"token_ids": [[]]}, r"`token_ids` must have a token a row. Received: shape=\(1, 0\)"),
        (
            {"token_ids": [[1, 2]], "padding_mask": [["a", "b"]]},
            "`padding_mask` must be bool, or of integers. Received: <U1",
        ),
        (
            {"token_ids": [[1, 2]], "padding_mask": [[0.5, 1.0]]},
            "`padding_mask` must be bool, or of integers. Received: float64",
        ),
    ],
)
def test_no_tokens_and_masks_of_other_types(inputs, told):
    """Keras and TensorFlow told of slices and casts; 0.5 was True."""
    with pytest.raises(ValueError, match=told):
        Bert(20, max_sequence_length=8, **SIZES)(inputs)
    with pytest.raises(ValueError, match=told):
        small_classifier().predict(inputs)


@pytest.mark.parametrize("method", ["fit", "evaluate", "predict"])
def test_ids_of_heads_are_checked(method):
    head = SequenceClassification(Bert(20, max_sequence_length=8, **SIZES), num_labels=2)
    head.compile()
    targets = {} if method == "predict" else {"y": np.array([0])}
    with pytest.raises(ValueError, match="^`token_ids` must be in .* Received: 20$"):
        getattr(head, method)({"token_ids": np.array([[3, 20]])}, **targets, verbose=0)


@pytest.mark.parametrize("wrong", [-1, 2])
def test_segments_that_the_encoder_has_not(wrong):
    inputs = {"token_ids": np.array([[3, 4]]), "segment_ids": np.array([[0, wrong]])}
    message = rf"`segment_ids` must be in \[0, 2\), the encoder's segments. Received: {wrong}"
    with pytest.raises(ValueError, match=message):
        Bert(20, max_sequence_length=8, **SIZES)(inputs)
    with pytest.raises(ValueError, match=message):
        small_classifier().predict(inputs)
    with pytest.raises(ValueError, match=message):
        Bert(20, max_sequence_length=8, **SIZES)(
            {name: tf.constant(ids) for name, ids in inputs.items()}
        )
    Roberta(20, max_sequence_length=8, **SIZES)(inputs)  # has one, and does not read them


def test_arguments_that_a_constructor_lacks():
    class Base:
        def __init__(self, width, *args, depth=1, **kwargs):
            """Takes what `Derived` hands on."""

    class Derived(Base):
        def __init__(self, height, **kwargs):
            super().__init__(**kwargs)

    given = {"width": 1, "depth": 2, "height": 3, "colour": 4}
    assert checked_arguments(Derived, given, ["colour"]) is given
    with pytest.raises(ValueError, match="`dept` must be left out: Derived .* mean `depth`"):
        checked_arguments(Derived, {"width": 1, "dept": 2})
    for name in ("self", "args", "kwargs", "zzz"):
        with pytest.raises(ValueError, match=f"`{name}` must be left out: .* such argument.$"):
            checked_arguments(Derived, {name: 1})


def test_an_encoder_of_any_architecture(tmp_path):
    folder = small_bert().save_pretrained(tmp_path / "saved")
    checkpoint = read_checkpoint(folder)
    assert type(encoder_of(checkpoint)) is Bert
    adapted = encoder_of(checkpoint, adapter="lora")
    assert type(adapted) is Bert and adapted.active_adapters == ["task"]
    assert encoder_of(adapted.to_checkpoint()).active_adapters == ["task"]
    checkpoint.architecture = "gpt"
    with pytest.raises(ValueError, match="`architecture` must be one of bert.*='gpt'"):
        encoder_of(checkpoint)
    with pytest.raises(ValueError, match="architecture bert, as Bert is. Received: .*='gpt'"):
        Bert.from_checkpoint(checkpoint)


def test_more_tokens_than_positions():
    """In a graph with a mask positions are gathered, on a GPU without an error."""
    inputs = {"token_ids": np.ones((2, 9), "int32"), "padding_mask": np.ones((2, 9), bool)}
    message = "`token_ids` must not be longer than `max_sequence_length`=8. Received: length 9"
    model = Bert(20, max_sequence_length=8, **SIZES)
    free = tf.TensorSpec((None, 9), tf.int32), tf.TensorSpec((None, 9), tf.bool)
    graph = tf.function(lambda ids, mask: model({"token_ids": ids, "padding_mask": mask}), free)
    with pytest.raises(ValueError, match=message):
        model(inputs)
    with pytest.raises(ValueError, match=message):
        graph(inputs["token_ids"], inputs["padding_mask"])


def test_features_of_an_encoder_that_stays_as_it_is(tmp_path):
    checkpoint = read_checkpoint(small_bert().save_pretrained(tmp_path / "saved"))
    for name, value in (("adapter", "lora"), ("gradient_checkpointing", True), ("dropout", 0.3)):
        with pytest.raises(ValueError, match=f"`{name}` must be left out with `features`"):
            encoder_of(checkpoint, features="last", **{name: value})
