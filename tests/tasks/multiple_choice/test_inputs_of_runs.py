import pytest

from kbert.data.classification.multiple_choice import read_choice_examples
from kbert.tasks.multiple_choice.model import MultipleChoice
from kbert.tasks.multiple_choice.task import TASK
from tests.tasks.conftest import texts


def test_choices_by_hand(tiny, tmp_path):
    model = MultipleChoice.from_pretrained(tiny.encoder, max_sequence_length=8)
    examples = read_choice_examples(tiny.choices)
    found = TASK.inputs(model, examples)
    # [CLS] the w [SEP] was w [SEP]: 7 tokens, two choices each.
    assert found.lengths.tolist() == [14] * 8
    assert not found.truncated.any()
    config = tiny.config(tmp_path / "o", task="multiple-choice", batch_size=3, epochs=1)
    assert found.steps(config) == [3]
    assert found.padding_share(config) == 0.0
    assert found.predict(model).shape == (8, 2)


def test_examples_must_be_choices(tiny):
    model = MultipleChoice.from_pretrained(tiny.encoder, max_sequence_length=8)
    with pytest.raises(ValueError, match="here: the examples must be multiple choice"):
        TASK.inputs(model, texts("a"))
