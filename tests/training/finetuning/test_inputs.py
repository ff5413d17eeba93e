import numpy as np
import pytest

from kbert.data.classification.multiple_choice import read_choice_examples
from kbert.data.classification.text_pairs import TextExamples
from kbert.tasks.classification.model import Classifier
from kbert.tasks.multiple_choice.model import MultipleChoice
from kbert.training.finetuning.inputs import batch_sizes, tokenized


def texts(*text_a, text_b=None):
    return TextExamples(list(text_a), text_b, None, None, "here", list(range(len(text_a))))


@pytest.fixture(scope="module")
def classifier(tiny):
    return Classifier.from_pretrained(tiny.encoder, labels=["a", "b"], max_sequence_length=6)


def test_lengths_steps_and_padding_by_hand(classifier, tiny, tmp_path):
    # [CLS] and [SEP] beside the words: 3, 4, 3, 6 (cut from 7).
    found = tokenized(classifier, texts("good", "good film", "bad", "the a film was bad"))
    assert found.lengths.tolist() == [3, 4, 3, 6]
    assert found.truncated.tolist() == [False, False, False, True]
    config = tiny.config(tmp_path / "o", batch_size=2, epochs=3)
    assert found.steps(config) == [2, 2, 2]
    # Batches of like length: (6, 4) and (3, 3): 12 + 6 cells for 16 tokens.
    assert found.padding_share(config) == pytest.approx(1 - 16 / 18)
    budget = tiny.config(tmp_path / "o", batch_tokens=6, epochs=1)
    assert batch_sizes(budget) == {"batch_size": None, "batch_tokens": 6}
    assert found.steps(budget) == [3]  # 6; 4; 3 and 3


def test_training_batches_hold_every_example_once(classifier, tiny, tmp_path):
    found = tokenized(classifier, texts("good", "bad film", "the plot was fine", "rain", "sun"))
    config = tiny.config(tmp_path / "o", batch_size=2)
    dataset = found.dataset(classifier, config, np.arange(5))
    rows = [labels.numpy().tolist() for _, labels in dataset]
    assert sorted(sum(rows, [])) == [0, 1, 2, 3, 4] and len(rows) == 3


def test_choices_by_hand(tiny, tmp_path):
    model = MultipleChoice.from_pretrained(tiny.encoder, max_sequence_length=8)
    examples = read_choice_examples(tiny.choices)
    found = tokenized(model, examples)
    # [CLS] the w [SEP] was w [SEP]: 7 tokens, two choices each.
    assert found.lengths.tolist() == [14] * 8
    assert not found.truncated.any()
    config = tiny.config(tmp_path / "o", task="multiple-choice", batch_size=3, epochs=1)
    assert found.steps(config) == [3]
    assert found.padding_share(config) == 0.0
    assert found.predict(model).shape == (8, 2)


def test_examples_must_be_what_the_model_reads(classifier, tiny):
    with pytest.raises(ValueError, match="here: the examples must be single.*Received: pairs"):
        tokenized(classifier, texts("a", text_b=["b"]))
    with pytest.raises(ValueError, match="must be texts for a Classifier. Received: multiple"):
        tokenized(classifier, read_choice_examples(tiny.choices))
    choosing = MultipleChoice.from_pretrained(tiny.encoder, max_sequence_length=8)
    with pytest.raises(ValueError, match="here: the examples must be multiple choice"):
        tokenized(choosing, texts("a"))


def test_batches_for_a_tpu_have_one_shape(classifier, tiny, tmp_path):
    found = tokenized(classifier, texts("good", "bad film", "the plot was fine", "rain", "sun"))
    config = tiny.config(tmp_path / "o", batch_size=2, epochs=2, strategy="tpu")
    dataset = found.dataset(classifier, config, np.arange(5))
    inputs, labels = dataset.element_spec
    assert tuple(inputs["token_ids"].shape) == (2, classifier.max_sequence_length)
    assert tuple(labels.shape) == (2,)
    assert found.steps(config) == [2, 2] and int(dataset.cardinality()) == 2
