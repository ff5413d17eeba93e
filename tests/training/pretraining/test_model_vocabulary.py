import pytest

from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.pretraining.model import VOCABULARY, run_vocabulary
from kbert.training.pretraining.sources import read_text
from kbert.training.runs.run_directory import write_config
from tests.training.tiny_corpus import TinyCorpus
from tests.training.tiny_runs import TOKENS, WORDS


@pytest.fixture(scope="module")
def tiny_corpus(tmp_path_factory):
    return TinyCorpus(tmp_path_factory.mktemp("corpus"))


def test_where_it_comes_from(tiny_corpus, tmp_path):
    config = tiny_corpus.config(tmp_path / "run")
    corpus = read_text(config).train
    assert run_vocabulary(config, corpus).tokens == tuple(TOKENS)
    missing = config.with_values(vocabulary=str(tmp_path / "none.txt"))
    with pytest.raises(FileNotFoundError, match="`path` must be a vocabulary file"):
        run_vocabulary(missing, corpus)
    # A run that goes on has kept its own.
    assert run_vocabulary(config, corpus, tmp_path).tokens == tuple(TOKENS)
    own = [*TOKENS, "more"]
    (tmp_path / VOCABULARY).write_text("".join(f"{token}\n" for token in own))
    assert run_vocabulary(missing, corpus, tmp_path).tokens == tuple(own)
    sizes = dict.fromkeys(["num_layers", "hidden_dim", "num_heads", "intermediate_dim"])
    going_on = {**sizes, "vocabulary": None, "encoder": "e", "positions": 512}
    assert run_vocabulary(config.with_values(**going_on), corpus) is None


def test_a_run_that_goes_on_takes_no_other(tiny_corpus, tmp_path):
    config = tiny_corpus.config(tmp_path / "run", allow_config_change=True)
    corpus = read_text(config).train
    write_config(config, tmp_path)
    (tmp_path / VOCABULARY).write_text("".join(f"{token}\n" for token in TOKENS))
    more = config.with_values(steps=9)
    assert run_vocabulary(more, corpus, tmp_path).tokens == tuple(TOKENS)
    learned = {"vocabulary": None, "vocabulary_size": 100}
    for values, names in (
        ({"vocabulary": "other.txt"}, "`vocabulary`"),
        ({"lowercase": False}, "`lowercase`"),
        (learned, "`vocabulary`, `vocabulary_size`"),
    ):
        with pytest.raises(ValueError, match=f"^{names} must be as the run began with, even with"):
            run_vocabulary(config.with_values(**values), corpus, tmp_path)


def test_it_is_learned_from_the_text(tiny_corpus, tmp_path):
    config = tiny_corpus.config(tmp_path / "run", vocabulary=None, vocabulary_size=100)
    corpus = read_text(config).train
    vocabulary = run_vocabulary(config, corpus)
    assert len(vocabulary) <= 100
    tokenizer = WordPiece(vocabulary)
    assert all("[UNK]" not in tokenizer.tokens(word) for word in WORDS)
    short = [word for word in WORDS if len(tokenizer.tokens(word)) == 1]
    assert len(short) > len(WORDS) / 2
    assert run_vocabulary(config, corpus).tokens == vocabulary.tokens
    with pytest.raises(ValueError, match="`vocabulary_size` must be at least"):
        run_vocabulary(config.with_values(vocabulary_size=20), corpus)
    (tmp_path / "blank.txt").write_text(" \n")
    blank = read_text(config.with_values(text=[str(tmp_path / "blank.txt")])).train
    with pytest.raises(ValueError, match="`text` must hold words to learn .* Received: .*blank.t"):
        run_vocabulary(config, blank)
