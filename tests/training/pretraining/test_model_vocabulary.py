import pytest

from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.pretraining.model import run_tokenizer
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
    assert run_tokenizer(config, corpus).vocabulary.tokens == tuple(TOKENS)
    missing = config.with_values(vocabulary=str(tmp_path / "none.txt"))
    with pytest.raises(FileNotFoundError, match="`path` must be a vocabulary file"):
        run_tokenizer(missing, corpus)
    # A run that goes on has kept its own.
    assert run_tokenizer(config, corpus, tmp_path).vocabulary.tokens == tuple(TOKENS)
    own = [*TOKENS, "more"]
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in own))
    assert run_tokenizer(missing, corpus, tmp_path).vocabulary.tokens == tuple(own)
    sizes = dict.fromkeys(["num_layers", "hidden_dim", "num_heads", "intermediate_dim"])
    going_on = {**sizes, "vocabulary": None, "encoder": "e", "positions": 512}
    assert run_tokenizer(config.with_values(**going_on), corpus) is None


def test_a_run_that_goes_on_takes_no_other(tiny_corpus, tmp_path):
    config = tiny_corpus.config(tmp_path / "run", allow_config_change=True)
    corpus = read_text(config).train
    write_config(config, tmp_path)
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))
    more = config.with_values(steps=9)
    assert run_tokenizer(more, corpus, tmp_path).vocabulary.tokens == tuple(TOKENS)
    learned = {"vocabulary": None, "vocabulary_size": 100}
    for values, names in (
        ({"vocabulary": "other.txt"}, "`vocabulary`"),
        ({"lowercase": False}, "`lowercase`"),
        (learned, "`vocabulary`, `vocabulary_size`"),
    ):
        with pytest.raises(ValueError, match=f"^{names} must be as the run began with, even with"):
            run_tokenizer(config.with_values(**values), corpus, tmp_path)


def test_it_is_learned_from_the_text(tiny_corpus, tmp_path):
    config = tiny_corpus.config(tmp_path / "run", vocabulary=None, vocabulary_size=100)
    corpus = read_text(config).train
    tokenizer = run_tokenizer(config, corpus)
    vocabulary = tokenizer.vocabulary
    assert isinstance(tokenizer, WordPiece) and len(vocabulary) <= 100
    assert all("[UNK]" not in tokenizer.tokens(word) for word in WORDS)
    short = [word for word in WORDS if len(tokenizer.tokens(word)) == 1]
    assert len(short) > len(WORDS) / 2
    assert run_tokenizer(config, corpus).vocabulary == vocabulary
    with pytest.raises(ValueError, match="`vocabulary_size` must be at least"):
        run_tokenizer(config.with_values(vocabulary_size=20), corpus)
    (tmp_path / "blank.txt").write_text(" \n")
    blank = read_text(config.with_values(text=[str(tmp_path / "blank.txt")])).train
    with pytest.raises(ValueError, match="`text` must hold words to learn .* Received: .*blank.t"):
        run_tokenizer(config, blank)


def test_bytes_as_tokens(tiny_corpus, tmp_path):
    """A new RoBERTa learns merges, keeps them when it is resumed, and takes no vocab.txt."""
    own = {"architecture": "roberta", "objective": "mlm", "vocabulary": None}
    config = tiny_corpus.config(tmp_path / "run", **own, vocabulary_size=300)
    corpus = read_text(config).train
    tokenizer = run_tokenizer(config, corpus)
    assert isinstance(tokenizer, ByteLevelBPE) and tokenizer.special_tokens_in_text
    assert 261 < len(tokenizer.vocabulary) <= 300
    tokens = sum(len(tokenizer.tokens(f" {word}")) for word in WORDS)
    assert tokens < sum(map(len, WORDS)) / 1.5
    write_config(config, tmp_path)
    for name, content in tokenizer.files().items():
        (tmp_path / name).write_bytes(content)
    assert run_tokenizer(config, None, tmp_path).get_config() == tokenizer.get_config()
    file = config.with_values(vocabulary=str(tmp_path / "vocab.json"), vocabulary_size=None)
    assert run_tokenizer(file, None).get_config() == tokenizer.get_config()
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))
    with pytest.raises(ValueError, match="must be a vocab.json with architecture='roberta'"):
        run_tokenizer(file.with_values(vocabulary=str(tmp_path / "vocab.txt")), None)
    with pytest.raises(ValueError, match="must be a vocab.txt with architecture='bert'"):
        run_tokenizer(file.with_values(architecture="bert"), None)
    (tmp_path / "blank.txt").write_text(" \n")
    blank = read_text(config.with_values(text=[str(tmp_path / "blank.txt")])).train
    with pytest.raises(ValueError, match="`text` must hold words to learn .* Received: .*blank.t"):
        run_tokenizer(config, blank)
