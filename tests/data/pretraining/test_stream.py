"""The stream of examples: against each block alone, for any number of workers, from anywhere."""

from dataclasses import astuple
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbert.data.pretraining.corpus import Corpus
from kbert.data.pretraining.examples import ExampleMaker
from kbert.data.pretraining.stream import CorpusPosition, ExampleStream
from tests.data.small_corpora import documents, text_of, written
from tests.small_pipelines import TOKENIZER

MAKER = ExampleMaker(TOKENIZER, 24)


def rows(examples):
    """Examples as tuples."""
    ends = np.cumsum(examples.lengths)
    texts = np.split(examples.token_ids, ends[:-1]) if len(ends) else []
    columns = (examples.first_lengths, examples.is_random_next, examples.seeds)
    return [
        (tuple(text.tolist()), *(int(value) for value in values))
        for text, *values in zip(texts, *columns)
    ]


def all_rows(stream):
    return [row for batch in stream.batches() for row in rows(batch)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Ten blocks or so, of plain and gzipped files."""
    folder = tmp_path_factory.mktemp("stream")
    names = ("a.txt", "b.txt.gz", "c.txt")
    paths = [
        written(folder / name, text_of(documents(count, seed=count)))
        for name, count in zip(names, (25, 12, 1))
    ]
    return Corpus(paths, block_bytes=1024)


@pytest.fixture(scope="module")
def by_block(corpus):
    """For each of two epochs, the examples that each block gives by itself, in their order."""
    return [
        [row for block in corpus.blocks() for row in rows(MAKER.make(block, 5, epoch))]
        for epoch in range(2)
    ]


def test_without_shuffling_the_order_is_that_of_the_text(corpus, by_block):
    found = all_rows(ExampleStream(corpus, MAKER, 7, seed=5, shuffle=False, epochs=2))
    assert found == by_block[0] + by_block[1]
    assert len(by_block[0]) > 100 and set(by_block[0]).isdisjoint(by_block[1])


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_make_the_same_examples(corpus, by_block, workers):
    """Each worker's epochs follow each other; together they make each example of an epoch once."""
    found = [
        all_rows(
            ExampleStream(
                corpus, MAKER, 7, seed=5, window_blocks=3, worker=w, workers=workers, epochs=2
            )
        )
        for w in range(workers)
    ]
    assert sorted(row for each in found for row in each) == sorted(by_block[0] + by_block[1])
    for each in found:
        in_first = [row in set(by_block[0]) for row in each]
        assert in_first == sorted(in_first, reverse=True)


def test_order(corpus, by_block):
    """Another one for each seed and epoch, and never far from its window."""
    size = 4
    first, again, other = (
        all_rows(ExampleStream(corpus, MAKER, 7, seed=5, window_blocks=n, epochs=1))
        for n in (size, size, size + 1)
    )
    assert first == again != other and sorted(first) == sorted(other) and first != by_block[0]
    windows, begin = [], 0
    blocks = list(corpus.blocks(5, 0))
    assert len(blocks) >= 10
    for i in range(0, len(blocks), size):
        window = [row for block in blocks[i : i + size] for row in rows(MAKER.make(block, 5, 0))]
        windows.append(window)
        assert sorted(first[begin : begin + len(window)]) == sorted(window)
        assert first[begin : begin + len(window)] != window
        begin += len(window)


def test_batches_are_full_but_for_the_last(corpus, by_block):
    stream = ExampleStream(corpus, MAKER, 16, seed=5, epochs=2)
    sizes = [len(batch) for batch in stream.batches()]
    count = len(by_block[0]) + len(by_block[1])
    assert sizes == [16] * (count // 16) + [count % 16] * (count % 16 > 0)


def test_more_threads_make_the_same(corpus):
    one, three = (
        all_rows(ExampleStream(corpus, MAKER, 5, seed=5, threads=n, window_blocks=2, epochs=1))
        for n in (1, 3)
    )
    assert one == three


def test_a_window_of_blocks_is_tokenized_once(corpus, by_block):
    """The others, which would not fit, in each epoch; and what is made is the same."""
    maker = ExampleMaker(TOKENIZER, 24)
    tokenize, seen = maker.tokenize, []
    maker.tokenize = lambda block: seen.append((block.run, block.number)) or tokenize(block)
    found = all_rows(ExampleStream(corpus, maker, 7, seed=5, window_blocks=4, epochs=2))
    assert sorted(found) == sorted(by_block[0] + by_block[1])
    blocks = len(list(corpus.blocks()))
    assert len({*seen}) == blocks and len(seen) == 2 * blocks - 4


@settings(max_examples=12)
@given(
    st.integers(1, 40),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from([(0, 1), (1, 2)]),
    st.integers(0, 10**6),
)
def test_going_on_from_any_batch(corpus, batch_size, window_blocks, shuffle, share, number):
    """Also from a stream that has been taken up itself, with another size of batches."""
    worker, workers = share
    arguments = {"seed": 5, "shuffle": shuffle, "window_blocks": window_blocks, "epochs": 2}
    arguments |= {"worker": worker, "workers": workers}
    whole = ExampleStream(corpus, MAKER, batch_size, **arguments)
    batches = [rows(batch) for batch in whole.batches()]
    done = number % (len(batches) + 1)
    position = whole.position(done)
    assert all(type(value) is int for value in astuple(position))
    rest = ExampleStream(corpus, MAKER, batch_size, **arguments, first_position=position)
    assert [rows(batch) for batch in rest.batches()] == batches[done:]
    if done < len(batches):
        flat = [row for batch in batches[done:] for row in batch]
        position = rest.position(min(1, len(batches) - done))
        third = ExampleStream(corpus, MAKER, 3, **arguments, first_position=position)
        assert all_rows(third) == flat[batch_size:]


def test_position_while_reading(corpus):
    """Known after each batch, though more is made ahead; a second pass finds the same."""
    stream = ExampleStream(corpus, MAKER, 10, seed=1, window_blocks=2)
    seen = []
    for number, batch in enumerate(islice(stream.batches(), 60)):
        seen.append((stream.position(number), rows(batch)))
    assert seen[0][0] == CorpusPosition() and seen[-1][0].epoch >= 1
    for number, (position, expected) in enumerate(seen):
        assert stream.position(number) == position
        if number % 20 == 7:
            own = ExampleStream(
                corpus, MAKER, 10, seed=1, window_blocks=2, first_position=position
            )
            assert rows(next(iter(own.batches()))) == expected
    assert [rows(batch) for batch in islice(stream.batches(), 60)] == [made for _, made in seen]


def test_no_more_is_read_than_two_windows(corpus, monkeypatch):
    """So memory does not grow with the corpus."""
    count = 0
    blocks = Corpus.blocks

    def counted(self, *arguments, **kwargs):
        nonlocal count
        for block in blocks(self, *arguments, **kwargs):
            count += 1
            yield block

    monkeypatch.setattr(Corpus, "blocks", counted)
    assert len(list(blocks(corpus))) >= 10
    for threads in (1, 2):
        count = 0
        stream = ExampleStream(corpus, MAKER, 4, window_blocks=2, threads=threads)
        batches = stream.batches()
        next(batches)
        batches.close()
        # Of two windows, and what the threads have begun.
        assert count <= 4 + threads


# --- bad input ----------------------------------------------------------------------------------


def test_nothing_to_make_examples_of(tmp_path):
    single = Corpus([written(tmp_path / "a.txt", "One sentence.\n\nAnother one.\n")])
    with pytest.raises(
        ValueError,
        match="The corpus must have documents of two sentences and more, or no pairs .* Received: "
        r"no example for worker 0 in epoch 0 of .*a\.txt",
    ):
        list(ExampleStream(single, MAKER, 2).batches())
    alone = ExampleMaker(TOKENIZER, 24, next_sentence=False)
    assert len(all_rows(ExampleStream(single, alone, 2, epochs=1))) == 2
    for name, text in (("b.txt", "\n \n\n"), ("c.txt", "\u200b\n")):
        empty = Corpus([written(tmp_path / name, text)])
        with pytest.raises(ValueError, match="must have text. Received: no example .* of .*txt"):
            list(ExampleStream(empty, alone, 2).batches())


def test_more_workers_than_blocks(tmp_path):
    corpus = Corpus([written(tmp_path / "a.txt", "One. Two. Three.")])
    makers = [ExampleStream(corpus, MAKER, 1, worker=w, workers=2, epochs=1) for w in range(2)]
    with pytest.raises(ValueError, match=r"at least 2 blocks \(see `block_bytes`\) for as many wo"):
        for stream in makers:
            list(stream.batches())


def test_broken_text_is_named_where_it_is_read(tmp_path):
    good = text_of(documents(900)).encode()
    path = written(tmp_path / "a.txt", good + b"\xff\n" + good)
    stream = ExampleStream(Corpus([path], block_bytes=4096), MAKER, 8, shuffle=False, threads=2)
    line = good.count(b"\n") + 1
    with pytest.raises(ValueError, match=rf"a\.txt, line {line}: the file must be UTF-8 text"):
        list(stream.batches())


@pytest.mark.parametrize("name, value", [
    ("batch_size", 0), ("seed", -1), ("window_blocks", 0), ("threads", 0),
])
def test_numbers_that_make_no_sense(corpus, name, value):
    arguments = {"batch_size": 2, name: value}
    with pytest.raises(ValueError, match=f"`{name}` must be at least .* Received: {name}={value}"):
        ExampleStream(corpus, MAKER, **arguments)


def test_other_wrong_arguments(corpus):
    with pytest.raises(ValueError, match="`worker` must be .* Received: worker=-1, workers=1"):
        ExampleStream(corpus, MAKER, 2, worker=-1)
    stream = ExampleStream(corpus, MAKER, 2, epochs=1)
    with pytest.raises(ValueError, match="`batches` must be at most as many .*: batches=1$"):
        stream.position(1)
    batches = len(list(stream.batches()))
    assert stream.position(batches).epoch == 0
    for number in (batches + 1, -1):
        with pytest.raises(ValueError, match=f"as were read. Received: batches={number}"):
            stream.position(number)
