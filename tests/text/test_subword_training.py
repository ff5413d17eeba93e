"""What is written, from what, and how texts and arguments that will not do are named."""

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from kbert.text.subword import Subword
from kbert.text.subword_training import train_subwords
from tests.text.subword_lines import ENGLISH, GERMAN


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return tmp_path / "made" / "a.model"


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def joined(*languages: tuple[str, ...], end: str = "\n") -> bytes:
    return "".join(line + end for lines in languages for line in lines).encode()


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_the_same_text_gives_the_same_file(tmp_path: Path, model: Path, model_type: str):
    """From lists, files, gzipped ones, and with other line ends and a byte order mark."""
    options: dict[str, Any] = {"vocabulary_size": 100, "model_type": model_type}
    trained = train_subwords([ENGLISH, GERMAN], model, **options)
    assert model.read_bytes() == trained.model and len(trained) == 100
    assert [path.name for path in model.parent.iterdir()] == ["a.model"]
    sources: list[list[Any]] = [
        [ENGLISH, GERMAN],
        [[*ENGLISH, "", " ", *GERMAN]],
        [write(tmp_path / "en.txt", joined(ENGLISH)), GERMAN],
        [write(tmp_path / "both.gz", joined(ENGLISH, GERMAN))],
        [str(write(tmp_path / "dos", b"\xef\xbb\xbf" + joined(ENGLISH, GERMAN, end="\r\n")))],
        [write(tmp_path / "no_end", joined(ENGLISH, GERMAN).rstrip(b"\n"))],
    ]
    for files in sources:
        assert train_subwords(files, model, **options).model == trained.model


def test_joint_and_separate_models(tmp_path: Path):
    joint = train_subwords([ENGLISH, GERMAN], tmp_path / "joint.model", vocabulary_size=200)
    english = train_subwords([ENGLISH], tmp_path / "en.model", vocabulary_size=150)
    german = train_subwords([GERMAN], tmp_path / "de.model", vocabulary_size=150)
    rows = tf.constant(["Die Küche", "the kitchen"])
    assert not (joint.tokenize(rows).values.numpy() == joint.unknown_id).any()
    assert (english.tokenize(rows)[0].numpy() == english.unknown_id).any()
    assert not (german.tokenize(rows)[0].numpy() == german.unknown_id).any()
    assert Subword.from_file(tmp_path / "de.model") == german != english


def test_bpe_by_hand(model: Path):
    """Origin: Sennrich et al. 2016, algorithm 1: a+b stands there 5 times, c+a 3 times, a space
    before c or a twice; then c+ab 3 times, and nothing else more than twice.
    """
    trained = train_subwords([["cab cab ecab ab ab"]], model, vocabulary_size=11)
    assert trained.pieces[:6] == ["<pad>", "<unk>", "<s>", "</s>", "ab", "cab"]
    assert sorted(trained.pieces[6:]) == ["a", "b", "c", "e", "▁"]
    assert trained.tokens("cabab bac") == ["▁", "cab", "ab", "▁", "b", "a", "c"]


def test_special_ids_and_bytes(model: Path):
    trained = train_subwords([ENGLISH], model, vocabulary_size=400, byte_fallback=True)
    assert trained.pieces[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert trained.pieces[4:260] == [f"<0x{byte:02X}>" for byte in range(256)]


def test_switches_of_blanks_and_normalization(model: Path):
    def tokens(text: str, **options: Any) -> list[str]:
        return train_subwords([["ab ab"]], model, vocabulary_size=8, **options).tokens(text)

    assert tokens("a  b") == ["▁", "a", "▁", "b"]
    assert tokens("a  b", remove_extra_whitespaces=False) == ["▁", "a", "▁", "▁", "b"]
    assert tokens("b a", add_dummy_prefix=False) == ["b", "▁", "a"]
    assert tokens("ａ") == ["▁", "a"]
    assert tokens("ａ", normalization="identity") == ["▁", "<unk>"]
    assert tokens("a\tb", normalization="nmt_nfkc") == ["▁", "a", "▁", "b"]


def test_rare_characters_may_go_without_a_piece(model: Path):
    lines = ["a" * 99 + "z"]
    assert "z" in train_subwords([lines], model, vocabulary_size=8).pieces
    rare = train_subwords([lines], model, vocabulary_size=8, character_coverage=0.98)
    assert "z" not in rare.pieces


def test_long_lines_teach_too(model: Path):
    """The library itself would leave lines of more than 4192 bytes out, without a word."""
    trained = train_subwords([["ab" * 30_000 + " xy"]], model, vocabulary_size=10)
    assert {"a", "b", "x", "y"} < set(trained.pieces)


def test_lines_are_drawn_by_seed(model: Path):
    lines = [f"{first}{second}" * 3 for first in "abcdefghij" for second in "klmnopqrst"]

    def drawn(**options: Any) -> bytes:
        options = {"vocabulary_size": 30, "max_lines": 20, **options}
        return train_subwords([lines], model, **options).model

    assert drawn(seed=1) == drawn(seed=1) != drawn(seed=2)
    assert drawn(max_lines=100) == drawn(max_lines=1000, seed=5)  # all of them, in their order


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_the_largest_vocabulary_is_told(model: Path, model_type: str):
    """Versions of the library differ in it; training with it succeeds, with one more fails."""

    def refused(size: int) -> int:
        told = (
            rf"`vocabulary_size` must be at most (\d+) for this text with "
            rf"model_type='{model_type}'. Received: vocabulary_size={size}$"
        )
        with pytest.raises(ValueError, match=told) as error:
            train_subwords([lines], model, vocabulary_size=size, model_type=model_type)
        assert not model.exists()
        return int(re.search(told, str(error.value))[1])

    lines = ["the cat sat", "on the mat"]
    most = refused(10_000)
    assert refused(most + 1) == most
    trained = train_subwords([lines], model, vocabulary_size=most, model_type=model_type)
    assert len(trained) == most


def test_the_smallest_vocabulary_is_told(model: Path):
    """By hand: 4 special pieces and "aehnmstco" with the space, 10 characters."""
    lines = ["the cat sat", "on the mat"]
    with pytest.raises(ValueError, match="at least 14 for this text: .*: vocabulary_size=13"):
        train_subwords([lines], model, vocabulary_size=13)
    assert len(train_subwords([lines], model, vocabulary_size=14)) == 14
    with pytest.raises(ValueError, match="`vocabulary_size` must be at least 270 for this text"):
        train_subwords([lines], model, vocabulary_size=100, byte_fallback=True)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_broken_utf8_is_named_by_file_and_line(tmp_path: Path, model: Path, name: str):
    path = write(tmp_path / name, joined(ENGLISH[:2]) + b"ok\nbad \xff\nok\n")
    with pytest.raises(ValueError, match=rf"{name}, line 4: the file must be UTF-8. .* byte 0xff"):
        train_subwords([GERMAN, path], model, vocabulary_size=100)
    assert not model.exists()


def test_broken_gzip_is_named(tmp_path: Path, model: Path):
    path = tmp_path / "a.gz"
    path.write_bytes(b"plain text")
    with pytest.raises(ValueError, match="a.gz, after line 0: the file must be gzip data. Rec"):
        train_subwords([path], model, vocabulary_size=100)
    path.write_bytes(gzip.compress(joined(ENGLISH))[:-10])
    with pytest.raises(ValueError, match=r"a.gz, after line \d+: the file must be gzip data. Rec"):
        train_subwords([path], model, vocabulary_size=100)


@pytest.mark.parametrize("content", [b"", b"\n \n\t\n"])
def test_empty_files_are_named(tmp_path: Path, model: Path, content: bytes):
    path = write(tmp_path / "empty.txt", content)
    lines = content.count(b"\n")
    with pytest.raises(ValueError, match=f"empty.txt: the text must not be empty.* {lines} blank"):
        train_subwords([ENGLISH, path], model, vocabulary_size=100)


def test_lists_are_named_by_their_places(model: Path):
    with pytest.raises(ValueError, match=r"files\[1\]: the text must not be empty. .* 0 blank"):
        train_subwords([ENGLISH, []], model, vocabulary_size=100)
    with pytest.raises(ValueError, match=r"files\[0\], line 2: the text must .*'\\ud800' \(surr"):
        train_subwords([["a", "b\ud800"]], model, vocabulary_size=100)
    with pytest.raises(TypeError, match=r"files\[0\], line 1: a line must be a string. Rec.*: 5"):
        train_subwords([[5]], model, vocabulary_size=100)


def test_text_that_the_normalization_drops(model: Path):
    told = "`files` must hold text .*='nmt_nfkc' and|`vocabulary_size` must be at most 4"
    with pytest.raises(ValueError, match=told):  # as the version of the library has it
        train_subwords([["\x01\x02"]], model, vocabulary_size=10, normalization="nmt_nfkc")


def test_what_files_may_be(tmp_path: Path, model: Path):
    for wrong in ("a.txt", tmp_path, 3):
        with pytest.raises(TypeError, match="`files` must be a list, of names .* Received: files="):
            train_subwords(wrong, model, vocabulary_size=100)
    with pytest.raises(ValueError, match=r"`files` must have at least one text. .*: files=\[\]"):
        train_subwords([], model, vocabulary_size=100)
    for line in (ENGLISH[0], ENGLISH[0] * 99):
        with pytest.raises(FileNotFoundError, match=r"as a list within .* files\[1\]='A small d"):
            train_subwords([ENGLISH, line], model, vocabulary_size=100)
    with pytest.raises(TypeError, match=r"names of text files or lists .* files\[0\]=b'a.txt'"):
        train_subwords([b"a.txt"], model, vocabulary_size=100)
    with pytest.raises(IsADirectoryError, match="`path` must be a file. Received a folder"):
        train_subwords([ENGLISH], tmp_path, vocabulary_size=100)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model_type": "word"}, ValueError, r"`model_type` must be one of \('bpe', .*'word'"),
        ({"normalization": "nfd"}, ValueError, r"`normalization` must be one of .*='nfd'"),
        ({"character_coverage": 0.9}, ValueError, "`character_coverage` must be from 0.98 to 1. R"),
        ({"vocabulary_size": 4}, ValueError, "`vocabulary_size` must be from 5 to 1000000. .*=4"),
        ({"vocabulary_size": 2**31 - 1}, ValueError, "`vocabulary_size` must be from 5 to 1000"),
        ({"vocabulary_size": 1e3}, TypeError, "`vocabulary_size` must be an int. .*=1000.0"),
        ({"seed": "a"}, TypeError, "`seed` must be an int. Received: seed='a'"),
        ({"byte_fallback": "no"}, TypeError, "`byte_fallback` must be True or False. .*='no'"),
        ({"max_lines": 0}, ValueError, "`max_lines` must be at least 1. Received: max_lines=0"),
    ],
)
def test_arguments_are_checked(
    model: Path, options: dict[str, Any], error: type[Exception], message: str
):
    with pytest.raises(error, match=message):
        train_subwords([ENGLISH], model, **{"vocabulary_size": 100, **options})
