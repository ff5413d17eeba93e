import numpy as np
import pytest

from kbert.data.translation.parallel_text import ParallelText
from kbert.tasks.load import load
from kbert.training.runs.run_directory import load_run
from kbert.training.translation.inputs import check_pairs, left_out, prepare_pairs


@pytest.fixture(scope="module")
def model(finished_translation):
    return load(load_run(finished_translation).model_directory)


def text(*pairs):
    sources, targets = map(list, zip(*pairs))
    return ParallelText(sources, targets, "a.tsv", list(range(2, len(pairs) + 2)))


def test_pairs_without_a_side_are_left_out_and_long_ones_cut(model):
    pairs = text(("red dog", "rot hund"), ("", "rot"), ("red " * 60, "rot"), ("old", "\t"))
    found = prepare_pairs(model, pairs)
    assert found.text.sources == ["red dog", "red " * 60] and len(found) == 2
    assert found.packed.sources.truncated.tolist() == [False, True]
    assert found.packed.sources.lengths[1] == 24
    assert left_out(found.report) == {
        "empty_source": {"count": 1, "lines": [3]},
        "empty_target": {"count": 1, "lines": [5]},
    }
    assert found.tokens == len(found.packed.sources.token_ids) + len(
        found.packed.targets.token_ids
    )


def test_pairs_can_be_looked_at_before_a_training():
    check_pairs(text(("red", " "), ("old", "alt")))
    with pytest.raises(ValueError, match="a.tsv: there must be sentence pairs. Received: none"):
        check_pairs(text(("red", " "), ("", "alt")))


def test_the_limits_count_pieces_without_the_end(model):
    lengths = [len(ids) for ids in model.source_subwords.tokenize(["red dog", "red red"]).to_list()]
    pairs = text(("red dog", "rot"), ("red red", "rot"), ("red " * 60, "rot " * 60))
    kept = prepare_pairs(model, pairs, max_length=max(lengths))
    assert len(kept) == 2 and left_out(kept.report) == {"too_long": {"count": 1, "lines": [4]}}
    # What was cut is longer than any limit, although what is left of it would fit.
    assert len(prepare_pairs(model, pairs, max_length=23)) == 2
    ratio = prepare_pairs(model, text(("red dog old cat", "rot"), ("red", "rot")), max_ratio=1.5)
    assert ratio.text.sources == ["red"]


def test_batches_hold_the_pairs_that_stayed(model):
    pairs = text(("", "rot"), ("red dog", "rot hund"), ("old cat", "alt katze"))
    found = prepare_pairs(model, pairs)
    (inputs, labels), *others = found.dataset(model)
    assert not others and inputs["source_token_ids"].shape[0] == 2
    assert int(np.sum(labels.numpy() >= 0)) == int(found.packed.targets.lengths.sum())


def test_no_pairs_at_all(model):
    with pytest.raises(ValueError, match="a.tsv: there must be sentence pairs. Received: none."):
        prepare_pairs(model, text(("", "a"), ("b", "")))
