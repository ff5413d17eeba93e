import numpy as np
import pytest
import tensorflow as tf

from kbert.data.translation.parallel_text import ParallelText
from kbert.tasks.load import load
from kbert.training.runs.run_directory import load_run
from kbert.training.translation.evaluation import (
    MeasuredPairs,
    check_language,
    measure_translator,
    searcher_of,
    teacher_forced,
    translation_scores,
)
from kbert.training.translation.inputs import prepare_pairs


@pytest.fixture(scope="module")
def model(finished_translation):
    return load(load_run(finished_translation).model_directory)


PAIRS = ParallelText(
    ["red dog", "", "old big cat", "blue " * 60, "red cat"],
    ["rot hund", "rot", "alt gross katze", "blau", ""],
    "pairs",
    [1, 2, 3, 4, 5],
)


def test_the_next_piece_by_hand(model):
    """One pair: mean cross-entropy and accuracy of its pieces, from the logits."""
    prepared = prepare_pairs(model, PAIRS.select([2]))
    found = teacher_forced(model, prepared)
    (inputs, labels), *_ = prepared.dataset(model)
    logs = tf.nn.log_softmax(model(inputs)[0]).numpy()
    truth = labels[0].numpy()
    entropy = -logs[np.arange(len(truth)), truth]
    assert found["perplexity"] == pytest.approx(np.exp(entropy.mean()), rel=1e-5)
    assert found["accuracy"] == pytest.approx(np.mean(logs.argmax(-1) == truth))
    # Smoothing 0.1: a tenth of the target is spread evenly over the vocabulary.
    smoothed = 0.9 * entropy - 0.1 * logs.mean(axis=-1)
    assert found["loss"] == pytest.approx(smoothed.mean(), rel=1e-5)


def test_batches_weigh_as_much_as_their_pieces(model):
    """Pairs of unlike lengths, one a batch or all together."""
    prepared = prepare_pairs(model, PAIRS)
    apart = prepared.dataset(model, batch_tokens=1, buckets=None)
    assert len(list(apart)) == len(prepared) > 1
    together = teacher_forced(model, prepared)
    found = model.evaluate(apart, verbose=0, return_dict=True)
    assert together == pytest.approx(
        {name: found[name] for name in ("loss", "perplexity", "accuracy")}, rel=1e-5
    )


def test_every_source_is_translated_and_whole_pairs_are_measured(model):
    metrics, translations = measure_translator(model, PAIRS, "de")
    assert translations == model.translations(PAIRS.sources) and translations[1] == ""
    assert metrics["sentences"] == 3 and metrics["truncated"] == 1
    assert metrics["left_out"] == {
        "empty_source": {"count": 1, "lines": [2]},
        "empty_target": {"count": 1, "lines": [5]},
    }
    kept = [0, 2, 3]
    expected = translation_scores(
        [translations[i] for i in kept], [PAIRS.targets[i] for i in kept], "de"
    )
    assert {name: metrics[name] for name in expected} == expected
    assert "tokenized_lowercase_bleu" in expected and "chrf_signature" in expected
    assert metrics["loss"] == pytest.approx(
        teacher_forced(model, prepare_pairs(model, PAIRS))["loss"]
    )


def test_a_language_without_rules_is_told():
    check_language("de")
    with pytest.raises(ValueError, match="`language` must be one of"):
        check_language("xx")


def test_epochs_are_measured_with_the_search_only_on_wish(model):
    prepared = prepare_pairs(model, PAIRS.select([0, 2]))
    forced = {"loss", "perplexity", "accuracy"}
    assert set(MeasuredPairs(prepared).measured(model)) == forced
    greedy = searcher_of(model, 1)
    assert greedy.transformer is model.transformer and (greedy.beam_size, model.beam_size) == (1, 2)
    found = MeasuredPairs(prepared, greedy).measured(model)
    assert forced < set(found) and "tokenized_lowercase_bleu" not in found
    expected = translation_scores(greedy.translations(prepared.text.sources), prepared.text.targets)
    assert found["bleu"] == expected["bleu"]
