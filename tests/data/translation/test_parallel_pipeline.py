"""Sentence pairs as batches, against a padding of each pair by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.batches.packed_examples import TokenRows, pack_examples, token_rows
from kbert.data.features.text_features import TextFeatures
from kbert.data.translation.parallel_batches import Bucket
from kbert.data.translation.parallel_pipeline import PackedPairs, parallel_dataset
from kbert.text.subword_training import train_subwords
from tests.few_examples import few_examples
from tests.small_pipelines import TOKENIZER

PAD, START, END = 0, 2, 3


def rows_of(lengths, base):
    """Texts whose tokens tell text and place, before the end: text 3 is base + 301, 302, ..."""
    texts = [[base + 100 * i + 1 + k for k in range(n - 1)] + [END] for i, n in enumerate(lengths)]
    counts = np.array(lengths, "int32")
    ids = np.array([token for text in texts for token in text], "int32")
    starts = np.cumsum(counts, dtype="int64") - counts
    return texts, TokenRows(ids, starts, counts, np.zeros(len(counts), bool), START, PAD)


def pairs_of(source_lengths, target_lengths):
    sources, packed_sources = rows_of(source_lengths, 10_000)
    targets, packed_targets = rows_of(target_lengths, 50_000)
    return sources, targets, PackedPairs(packed_sources, packed_targets)


def padded(texts, width, filler):
    return [text + [filler] * (width - len(text)) for text in texts]


LENGTHS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12)


@few_examples(10)
@given(LENGTHS, st.integers(1, 40), st.booleans())
def test_every_pair_stands_in_one_batch_as_padded_by_hand(lengths, budget, shuffle):
    sources, targets, pairs = pairs_of(*zip(*lengths))
    seen = []
    for inputs, labels in parallel_dataset(pairs, budget, shuffle=shuffle, seed=3):
        rows = [(int(row[0]) - 10_001) // 100 for row in inputs["source_token_ids"]]
        # A text of the end alone does not tell its number: found by elimination.
        for place, row in enumerate(inputs["source_token_ids"].numpy()):
            if row[0] == END:
                label = labels[place].numpy()
                alike = [
                    i
                    for i in range(len(sources))
                    if sources[i] == [END]
                    and i not in seen
                    and i not in rows[:place]
                    and targets[i] == [t for t in label if t >= 0]
                ]
                rows[place] = alike[0]
        seen += rows
        some, theirs = [sources[i] for i in rows], [targets[i] for i in rows]
        source_width, width = max(map(len, some)), max(map(len, theirs))
        assert len(rows) == 1 or len(rows) * max(source_width, width) <= budget
        assert inputs["source_token_ids"].numpy().tolist() == padded(some, source_width, PAD)
        mask = [[True] * len(t) + [False] * (source_width - len(t)) for t in some]
        assert inputs["source_padding_mask"].numpy().tolist() == mask
        before = [[START, *text[:-1]] for text in theirs]
        found = inputs["target_token_ids"].numpy()
        for row, text in enumerate(before):
            assert found[row, : len(text)].tolist() == text
        assert labels.numpy().tolist() == padded(theirs, width, -1)
    assert sorted(seen) == list(range(len(sources)))


def test_fixed_shapes_are_filled_up_with_rows_that_count_nothing():
    sources, targets, pairs = pairs_of([3, 5, 7, 2, 8], [4, 4, 8, 3, 6])
    buckets = [Bucket(4, 4), Bucket(2, 8)]
    shapes = {(bucket.rows, bucket.length) for bucket in buckets}
    tokens = 0
    for inputs, labels in parallel_dataset(pairs, buckets=buckets, shuffle=True):
        assert tuple(labels.shape) in shapes
        assert inputs["source_token_ids"].shape == inputs["target_token_ids"].shape == labels.shape
        filled = np.all(labels.numpy() < 0, axis=-1)
        assert not inputs["source_padding_mask"].numpy()[filled].any()
        tokens += int(np.sum(labels.numpy() >= 0))
    assert tokens == 4 + 4 + 8 + 3 + 6


def test_accumulated_batches_have_the_weights_of_one_large_batch():
    # Budget 8: batches of 1 + 2 pairs (by hand: lengths 8; 4, 4; 2, 2 -> tokens 8, 8, 4).
    _, _, pairs = pairs_of([8, 4, 4, 2, 2], [8, 4, 4, 2, 2])
    batches = list(parallel_dataset(pairs, 8, accumulation_steps=2))
    assert len(batches) == 2  # the third makes no whole update
    weights = [batch[2].numpy() for batch in batches]
    assert [len(w) for w in weights] == [1, 2]
    np.testing.assert_allclose(np.concatenate(weights), 1.0)
    _, _, uneven = pairs_of([8, 2, 2], [8, 2, 2])
    weights = [batch[2].numpy() for batch in parallel_dataset(uneven, 8, accumulation_steps=2)]
    # 2 n_i / (n_1 + n_2) with n = 8, 4.
    np.testing.assert_allclose(weights[0], [16 / 12])
    np.testing.assert_allclose(weights[1], [8 / 12] * 2)


def test_a_rest_of_an_epoch_is_what_the_whole_one_ends_with():
    _, _, pairs = pairs_of(range(1, 10), range(9, 0, -1))
    options = {"batch_tokens": 20, "shuffle": True, "seed": 4}
    twice = parallel_dataset(pairs, **options)
    epochs = [[labels.numpy().tolist() for _, labels in twice] for _ in range(2)]
    assert epochs[0] != epochs[1]
    rest = parallel_dataset(pairs, **options, first_epoch=1, first_batch=2)
    assert [labels.numpy().tolist() for _, labels in rest] == epochs[1][2:]
    assert rest.cardinality().numpy() == len(epochs[1]) - 2


def text_features(lengths):
    """What stands for BERT's states: text i, place k is [i, k]."""
    states = [[i, k] for i, length in enumerate(lengths) for k in range(length)]
    return TextFeatures(
        [np.array(states, "float16")], np.zeros_like(lengths), np.cumsum(lengths) - lengths, lengths
    )


def test_a_bert_reads_the_same_rows():
    texts = ["a good film", "the film", "a very good film!"]
    bert = pack_examples(TOKENIZER, texts)
    _, _, pairs = pairs_of([4, 3, 5], [2, 4, 3])
    pairs = PackedPairs(pairs.sources, pairs.targets, bert)
    for inputs, _ in parallel_dataset(pairs, 8):
        for row, first in enumerate(inputs["source_token_ids"][:, 0].numpy()):
            i = (int(first) - 10_001) // 100
            real = inputs["bert_padding_mask"][row].numpy()
            ids = inputs["bert_token_ids"][row].numpy()[real]
            begin = bert.starts[i]
            assert ids.tolist() == bert.token_ids[begin : begin + bert.lengths[i]].tolist()
    for inputs, _ in parallel_dataset(pairs, 8, bert_states=text_features(bert.lengths)):
        assert "bert_token_ids" not in inputs
        for row, first in enumerate(inputs["source_token_ids"][:, 0].numpy()):
            i = (int(first) - 10_001) // 100
            states = inputs["bert_states"][row].numpy()
            assert states.dtype == "float16"
            assert states[: bert.lengths[i]].tolist() == [[i, k] for k in range(bert.lengths[i])]
            assert inputs["bert_padding_mask"][row].numpy().sum() == bert.lengths[i]


@pytest.mark.parametrize("has_states", [False, True])
def test_a_bert_of_fixed_batches_has_one_length_that_is_known_before(has_states):
    texts = ["a", "a red film", "rain and sun", "good", "rain"]
    bert = pack_examples(TOKENIZER, texts)
    longest = max(bert.lengths)
    _, _, pairs = pairs_of([2, 3, 2, 2, 3], [2, 2, 3, 2, 2])
    pairs = PackedPairs(pairs.sources, pairs.targets, bert)
    states = text_features(bert.lengths) if has_states else None
    dataset = parallel_dataset(pairs, buckets=[Bucket(2, 4)], bert_states=states)
    name = "bert_states" if has_states else "bert_token_ids"
    assert dataset.element_spec[0][name].shape[:2] == (2, longest)
    found = [inputs for inputs, _ in dataset]
    assert len(found) == 3  # whose longest texts differ
    assert {tuple(one[name].shape[:2]) for one in found} == {(2, longest)}
    assert {one["bert_padding_mask"].shape for one in found} == {(2, longest)}
    lengths = sorted(np.concatenate([one["bert_padding_mask"].numpy().sum(1) for one in found]))
    assert lengths == [0, *sorted(bert.lengths)]  # with a row of padding


def test_what_does_not_fit_is_refused():
    _, _, pairs = pairs_of([2, 3], [2, 3])
    _, fewer = rows_of([2], 0)
    with pytest.raises(ValueError, match="2 sources and 1 targets"):
        parallel_dataset(PackedPairs(pairs.sources, fewer))
    with pytest.raises(ValueError, match="`pairs.bert` must be given with `bert_states`"):
        parallel_dataset(pairs, bert_states=text_features([1, 1]))
    fused = PackedPairs(pairs.sources, pairs.targets, pack_examples(TOKENIZER, ["a", "a film"]))
    for lengths in ([3, 3], [3, 4, 3]):
        with pytest.raises(ValueError, match="`bert_states` must be of the texts in `pairs`"):
            parallel_dataset(fused, bert_states=text_features(lengths))


@pytest.mark.parametrize("rows", [[2, 0], [1], []])
def test_some_pairs_are_as_if_there_were_no_others(rows, tmp_path):
    texts = ["the red film", "good", "rain and sun"]
    translations = ["rot film", "gut", "regen sonne"]
    pieces = train_subwords([texts, translations], tmp_path / "m", vocabulary_size=30)

    def packed(some):
        bert = pack_examples(TOKENIZER, [texts[i] for i in some], max_sequence_length=4)
        sides = ([side[i] for i in some] for side in (texts, translations))
        return PackedPairs(*(token_rows(pieces, side, 6) for side in sides), bert)

    found, expected = packed(range(3)).select(np.array(rows, "int64")), packed(rows)
    assert len(found) == len(rows)
    for side in ("sources", "targets", "bert"):
        for name, value in vars(getattr(expected, side)).items():
            np.testing.assert_array_equal(getattr(getattr(found, side), name), value, name)
