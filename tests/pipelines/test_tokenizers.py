"""Tokenizers of checkpoints and of files, and what a checkpoint keeps of one."""

import pytest
import tensorflow as tf

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.pipelines import tokenizers
from kbert.pipelines.tokenizers import (
    pretrained_tokenizer,
    put_tokenizer,
    settings_of,
    tokenizer_of,
    tokenizer_of_file,
)
from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
from kbert.text.vocabulary import ROBERTA_TOKENS, Vocabulary, byte_characters
from kbert.text.wordpiece.wordpiece import WordPiece
from tests.small_pipelines import small_classifier

WORDS = Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "ä", "Ab"])
BYTES = Vocabulary([*ROBERTA_TOKENS.names, *byte_characters(), "ab"], ROBERTA_TOKENS)


def checkpoint_with(tokenizer):
    checkpoint = Checkpoint({}, {})
    put_tokenizer(tokenizer, checkpoint)
    return checkpoint


@pytest.mark.parametrize(
    "tokenizer",
    [
        WordPiece(WORDS, lowercase=False, strip_accents=True, handle_cjk=False),
        ByteLevelBPE(BYTES, [("a", "b")], add_prefix_space=True, trim_offsets=False),
    ],
    ids=["wordpiece", "byte_level_bpe"],
)
def test_what_is_put_is_found(tokenizer):
    checkpoint = checkpoint_with(tokenizer)
    assert checkpoint.has_vocabulary
    found = tokenizer_of(checkpoint)
    assert type(found) is type(tokenizer) and found.get_config() == tokenizer.get_config()
    # What a text model has saved counts before its files, and an argument before both.
    name = tokenizer.rules[0]
    checkpoint.pipeline = {name: not getattr(tokenizer, name), "class": "Classifier"}
    other = tokenizer_of(checkpoint, special_tokens_in_text=True)
    assert settings_of(other)[name] != settings_of(tokenizer)[name]
    assert settings_of(other)["special_tokens_in_text"]
    assert tokenizer_of(checkpoint, **{name: getattr(tokenizer, name)}).get_config() == (
        tokenizer.get_config()
    )


def test_settings_of_the_other_kind_are_left_out():
    found = tokenizer_of(checkpoint_with(ByteLevelBPE(BYTES, [])), strip_accents=True)
    assert isinstance(found, ByteLevelBPE)
    found = tokenizer_of(checkpoint_with(WordPiece(WORDS)), add_prefix_space=True)
    assert isinstance(found, WordPiece)


def test_files(tmp_path):
    WORDS.save(tmp_path / "vocab.txt")
    found = tokenizer_of_file(tmp_path / "vocab.txt", lowercase=False)
    assert isinstance(found, WordPiece) and found.vocabulary == WORDS and not found.lowercase
    ByteLevelBPE(BYTES, [("a", "b")]).save(tmp_path)
    found = tokenizer_of_file(tmp_path / "vocab.json", special_tokens_in_text=True)
    assert isinstance(found, ByteLevelBPE) and found.vocabulary == BYTES
    ids = found.tokenize(tf.constant(["ab<mask>"])).to_list()
    assert ids == [[BYTES.id_of("ab"), BYTES.mask_id]]
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(ValueError, match="must have both vocab.json and merges.txt"):
        tokenizer_of_file(tmp_path / "vocab.json")
    # The file that was given counts, whatever its name is, and whatever is beside it.
    ByteLevelBPE(BYTES, [("a", "b")]).save(tmp_path)
    other = Vocabulary([*BYTES.tokens, "ba"], ROBERTA_TOKENS)
    (tmp_path / "other.json").write_bytes(ByteLevelBPE(other, []).files()["vocab.json"])
    found = tokenizer_of_file(tmp_path / "other.json")
    assert found.vocabulary == other and len(found.merges) == 1
    with pytest.raises(FileNotFoundError, match="`path` must be a vocabulary file"):
        tokenizer_of_file(tmp_path / "none.json")


def test_the_tokenizer_of_a_folder(tmp_path):
    model = small_classifier()
    model.save_pretrained(tmp_path / "model")
    found = WordPiece.from_pretrained(tmp_path / "model")
    assert found.get_config() == model.tokenizer.get_config()
    assert Vocabulary.from_pretrained(str(tmp_path / "model")) == model.tokenizer.vocabulary
    assert WordPiece.from_pretrained(tmp_path / "model", handle_cjk=False).handle_cjk is False
    with pytest.raises(ValueError, match="must have the tokenizer ByteLevelBPE. .* has WordPiece"):
        ByteLevelBPE.from_pretrained(tmp_path / "model")
    with pytest.raises(TypeError, match="WordPiece must be given settings .*Received: lower"):
        WordPiece.from_pretrained(tmp_path / "model", lower=True)
    with pytest.raises(FileNotFoundError, match="Did you mean `all-MiniLM-L6-v2`"):
        Vocabulary.from_pretrained("all-MiniLM-L6")


def test_the_tokenizer_of_a_published_encoder(minilm_directory):
    found = WordPiece.from_pretrained("all-MiniLM-L6-v2")
    assert len(found.vocabulary) == 30522 and found.lowercase  # of bert-base-uncased
    assert found.tokenize(tf.constant(["hello world"])).to_list() == [[7592, 2088]]


def test_a_byte_level_tokenizer_is_found_too(monkeypatch):
    checkpoint = checkpoint_with(ByteLevelBPE(BYTES, [("a", "b")]))
    monkeypatch.setattr(tokenizers, "read_checkpoint", lambda name, values: checkpoint)
    assert isinstance(pretrained_tokenizer("some"), ByteLevelBPE)
    assert ByteLevelBPE.from_pretrained("some").vocabulary == BYTES
    assert Vocabulary.from_pretrained("some") == BYTES
    with pytest.raises(ValueError, match="must have the tokenizer WordPiece"):
        WordPiece.from_pretrained("some")
