"""Byte-level BPE by hand, beside the published tokenizer, and in graphs, models and exports."""

import gzip
import json
from pathlib import Path

import keras
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.serving.format.servable import check_export
from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
from kbert.text.sequences.packing import pack
from kbert.text.tokenizer import Tokenizer
from kbert.text.vocabulary import Vocabulary
from tests.text.byte_level_bpe_cases import (
    PARTS,
    check,
    published,
    texts,
    tokenizer,
    vocabulary_of,
)
from tests.text.subword_lines import mixed_lines

MERGES = [("h", "e"), ("t", "he"), ("Ġ", "the"), ("l", "l"), ("a", "a"), ("Ġ", "Ġ"), ("Ã", "©")]
BY_HAND = ByteLevelBPE(vocabulary_of(MERGES), MERGES)
SETTINGS = [
    {},
    {"add_prefix_space": True, "trim_offsets": False, "special_tokens_in_text": True},
    # One or two of these alone: the code is the same.
    pytest.param({"trim_offsets": False}, marks=pytest.mark.slow),
    pytest.param({"add_prefix_space": True}, marks=pytest.mark.slow),
    pytest.param({"special_tokens_in_text": True}, marks=pytest.mark.slow),
    pytest.param(
        {"add_prefix_space": True, "special_tokens_in_text": True}, marks=pytest.mark.slow
    ),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the the", "the Ġthe"),
        ("then  the", "the n Ġ Ġthe"),
        ("   the", "ĠĠ Ġthe"),
        ("the  ", "the ĠĠ"),
        ("the \n the", "the Ġ Ċ Ġthe"),
        ("he'll 'll", "he ' ll Ġ ' ll"),
        ("aaaaa", "aa aa a"),
        ("é ß", "Ã© Ġ Ã Ł"),
        ("<mask>", "< m a s k >"),
        ("", ""),
    ],
)
def test_tokens_by_hand(text: str, expected: str) -> None:
    assert BY_HAND.tokens(text) == expected.split()


def test_offsets_by_hand() -> None:
    """Spaces are left out, and each half of a letter has the place of the letter."""
    found = BY_HAND.tokenize_with_offsets(tf.constant(["é ß the"]))
    assert [BY_HAND.vocabulary.tokens[i] for i in found.token_ids[0]] == "Ã© Ġ Ã Ł Ġthe".split()
    assert found.start.to_list() == [[0, 2, 2, 2, 4]]
    assert found.end.to_list() == [[1, 2, 3, 3, 7]]
    assert found.start_byte.to_list() == [[0, 3, 3, 3, 6]]
    assert found.end_byte.to_list() == [[2, 3, 5, 5, 9]]
    untrimmed = ByteLevelBPE(BY_HAND.vocabulary, MERGES, trim_offsets=False)
    found = untrimmed.tokenize_with_offsets(tf.constant(["é ß the"]))
    assert found.start.to_list() == [[0, 1, 2, 2, 3]]
    assert found.end.to_list() == [[1, 2, 3, 3, 7]]


def test_broken_bytes_are_the_replacement_character() -> None:
    """Three broken bytes are two of them, as in Python, and keep their places."""
    broken = b"a\xff\xe2\x82 b"
    assert len(broken.decode("utf-8", "replace")) == 5
    found = BY_HAND.tokenize_with_offsets(tf.constant([broken]))
    names = [BY_HAND.vocabulary.tokens[i] for i in found.token_ids[0]]
    assert names == ["a", *"ï¿½ï¿½", "Ġ", "b"]
    assert found.start_byte.to_list() == [[0, 1, 1, 1, 2, 2, 2, 5, 5]]
    assert found.end_byte.to_list() == [[1, 2, 2, 2, 4, 4, 4, 5, 6]]
    assert found.start.to_list() == [[0, 1, 1, 1, 2, 2, 2, 4, 4]]


def test_special_tokens_by_hand() -> None:
    typed = ByteLevelBPE(BY_HAND.vocabulary, MERGES, special_tokens_in_text=True)
    assert typed.tokens("the  <mask> the</s>é") == "the <mask> Ġthe </s> Ã©".split()
    assert typed.tokens("<mask") == list("<mask")
    found = typed.tokenize_with_offsets(tf.constant(["é  <mask>"]))
    assert found.start_byte.to_list() == [[0, 4]] and found.end_byte.to_list() == [[2, 10]]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_hard_texts_as_published(settings: dict[str, bool]) -> None:
    bpe = tokenizer(**settings)
    pairs = [a + b for a in PARTS for b in PARTS]
    rows = [*mixed_lines(), "", *PARTS, *("   " + part for part in PARTS), *pairs[::5]]
    check(bpe, published(bpe), rows)


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def both(request: pytest.FixtureRequest) -> tuple[ByteLevelBPE, object]:
    bpe = tokenizer(**request.param)
    return bpe, published(bpe)


@given(rows=st.lists(texts, max_size=4))
def test_random_texts_as_published(both: tuple[ByteLevelBPE, object], rows: list[str]) -> None:
    check(*both, rows)


@given(rows=st.lists(st.binary(max_size=40), max_size=4))
def test_random_bytes_as_published(both: tuple[ByteLevelBPE, object], rows: list[bytes]) -> None:
    check(*both, rows)


@given(rows=st.lists(texts, min_size=1, max_size=5))
def test_rows_do_not_depend_on_their_neighbours(rows: list[str]) -> None:
    together = BY_HAND.tokenize(tf.constant(rows)).to_list()
    assert together == [BY_HAND.tokenize(tf.constant([row])).to_list()[0] for row in rows]


def test_goldens_of_six_languages_as_published(shared_data: Path) -> None:
    bpe = tokenizer()
    for name in ("cased", "uncased"):
        path = shared_data / "golden" / f"hf_tokenizers_wordpiece_{name}.json.gz"
        cases = json.loads(gzip.decompress(path.read_bytes()))["cases"]
        check(bpe, published(bpe), [case["text"] for case in cases])


def test_is_a_tokenizer_with_a_configuration_in_json() -> None:
    typed = ByteLevelBPE(BY_HAND.vocabulary, MERGES, True, True, False)
    assert isinstance(typed, Tokenizer)
    saved = json.loads(json.dumps(keras.saving.serialize_keras_object(typed)))
    again = keras.saving.deserialize_keras_object(saved)
    assert again.get_config() == typed.get_config()
    assert again.vocabulary == typed.vocabulary
    row = "the <mask> aaaé"
    assert again.tokens(row) == typed.tokens(row)
    assert hash(again) != hash(typed)  # caches are by object


def test_packing_has_two_separators() -> None:
    ids = pack(
        [BY_HAND.tokenize(tf.constant(["the"])), BY_HAND.tokenize(tf.constant([" the"]))],
        BY_HAND.vocabulary,
        8,
    ).token_ids
    names = [BY_HAND.vocabulary.tokens[i] for i in ids[0]]
    assert names == "<s> the </s> </s> Ġthe </s>".split()


def test_in_a_dataset() -> None:
    rows = ["the the", "é", "", "  aaa"]
    found = list(tf.data.Dataset.from_tensor_slices(rows).batch(3).map(BY_HAND.tokenize))
    assert [row for batch in found for row in batch.to_list()] == [
        BY_HAND.tokenize(tf.constant([row])).to_list()[0] for row in rows
    ]


def test_saved_model_gives_the_same_and_can_be_served(tmp_path: Path) -> None:
    bpe = ByteLevelBPE(BY_HAND.vocabulary, MERGES, special_tokens_in_text=True)

    def serve(text: tf.Tensor) -> dict[str, tf.Tensor]:
        found = bpe.tokenize_with_offsets(text)
        return {"ids": found.token_ids.to_tensor(-1), "starts": found.start.to_tensor(-1)}

    archive = keras.export.ExportArchive()
    archive.add_endpoint("serve", serve, [tf.TensorSpec((None,), tf.string, name="text")])
    archive.write_out(str(tmp_path / "1"), verbose=False)
    report = check_export(tmp_path / "1")
    assert report.is_servable, report.problems
    assert report.text_ops == ("RegexSplitWithOffsets",)
    rows = tf.constant(["the é", "", "aa  <mask>the", "a" * 300, b"\xff   b"])
    loaded = tf.saved_model.load(str(tmp_path / "1"))
    found, expected = loaded.serve(rows), serve(rows)
    for key in expected:
        assert found[key].numpy().tolist() == expected[key].numpy().tolist()


def test_errors() -> None:
    vocabulary = BY_HAND.vocabulary
    with pytest.raises(TypeError, match=r"`vocabulary` must be a kbert\.Vocabulary\. Received"):
        ByteLevelBPE(["a"], MERGES)
    for name in ("add_prefix_space", "special_tokens_in_text", "trim_offsets"):
        with pytest.raises(TypeError, match=f"`{name}` must be True or False. .*: {name}='no'"):
            ByteLevelBPE(BY_HAND.vocabulary, BY_HAND.merges, **{name: "no"})
    words = Vocabulary(["[UNK]", "[CLS]", "[SEP]", "[PAD]"])
    with pytest.raises(ValueError, match="must be one of a byte-level BPE, with `special_tokens`"):
        ByteLevelBPE(words, [])
    expected = r"Received: 'x' 'y' at index 0, and Vocabulary\(268 tokens\) without 'xy'"
    with pytest.raises(ValueError, match=expected):
        ByteLevelBPE(vocabulary, [("x", "y")])
    with pytest.raises(TypeError, match="`text` must be of dtype string"):
        BY_HAND.tokenize(tf.constant([1]))
    with pytest.raises(ValueError, match=r"`text` must have the shape \(B,\)"):
        BY_HAND.tokenize_with_offsets(tf.constant("a"))
