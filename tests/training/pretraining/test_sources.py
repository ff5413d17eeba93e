import os
from types import SimpleNamespace

import numpy as np
import pytest

from kbert.data.pretraining.corpus import Corpus
from kbert.data.pretraining.examples import ExampleMaker
from kbert.data.pretraining.stream import ExampleStream
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.pretraining import sources as pretraining_data
from kbert.training.pretraining.sources import (
    check_examples,
    input_speed,
    next_pass,
    place_after,
    read_text,
    train_batches,
    validation_batches,
)
from tests.training.tiny_corpus import TinyCorpus


@pytest.fixture(scope="module")
def tiny_corpus(tmp_path_factory):
    return TinyCorpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def tokenizer(tiny_corpus):
    vocabulary = Vocabulary.from_file(tiny_corpus.vocabulary)
    return WordPiece(vocabulary, special_tokens_in_text=True)


def test_parts_have_no_file_in_common(tiny_corpus, tmp_path):
    config = tiny_corpus.config(tmp_path / "run")
    about = read_text(config).about()
    assert about["train"]["files"] == 2 and about["validation"]["files"] == 1
    sizes = [os.path.getsize(tiny_corpus.folder / f"part{n}.txt") for n in range(2)]
    assert about["train"]["bytes"] == sum(sizes)
    both = config.with_values(validation=[str(tiny_corpus.folder / "*.txt")])
    with pytest.raises(ValueError, match="`validation` must be other files than.*part0.txt"):
        read_text(both)
    alone = tiny_corpus.config(tmp_path / "run", validation=None, validation_steps=None)
    assert read_text(alone).validation is None


def test_speed_of_the_input_is_that_of_whole_blocks(tiny_corpus, tokenizer, tmp_path, monkeypatch):
    """However slow the first block is, all of its batches count, and none of the second."""
    config = tiny_corpus.config(tmp_path / "run", objective="mlm")
    corpus = Corpus(read_text(config).train.files, block_bytes=1024)
    stream = ExampleStream(corpus, ExampleMaker(tokenizer, 20), 4, shuffle=False, epochs=1)
    batches = list(stream.batches())
    whole = next(n for n in range(1, len(batches)) if stream.position(n).window)
    assert 1 < whole < len(batches)
    now = iter(range(0, 1000, 10))
    clock = SimpleNamespace(perf_counter=lambda: float(next(now)))
    monkeypatch.setattr(pretraining_data, "time", clock)
    found = input_speed(config, corpus, tokenizer)  # asked the time before, once within, and after
    assert found == whole * 4 * 20 / 20


def test_text_that_ends_in_other_bytes_is_told_while_speed_is_measured(
    tiny_corpus, tokenizer, tmp_path
):
    broken = tmp_path / "broken.txt"
    broken.write_bytes(b"the film\nthe plot\n\n" * 5000 + b"the \xe9\n")
    config = tiny_corpus.config(tmp_path / "run", text=[str(broken)])
    with pytest.raises(ValueError, match=r"broken.txt, line 15001: the file must be UTF-8.*0xe9"):
        input_speed(config, read_text(config).train, tokenizer)


def test_text_without_an_example_is_told_before_the_training(tiny_corpus, tokenizer, tmp_path):
    alone = tmp_path / "alone.txt"
    alone.write_text("the film\n\nthe plot\n")
    values = {"validation": [str(alone)]}
    config = tiny_corpus.config(tmp_path / "run", objective="mlm", **values)
    check_examples(config, read_text(config), tokenizer)
    config = tiny_corpus.config(tmp_path / "run", **values)
    message = "The corpus must have documents of two sentences and more.*alone.txt"
    with pytest.raises(ValueError, match=message):
        check_examples(config, read_text(config), tokenizer)


def test_batches_go_on_where_they_were(tiny_corpus, tokenizer, tmp_path):
    config = tiny_corpus.config(tmp_path / "run")
    corpus = read_text(config).train
    whole = train_batches(config, corpus, tokenizer, {})
    expected = list(whole.take(40).as_numpy_iterator())
    assert expected[0][0]["token_ids"].shape == (4, 20)
    first = train_batches(config, corpus, tokenizer, {})
    list(first.take(13))
    place = place_after(first, 13)
    assert set(place) == {"epoch", "window", "example"} and place["example"] + place["epoch"] > 0
    rest = train_batches(config, corpus, tokenizer, place).take(27).as_numpy_iterator()
    for found, wanted in zip(rest, expected[13:], strict=True):
        for one, other in zip(found, wanted, strict=True):
            assert one.keys() == other.keys()
            for name in one:
                np.testing.assert_array_equal(one[name], other[name])


def test_validation_is_the_same_each_time(tiny_corpus, tokenizer, tmp_path):
    config = tiny_corpus.config(tmp_path / "run")
    dataset = validation_batches(config, read_text(config).validation, tokenizer, 3)
    one, other = (list(dataset.as_numpy_iterator()) for _ in range(2))
    assert len(one) == len(other) == len(dataset) == 3  # Keras is told how many
    for (inputs, targets), (again, targets_again) in zip(one, other):
        np.testing.assert_array_equal(inputs["token_ids"], again["token_ids"])
        np.testing.assert_array_equal(targets["masked_tokens"], targets_again["masked_tokens"])


def test_the_next_pass_is_that_of_the_worker_that_is_furthest():
    at = {"epoch": 1, "window": 4, "example": 2}
    other = {f"{name} of worker 1": value for name, value in {**at, "epoch": 3}.items()}
    assert next_pass(at) == {"epoch": 2, "window": 0, "example": 0}
    assert next_pass({**at, **other}) == {"epoch": 4, "window": 0, "example": 0}
    assert next_pass({}) == {"epoch": 0, "window": 0, "example": 0}
    assert next_pass({"batches": 7}) == {}  # of records
