"""Ids by hand, the plain Python reference, and the published one; and what a graph must bear."""

import gzip
import json
from pathlib import Path

import keras
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.sequences.packing import pack
from kbert.text.vocabulary import SpecialTokens, Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece
from tests.text import wordpiece_reference

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Letters of several kinds, and tokens that no text can spell ("a.", "##.", "a b", "[x]", "##").
WORDS = (
    "a b c ##a ##b ab ##bc abc . ! - [ ] un ##able mask 中 ##中 中国 ß ##ß é ##é σ ##σ ##ς "
    "i ##\u0307 \u1100 ##\u1161 ##\u11a8 한 ก ##ก 😀 ##😀 a. ##. [x] ## # ### 1 ##2 \u2e52 ##\u2e52"
).split()
VOCABULARY = Vocabulary([*SPECIAL, *WORDS, "a b", "\u3000"])
UNCASED = WordPiece(VOCABULARY)
CASED = WordPiece(VOCABULARY, lowercase=False)


def tokens_of(tokenizer: WordPiece, rows: list[str]) -> list[list[str]]:
    ids = tokenizer.tokenize(tf.constant(rows, tf.string)).to_list()
    return [[tokenizer.vocabulary.tokens[number] for number in row] for row in ids]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc", "abc"),
        ("ABCbc unable", "abc ##bc un ##able"),
        ("abx", "[UNK]"),
        ("a.b!", "a . b !"),
        ("a\tb\nc\r", "a b c"),
        ("a\x00b\x0bc\x7f", "abc"),
        ("中国a中", "中 [UNK] a 中"),
        ("ß É é\u0301", "ß [UNK] [UNK]"),  # e without its accent is not in the vocabulary
        ("ΣΑΣ σΣ", "[UNK] σ ##σ"),
        ("각", "\u1100 ##\u1161 ##\u11a8"),
        ("😀😀", "😀 ##😀"),
        ("[MASK] [x]", "[ mask ] [ [UNK] ]"),
        ("##a ###", "# # a # # #"),
        ("⹒⹒", "\u2e52 ##\u2e52"),  # punctuation since Unicode 14.0; a letter in the reference
        ("", ""),
        (" \u3000\u00a0", ""),
    ],
)
def test_tokens_by_hand(text: str, expected: str) -> None:
    assert UNCASED.tokens(text) == expected.split()


def test_cased_keeps_case_and_accents() -> None:
    assert CASED.tokens("ab AB é e\u0301 한") == ["ab", "[UNK]", "é", "[UNK]", "한"]


def test_switches_are_independent() -> None:
    lower_only = WordPiece(VOCABULARY, strip_accents=False)
    assert lower_only.tokens("É İ") == ["é", "i", "##\u0307"]
    strip_only = WordPiece(VOCABULARY, lowercase=False, strip_accents=True)
    assert strip_only.tokens("ábç B") == ["abc", "[UNK]"]
    together = WordPiece(VOCABULARY, handle_cjk=False)
    assert together.tokens("中国 中中 a中") == ["中国", "中", "##中", "a", "##中"]


def test_words_have_at_most_a_hundred_characters() -> None:
    """Characters, not bytes: 100 of three bytes are a word, 101 of one byte are none."""
    assert UNCASED.tokens("ก" * 100) == ["ก"] + ["##ก"] * 99
    assert UNCASED.tokens("ก" * 101) == ["[UNK]"]
    assert UNCASED.tokens("a" * 100) == ["a"] + ["##a"] * 99
    assert UNCASED.tokens("b " + "a" * 101 + ".b") == ["b", "[UNK]", ".", "b"]
    # A syllable of three letters counts as three; ideographs are words one by one.
    assert UNCASED.tokens("각" * 34) == ["[UNK]"]
    assert UNCASED.tokens("中" * 101) == ["中"] * 101


def test_special_tokens_in_text() -> None:
    typed = WordPiece(VOCABULARY, special_tokens_in_text=True)
    assert typed.tokens("a[MASK]b [SEP]") == ["a", "[MASK]", "b", "[SEP]"]
    assert typed.tokens("é[CLS][PAD][UNK] [mask]") == (
        ["[UNK]", "[CLS]", "[PAD]", "[UNK]", "[", "mask", "]"]
    )
    # The control characters that stand for them inside are dropped from a user's text.
    assert typed.tokens("\x0f\x01\x01\x01\x01\x10 a\x02\x03") == ["a"]
    offsets = typed.tokenize_with_offsets(tf.constant(["é [MASK]b"]))
    assert offsets.start.to_list() == [[0, 2, 8]] and offsets.end.to_list() == [[1, 8, 9]]
    assert offsets.end_byte.to_list() == [[2, 9, 10]]


settled = st.characters(exclude_categories=["Cs"]).filter(wordpiece_reference.is_settled)
letters = st.text(st.sampled_from("abcABC.!-[]# \t中国ßéÉσΣİ\u0301\u1100각한ก😀12\0\u200b\ufffd"))
rows_of_text = st.lists(st.one_of(letters, st.text(settled)), max_size=4)


@pytest.mark.parametrize("tokenizer", [UNCASED, CASED], ids=["uncased", "cased"])
@given(rows=rows_of_text)
def test_random_text_as_the_reference(tokenizer: WordPiece, rows: list[str]) -> None:
    offsets = tokenizer.tokenize_with_offsets(tf.constant(rows, tf.string))
    assert tokens_of(tokenizer, rows) == [
        [tokenizer.vocabulary.tokens[number] for number in row]
        for row in offsets.token_ids.to_list()
    ]
    for index, text in enumerate(rows):
        expected = wordpiece_reference.tokenize(
            text, set(VOCABULARY.tokens), tokenizer.lowercase
        )
        ids = [VOCABULARY.id_of(token) for token, _, _ in expected]
        assert offsets.token_ids[index].numpy().tolist() == ids
        places = zip(offsets.start[index].numpy(), offsets.end[index].numpy(), strict=True)
        assert list(places) == [(start, end) for _, start, end in expected]


@given(rows=st.lists(st.binary(max_size=40), min_size=1, max_size=5))
def test_rows_do_not_depend_on_their_neighbours(rows: list[bytes]) -> None:
    together = UNCASED.tokenize(tf.constant(rows)).to_list()
    assert together == [UNCASED.tokenize(tf.constant([row])).to_list()[0] for row in rows]
    decoded = [row.decode("utf-8", "replace") for row in rows]
    assert together == UNCASED.tokenize(tf.constant(decoded)).to_list()


@given(text=letters)
def test_a_token_s_cut_normalizes_to_the_token(text: str) -> None:
    offsets = UNCASED.tokenize_with_offsets(tf.constant([text]))
    places = zip(*(part[0].numpy().tolist() for part in offsets), strict=True)
    for number, _, _, start, end in places:
        token = VOCABULARY.tokens[number].removeprefix("##")
        if token == "[UNK]" or "\u1100" <= token[0] <= "\u11ff":  # parts of a syllable
            continue
        again = wordpiece_reference.tokenize(text[start:end], {token}, lowercase=True)
        assert [piece for piece, _, _ in again] == [token]


@pytest.mark.parametrize("letter", ["a", "é", "中", ".", " ", "\0", "\u0301", "\u302e", "각"])
def test_a_megabyte_is_quick(letter: str) -> None:
    """No step is quadratic: with one that is, this would run for minutes."""
    text = letter * (1_000_000 // len(letter.encode()))
    count = UNCASED.tokenize(tf.constant([text])).row_lengths().numpy().tolist()
    alone = letter in ("中", ".")
    assert count == [len(text) if alone else 1 if letter in "aé\u302e각" else 0]


def test_no_rows() -> None:
    assert UNCASED.tokenize(tf.zeros([0], tf.string)).shape == (0, None)
    offsets = UNCASED.tokenize_with_offsets(tf.zeros([0], tf.string))
    assert all(part.nrows() == 0 for part in offsets)


def test_config_comes_back_without_a_file() -> None:
    tokenizer = WordPiece(VOCABULARY, lowercase=False, strip_accents=True, handle_cjk=False)
    config = json.loads(json.dumps(tokenizer.get_config()))
    names = "vocabulary lowercase special_tokens_in_text strip_accents handle_cjk"
    assert list(config) == names.split()
    again = WordPiece.from_config(config)
    assert again.get_config() == tokenizer.get_config()
    through_keras = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(tokenizer)
    )
    assert through_keras.get_config() == tokenizer.get_config()
    assert through_keras.tokens("áb 中中") == ["ab", "中", "##中"]


def test_errors_say_what_must_be() -> None:
    with pytest.raises(TypeError, match="`vocabulary` must be a .*Vocabulary. Received: voc"):
        WordPiece(["[UNK]"])
    for name in ("lowercase", "special_tokens_in_text", "strip_accents", "handle_cjk"):
        with pytest.raises(TypeError, match=f"`{name}` must be True or False. .*: {name}='no'"):
            WordPiece(UNCASED.vocabulary, **{name: "no"})
    others = SpecialTokens("<unk>", "<s>", "</s>", "<pad>", "<mask>")
    with pytest.raises(ValueError, match="must have BERT's special tokens, as .CLS.. .*'<unk>'"):
        WordPiece(Vocabulary(["<unk>", "<s>", "</s>", "<pad>", "<mask>", "a"], others))
    with pytest.raises(TypeError, match="`text` must be of dtype string. Received: dtype=int32"):
        UNCASED.tokenize(tf.constant([1]))
    with pytest.raises(ValueError, match=r"must have the shape \(B,\). Received: shape=\(\)"):
        UNCASED.tokenize(tf.constant("a"))
    with pytest.raises(ValueError, match=r"must have the shape \(B,\). Received: shape=\(1, 1\)"):
        UNCASED.tokenize_with_offsets(tf.constant([["a"]]))


def test_works_in_a_dataset() -> None:
    dataset = tf.data.Dataset.from_tensor_slices(["abc", "é", "中 a"]).batch(2)
    lengths = [ids.row_lengths().numpy().tolist() for ids in dataset.map(UNCASED.tokenize)]
    assert lengths == [[1, 1], [2]]


class Endpoint(tf.Module):
    """Tokenization with packing, and with offsets, as two signatures."""

    def __init__(self, tokenizer: WordPiece) -> None:
        super().__init__()
        self._tokenizer = tokenizer

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
    def packed(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        ids = self._tokenizer.tokenize(text)
        packed = pack([ids, ids], self._tokenizer.vocabulary, 16)
        return {"token_ids": packed.token_ids, "lengths": packed.lengths}

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
    def starts(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"start": self._tokenizer.tokenize_with_offsets(text).start.to_tensor(-1)}


def graph_bytes(tokenizer: WordPiece, folder: Path) -> int:
    module = Endpoint(tokenizer)
    signatures = {"packed": module.packed, "starts": module.starts}
    tf.saved_model.save(module, str(folder), signatures=signatures)
    return (folder / "saved_model.pb").stat().st_size


def test_saved_model_gives_the_same(tmp_path: Path) -> None:
    assert graph_bytes(UNCASED, tmp_path) < 600_000
    loaded = tf.saved_model.load(str(tmp_path))
    text = tf.constant(["abc a.", "각 é" + "ก" * 101, "", "\u302e\u1b44"])
    expected = Endpoint(UNCASED)
    for name in ("packed", "starts"):
        given = loaded.signatures[name](text)
        for key, value in getattr(expected, name)(text).items():
            assert given[key].numpy().tolist() == value.numpy().tolist()


def test_graph_of_the_published_vocabulary_is_small(shared_data: Path, tmp_path: Path) -> None:
    """The matcher's 1.7 MB are there once, whatever the number of signatures."""
    vocabulary = Vocabulary.from_file(shared_data / "vocab" / "bert-base-uncased-vocab.txt")
    assert len(vocabulary) == 30522
    assert graph_bytes(WordPiece(vocabulary), tmp_path) < 2_500_000


@pytest.mark.parametrize("name", ["uncased", "cased"])
def test_goldens(shared_data: Path, name: str) -> None:
    """Ids and offsets by Hugging Face tokenizers 0.23.3, which finds special tokens in the text."""
    path = shared_data / "golden" / f"hf_tokenizers_wordpiece_{name}.json.gz"
    cases = json.loads(gzip.decompress(path.read_bytes()))["cases"]
    vocabulary = Vocabulary.from_file(shared_data / "vocab" / f"bert-base-{name}-vocab.txt")
    tokenizer = WordPiece(vocabulary, lowercase=name == "uncased", special_tokens_in_text=True)
    text = tf.constant([case["text"] for case in cases])
    offsets = tokenizer.tokenize_with_offsets(text)
    ids, starts, ends = (part.to_list() for part in (offsets.token_ids, offsets.start, offsets.end))
    assert len(cases) == 879
    assert tokenizer.tokenize(text).to_list() == ids
    plain = WordPiece(vocabulary, lowercase=name == "uncased").tokenize(text).to_list()
    for index, case in enumerate(cases):
        assert ids[index] == case["ids"], case["text"]
        places = [[start, end] for start, end in zip(starts[index], ends[index], strict=True)]
        assert places == case["offsets"], case["text"]
        typed = any(token in case["text"] for token in SPECIAL)
        assert (plain[index] == case["ids"]) is not typed, case["text"]


@pytest.mark.parametrize("name", ["uncased", "cased", "multilingual-cased"])
def test_real_text_beside_the_published_tokenizer(shared_data: Path, name: str) -> None:
    """WikiText-2 valid, and German and French captions, ids and offsets line by line."""
    tokenizers = pytest.importorskip("tokenizers")
    path = shared_data / "vocab" / f"bert-base-{name}-vocab.txt"
    published = tokenizers.BertWordPieceTokenizer(str(path), lowercase=name == "uncased")
    lines = (shared_data / "text" / "wikitext-2.valid.txt").read_text("utf-8").split("\n")
    for language in ("de", "fr"):
        captions = shared_data / "mt" / "multi30k" / f"val.{language}.gz"
        lines += gzip.decompress(captions.read_bytes()).decode().split("\n")
    tokenizer = WordPiece(
        Vocabulary.from_file(path), lowercase=name == "uncased", special_tokens_in_text=True
    )
    offsets = tokenizer.tokenize_with_offsets(tf.constant(lines))
    ids, starts, ends = (part.to_list() for part in (offsets.token_ids, offsets.start, offsets.end))
    encodings = published.encode_batch(lines, add_special_tokens=False)
    for index, encoding in enumerate(encodings):
        assert ids[index] == encoding.ids, lines[index]
        assert list(zip(starts[index], ends[index], strict=True)) == encoding.offsets, lines[index]


@pytest.mark.parametrize(
    "lowercase, step",
    [
        (True, 31),
        pytest.param(True, 1, marks=pytest.mark.slow),
        pytest.param(False, 1, marks=pytest.mark.slow),
    ],
)
def test_every_code_point_beside_the_published_tokenizer(lowercase: bool, step: int) -> None:
    """The text "a{c}b" for every code point, with a vocabulary that shows where words are split.

    Of the planes that no Unicode has given to anything, there is only one point in `step`.
    """
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = [*SPECIAL, "a", "b", "##b", "ab"]
    published = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(
            vocab={token: number for number, token in enumerate(vocabulary)}, unk_token="[UNK]"
        )
    )
    published.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lowercase)
    published.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer = WordPiece(Vocabulary(vocabulary), lowercase=lowercase)
    points = [*range(0xD800), *range(0xE000, 0x40000), *range(0x40000, 0xE0000, step)]
    points += range(0xE0000, 0x110000)
    # Many in one row: "b a" between two of them keeps them apart.
    rows = [
        " ".join(f"a{chr(point)}b" for point in points[begin : begin + 4096])
        for begin in range(0, len(points), 4096)
    ]
    given = tokenizer.tokenize(tf.constant(rows))
    for row, encoding in enumerate(published.encode_batch(rows)):
        assert given[row].numpy().tolist() == encoding.ids, f"from {points[row * 4096]:#x}"
