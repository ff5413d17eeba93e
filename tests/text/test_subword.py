"""Ids as the `sentencepiece` library gives them, exact round trips, and what a graph must bear."""

import unicodedata
from collections.abc import Callable
from pathlib import Path

import keras
import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.subword import Subword
from kbert.text.subword_training import train_subwords
from tests.text.subword_lines import ENGLISH, GERMAN, OTHERS, mixed_lines

EXACT = {"normalization": "identity", "remove_extra_whitespaces": False, "byte_fallback": True}
KINDS = {
    "bpe": {"vocabulary_size": 200},
    "unigram": {"vocabulary_size": 120, "model_type": "unigram"},
    "nmt_nfkc": {"vocabulary_size": 420, "normalization": "nmt_nfkc", "byte_fallback": True},
    "exact": {"vocabulary_size": 420, **EXACT},
    "exact_without_prefix": {"vocabulary_size": 420, "add_dummy_prefix": False, **EXACT},
    "exact_unigram": {"vocabulary_size": 380, "model_type": "unigram", **EXACT},
}
EXACT_KINDS = [kind for kind in KINDS if kind.startswith("exact")]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Subword]:
    """One joint model of English and German of each kind."""
    folder = tmp_path_factory.mktemp("subword")
    return {
        kind: train_subwords([ENGLISH, GERMAN], folder / f"{kind}.model", **options)
        for kind, options in KINDS.items()
    }


def library(subword: Subword) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=subword.model)


def texts(strings: tf.Tensor) -> list[str]:
    return [text.decode() for text in strings.numpy().tolist()]


def round_trip(subword: Subword, rows: list[str]) -> list[str]:
    return texts(subword.detokenize(subword.tokenize(tf.constant(rows, tf.string))))


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_texts_are_those_of_the_library(models: dict[str, Subword], kind: str):
    """Origin of the expected ids and texts: the `sentencepiece` library."""
    subword, rows = models[kind], mixed_lines()
    assert len(rows) > 1000
    expected = library(subword).encode(rows)
    found = subword.tokenize(tf.constant(rows))
    assert found.dtype == tf.int32 and found.to_list() == expected
    assert texts(subword.detokenize(found)) == library(subword).decode(expected)


@pytest.mark.parametrize("kind", KINDS)
@given(rows=st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=4))
def test_random_text_as_the_library(models: dict[str, Subword], kind: str, rows: list[str]):
    found = models[kind].tokenize(tf.constant(rows, tf.string))
    assert found.to_list() == library(models[kind]).encode(rows)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_random_ids_as_the_library(models: dict[str, Subword], kind: str, data: st.DataObject):
    """Without pieces of bytes: U+FFFD for those are counted otherwise, see by hand below."""
    subword = models[kind]
    known = [number for number, piece in enumerate(subword.pieces) if not piece.startswith("<0x")]
    spaces = subword.id_of("▁")
    ids = data.draw(st.lists(st.one_of(st.just(spaces), st.sampled_from(known)), max_size=9))
    found = texts(subword.detokenize(tf.ragged.constant([ids], tf.int32, ragged_rank=1)))
    assert found == [library(subword).decode(ids)]


letters = st.text(st.sampled_from(" \t\n\0aäß.ﬁ①é\u0301\u00a0\u2028\ufeff\ufffd\ufffe中မ\U0001f408"))
any_text = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize("kind", EXACT_KINDS)
@given(rows=st.lists(st.one_of(letters, any_text), max_size=4))
def test_exact_models_give_back_every_string(
    models: dict[str, Subword], kind: str, rows: list[str]
):
    expected = [text.replace("\u2581", " ") for text in rows]
    assert round_trip(models[kind], rows) == expected


@given(text=st.lists(st.sampled_from([*"  äß.1ﬁ①½éﾈＡ중中မ\u3000\U0001f408", "e\u0301"])).map("".join))
def test_other_models_give_back_the_normalized_string(models: dict[str, Subword], text: str):
    """Origin of the expected text: Unicode's NFKC in Python, and spaces counted by hand.

    The library normalizes from a table of strings, which does not compose "ﬁ" and an accent.
    """
    normalized = " ".join(unicodedata.normalize("NFKC", text).split())
    assert round_trip(models["nmt_nfkc"], [text]) == [normalized]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("bpe", "", ""),
        ("bpe", "   ", ""),
        ("bpe", " A  dog ", "A dog"),
        ("bpe", "the table", "the table"),
        ("bpe", "猫猫 dog 猫", " \u2047  dog  \u2047 "),  # two unknown characters, one piece
        ("nmt_nfkc", "猫 ﬁ①\tx\x07", "猫 fi1 x"),
        ("exact", "  a\n\0b\r ", "  a\n\0b\r "),
        ("exact", " ", " "),
        ("exact_without_prefix", "  a  ", "  a  "),
        ("exact", "▁", " "),
    ],
)
def test_round_trips_by_hand(models: dict[str, Subword], kind: str, text: str, expected: str):
    assert round_trip(models[kind], [text]) == [expected]


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_spells_a_special_piece(models: dict[str, Subword], kind: str):
    subword = models[kind]
    special = {subword.padding_id, subword.start_id, subword.end_id}
    typed = subword.tokenize(tf.constant(["<s> </s><pad>", "</s>", "x<pad>"]))
    assert not special & set(typed.values.numpy().tolist())


def test_pieces_and_their_ids(models: dict[str, Subword]):
    subword = models["exact"]
    special = (subword.padding_id, subword.unknown_id, subword.start_id, subword.end_id)
    assert special == (0, 1, 2, 3)
    assert subword.pieces[:6] == ["<pad>", "<unk>", "<s>", "</s>", "<0x00>", "<0x01>"]
    assert len(subword) == len(subword.pieces) == 420 and repr(subword) == "Subword(420 pieces)"
    assert subword.id_of("<0xFF>") == 4 + 255
    assert "".join(subword.tokens("the dog")) == "▁the▁dog"
    assert subword.tokens("猫") == ["▁", "<0xE7>", "<0x8C>", "<0xAB>"]
    with pytest.raises(KeyError, match="`piece` must be .* model's 420. Received: piece='猫'"):
        subword.id_of("猫")


@pytest.mark.parametrize("kind", ["bpe", "unigram", "exact"])
def test_no_rows_and_empty_rows(models: dict[str, Subword], kind: str):
    subword = models[kind]
    assert subword.tokenize(tf.constant([], tf.string)).to_list() == []
    assert subword.detokenize(subword.tokenize(tf.constant([], tf.string))).shape == (0,)
    assert subword.detokenize(tf.zeros([0, 7], tf.int32)).shape == (0,)
    assert subword.detokenize([]).shape == (0,)
    assert subword.tokenize(tf.constant(["", "a", ""])).to_list()[::2] == [[], []]
    assert texts(subword.detokenize(tf.zeros([2, 0], tf.int32))) == ["", ""]


@pytest.mark.parametrize("kind", ["exact", "exact_unigram"])
@pytest.mark.parametrize("text", ["x" * 100_000, "the dog " * 12_500, "中" * 90_000 + "a b" * 4_000])
def test_long_lines(models: dict[str, Subword], kind: str, text: str):
    subword = models[kind]
    assert round_trip(subword, [text, "a"]) == [text, "a"]
    assert subword.tokenize(tf.constant([text])).to_list() == [library(subword).encode(text)]


def test_beginnings_by_hand(models: dict[str, Subword]):
    """16,384 characters for a few pieces, whole characters all; 64 a piece for many."""
    rows = ["", "a", "中" * 16_384, "中" * 16_384 + "b", "b" * 30_000]
    found, more = models["unigram"].beginnings(tf.constant(rows), 100)
    assert texts(found) == ["", "a", "中" * 16_384, "中" * 16_384, "b" * 16_384]
    assert more.numpy().tolist() == [False, False, False, True, True]
    found, more = models["unigram"].beginnings(tf.constant(["b" * 30_000, "b" * 25_601]), 400)
    assert texts(found) == ["b" * 25_600] * 2 and more.numpy().all()
    found, more = models["unigram"].beginnings(tf.constant([b"a\xff\xfe", b"\xf0\x9f"]), 3)
    assert texts(found) == ["a\ufffd\ufffd", "\ufffd"] and not more.numpy().any()
    assert models["unigram"].beginnings(tf.constant([], tf.string), 3)[0].shape == (0,)


@given(rows=st.lists(st.binary(max_size=12), max_size=4))
def test_broken_utf8_is_read_as_python_reads_it(models: dict[str, Subword], rows: list[bytes]):
    subword = models["exact_without_prefix"]
    read = [row.decode("utf-8", "replace") for row in rows]
    tokens = subword.tokenize(tf.constant(rows, tf.string))
    assert tokens.to_list() == subword.tokenize(tf.constant(read, tf.string)).to_list()
    assert texts(subword.detokenize(tokens)) == [text.replace("▁", " ") for text in read]


def test_predicted_bytes_by_hand(models: dict[str, Subword]):
    subword = models["exact"]

    def text_of(content: bytes) -> str:
        ids = [subword.id_of(f"<0x{byte:02X}>") for byte in content]
        return texts(subword.detokenize(tf.constant([ids])))[0]

    assert text_of("猫\0".encode()) == "猫\0"
    assert text_of(b" a") == " a"  # a space of the text, not the model's own
    # As bytes.decode(errors="replace") counts; the library gives one U+FFFD for each byte.
    assert text_of(b"a\xe7\x8cb") == "a\ufffdb"
    assert text_of(b"\xff\xc0\x80") == "\ufffd\ufffd\ufffd"


def test_padding_start_and_end_give_nothing(models: dict[str, Subword]):
    subword = models["bpe"]
    ids = subword.tokenize(tf.constant(["the dog"])).to_list()[0]
    row = [subword.start_id, *ids, subword.end_id, subword.end_id, subword.padding_id]
    assert texts(subword.detokenize(tf.constant([row]))) == ["the dog"]
    assert texts(subword.detokenize(tf.ragged.constant([row, [], [3, 0]], tf.int64))) == (
        ["the dog", "", ""]
    )


def test_lengths_count_and_the_rest_may_be_anything(models: dict[str, Subword]):
    subword = models["bpe"]
    tokens = subword.tokenize(tf.constant(["the dog", "A small dog"]))
    ids, lengths = tokens.to_tensor(10**6), tokens.row_lengths()
    assert texts(subword.detokenize(ids, lengths)) == ["the dog", "A small dog"]
    # Hypotheses of a search: (rows, hypotheses, ids).
    twice = tf.stack([ids, ids], axis=1)
    several = subword.detokenize(twice, tf.stack([lengths, lengths * 0], axis=1))
    assert several.numpy().tolist() == [[b"the dog", b""], [b"A small dog", b""]]


@pytest.mark.parametrize("number", [-1, 200])
def test_ids_of_no_piece_are_refused(models: dict[str, Subword], number: int):
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"= {number} is not in \[0, 200\)"):
        models["bpe"].detokenize(tf.constant([[5, number]]))


def test_wrong_tensors_are_named(models: dict[str, Subword]):
    subword = models["bpe"]
    with pytest.raises(TypeError, match="`text` must be of dtype string. Received: dtype=int32"):
        subword.tokenize(tf.constant([1]))
    with pytest.raises(ValueError, match=r"`text` must have the shape \(B,\). .*shape=\(1, 1\)"):
        subword.tokenize(tf.constant([["a"]]))
    with pytest.raises(TypeError, match="`token_ids` must be of dtype int32 or int64. .* float32"):
        subword.detokenize(tf.constant([[1.0]]))
    with pytest.raises(TypeError, match="^`token_ids` must be rows of ids, .* Received: None$"):
        subword.detokenize(None)
    with pytest.raises(TypeError, match=r"of one length in a list. Received: \[\[1\], \[2, 3\]\]$"):
        subword.detokenize([[1], [2, 3]])
    with pytest.raises(ValueError, match=r"`token_ids` must be .* EagerTensor of shape=\(1,\)"):
        subword.detokenize(tf.constant([1]))
    with pytest.raises(ValueError, match=r"`token_ids` must be .* RaggedTensor of shape"):
        subword.detokenize(tf.ragged.constant([[[1]]]))
    with pytest.raises(ValueError, match="`lengths` must be a number .* of rank 0 with"):
        subword.detokenize(tf.constant([[1]]), tf.constant(1))
    with pytest.raises(ValueError, match="`lengths` must be .* None for a RaggedTensor"):
        subword.detokenize(tf.ragged.constant([[1]]), tf.constant([1]))


@pytest.mark.parametrize(
    "forget",
    [
        lambda: tf.random.set_seed(3),
        lambda: keras.utils.set_random_seed(3),
        pytest.param(keras.backend.clear_session, marks=pytest.mark.slow),  # it clears caches
    ],
    ids=["tensorflow_seed", "keras_seed", "clear_session"],
)
def test_it_outlives_what_resets_tensorflow(
    models: dict[str, Subword], forget: Callable[[], None]
):
    """tensorflow-text's own class answers "Resource ... does not exist" after each of these."""
    subword, rows = models["bpe"], tf.constant(["the dog"])
    in_graph = tf.function(lambda text: subword.detokenize(subword.tokenize(text)))
    batches = iter(tf.data.Dataset.from_tensors(rows).repeat(2).map(subword.tokenize))

    def answers() -> list[list]:
        return [subword.tokenize(rows).to_list(), texts(in_graph(rows)), next(batches).to_list()]

    before = answers()
    forget()
    assert answers() == before


def test_in_tf_data_with_static_rows(models: dict[str, Subword]):
    subword, rows = models["unigram"], list(mixed_lines()[:50])
    lines = tf.data.Dataset.from_tensor_slices(rows).batch(10, drop_remainder=True)
    tokens = lines.map(subword.tokenize, num_parallel_calls=2)
    assert tokens.element_spec.shape.as_list() == [10, None]
    found = [row for batch in tokens for row in batch.to_list()]
    assert found == subword.tokenize(tf.constant(rows)).to_list()


def test_two_models_in_one_graph(models: dict[str, Subword]):
    source, target, rows = models["bpe"], models["unigram"], tf.constant(["Ein Hund."])
    both = tf.function(lambda text: (source.tokenize(text), target.tokenize(text)))
    found = [tokens.to_list()[0] for tokens in both(rows)]
    assert found == [library(model).encode("Ein Hund.") for model in (source, target)]
    assert found[0] != found[1]


def test_a_language_that_the_model_never_saw(models: dict[str, Subword]):
    """Each word of unknown characters is a space and one unknown piece, or its bytes."""
    subword = models["bpe"]
    row = subword.tokenize(tf.constant(["החתול ישן"])).to_list()[0]
    assert row == [subword.id_of("▁"), 1] * 2
    assert round_trip(models["exact"], list(OTHERS[:-1])) == list(OTHERS[:-1])


def test_keras_saves_it_with_its_model(models: dict[str, Subword], tmp_path: Path):
    config = keras.saving.serialize_keras_object(models["bpe"])
    assert config["registered_name"] == "kbert>Subword"
    again = keras.saving.deserialize_keras_object(config)
    assert again == models["bpe"] and again != models["unigram"] and again != "bpe"
    assert hash(again) == hash(models["bpe"])
    again.save(tmp_path / "a.model")
    read = Subword.from_file(tmp_path / "a.model")
    assert read == again and read.tokens("the dog") == models["bpe"].tokens("the dog")


@pytest.mark.parametrize("content", [b"", b"\0", b"garbage", b"\n\n"])
def test_files_that_are_no_models(tmp_path: Path, content: bytes):
    path = tmp_path / "a.model"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"a.model: `model` must be .*{len(content)} bytes, "):
        Subword.from_file(path)


def test_a_file_cut_short(models: dict[str, Subword]):
    with pytest.raises(ValueError, match="`model` must be a SentencePiece .* 1000 bytes, begin"):
        Subword(models["bpe"].model[:1000])


def test_models_without_special_pieces(tmp_path: Path):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(ENGLISH),
        model_prefix=str(tmp_path / "a"),
        vocab_size=60,
        minloglevel=2,
    )
    with pytest.raises(ValueError, match="`model` must have pieces .* 60 pieces .* for padding$"):
        Subword.from_file(tmp_path / "a.model")


def test_other_errors_name_what_came(tmp_path: Path):
    with pytest.raises(TypeError, match="`model` must be the bytes .* Received: model='a.model'"):
        Subword("a.model")
    with pytest.raises(FileNotFoundError, match="`path` must be a SentencePiece .*none.model"):
        Subword.from_file(tmp_path / "none.model")
