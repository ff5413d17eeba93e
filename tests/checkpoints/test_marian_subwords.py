"""SentencePiece models with other ids, against the `sentencepiece` library with the ones before."""

import io

import pytest
import sentencepiece

from kbert.checkpoints.marian_subwords import (
    SpecialPieces,
    piece_count,
    pieces_without_id,
    with_ids,
)
from tests.checkpoints.synthetic_marian import (
    ENGLISH,
    LANGUAGE,
    MISSING,
    subword_models,
    vocabulary,
)

SPECIAL = SpecialPieces("<unk>", "<pad>", "<pad>", "</s>")


def loaded(model):
    return sentencepiece.SentencePieceProcessor(model_proto=model)


@pytest.fixture(scope="module")
def ids():
    """The vocabulary of both languages, with the missing piece of the first behind it."""
    found = vocabulary(*subword_models())
    return {**found, MISSING: len(found)}


@pytest.fixture(scope="module")
def english(ids):
    return loaded(with_ids(subword_models()[0], list(ids), SPECIAL))


def test_the_ids_are_those_of_the_vocabulary(ids, english):
    assert len(english) == len(ids)
    names = [english.id_to_piece(number) for number in range(len(ids))]
    # A language code stands where a text begins.
    assert names == [f"\u2581{name}" if name == LANGUAGE else name for name in ids]
    assert english.pad_id() == english.bos_id() == ids["<pad>"]
    assert (english.unk_id(), english.eos_id()) == (ids["<unk>"], ids["</s>"])


def test_texts_are_cut_as_before(ids, english):
    before = loaded(subword_models()[0])
    for text in [*ENGLISH[:3], "the red book", " a  child ", "", "books near the ☃"]:
        pieces = before.encode(text, out_type=str)
        assert english.encode(text, out_type=str) == pieces
        assert english.encode(text) == [ids.get(piece, ids["<unk>"]) for piece in pieces]
        assert english.decode(english.encode(text)) == before.decode(before.encode(text))


def test_german_too(ids):
    german = loaded(with_ids(subword_models()[1], list(ids), SPECIAL))
    before = loaded(subword_models()[1])
    text = "der rote Mann liest am Fluß"
    assert german.encode(text) == [ids[piece] for piece in before.encode(text, out_type=str)]
    assert german.decode(german.encode(text)) == text


def test_characters_of_the_other_language_are_known(ids, english):
    """As Marian's tokenizer looks up the name of a piece, also of one that its model lacks."""
    space = ids["\u2581"]
    assert english.encode("a ß") == [space, ids["a"], space, ids["ß"]]
    assert english.decode([ids["\u2581Fluß"]]) == "Fluß"
    # But no other pieces of the other language are spelled.
    assert ids["\u2581Fluß"] not in english.encode("Fluß")


def test_language_codes(ids, english):
    assert english.encode(f"{LANGUAGE} the book")[0] == ids[LANGUAGE]
    assert english.encode(f"{LANGUAGE} the book")[1:] == english.encode("the book")
    assert english.encode(LANGUAGE) == [ids[LANGUAGE]]


def test_no_text_spells_a_special_piece(ids, english):
    for name in ("<pad>", "</s>"):
        assert ids[name] not in english.encode(f"a {name} b")


def test_start_may_be_a_piece_of_its_own(ids):
    pieces = [*ids, "<go>"]
    special = SpecialPieces("<unk>", "<pad>", "<go>", "</s>")
    model = loaded(with_ids(subword_models()[0], pieces, special))
    assert (model.bos_id(), model.pad_id()) == (len(ids), ids["<pad>"])


def test_the_number_of_pieces():
    for model in subword_models():
        assert piece_count(model) == len(loaded(model))


def test_pieces_without_id():
    model = subword_models()[0]
    ids = vocabulary(model)
    # Control pieces, such as <s>, are in no text.
    assert "<s>" not in ids and pieces_without_id(model, ids) == [MISSING]
    del ids["a"]
    assert set(pieces_without_id(model, ids)) == {MISSING, "a"}


def test_pairs_of_bytes_only_with_their_own_pieces():
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(ENGLISH),
        model_writer=written,
        vocab_size=40,
        model_type="bpe",
        minloglevel=2,
    )
    model = written.getvalue()
    pieces = [*vocabulary(model), *pieces_without_id(model, vocabulary(model))]
    before, after = loaded(model), loaded(with_ids(model, pieces, SPECIAL))
    for text in ENGLISH[:3]:
        assert after.encode(text, out_type=str) == before.encode(text, out_type=str)
    with pytest.raises(ValueError, match="must be a SentencePiece model of the type unigram.*bpe"):
        with_ids(model, [*pieces, "other"], SPECIAL)


@pytest.mark.parametrize("model", [b"", b"\x08", b"no model", b"\x08\x01", b"\x0a\x02\x08"])
def test_what_is_no_model(model):
    with pytest.raises(ValueError, match="`model` must be a SentencePiece model. Received: "):
        pieces_without_id(model, {})
