"""Which piece has which id in a Marian folder."""

import json

import pytest
import sentencepiece

from kbert.checkpoints.marian_subwords import read_vocabularies
from tests.checkpoints.synthetic_marian import (
    LANGUAGE,
    MISSING,
    marian_config,
    subword_models,
    vocabulary,
    write_tokenizer,
)

SPECIAL = ["<unk>", "<pad>", "</s>"]


def read(folder, size, source_size=None, **changes):
    config = {"vocabulary_size": size, "source_vocabulary_size": source_size}
    return read_vocabularies(folder, marian_config(size, **changes), config)


def test_one_vocabulary(tmp_path):
    ids = write_tokenizer(tmp_path)
    source, target = read(tmp_path, len(ids))
    assert source.pieces == target.pieces == (*ids, MISSING)
    assert source.added == target.added == 1
    assert source.unknown_id == ids["<unk>"]
    for side in (source, target):
        model = sentencepiece.SentencePieceProcessor(model_proto=side.subwords)
        assert len(model) == len(ids) + 1
        assert [model.id_to_piece(n) for n in (1, len(ids) - 1, 0)] == SPECIAL
    english = sentencepiece.SentencePieceProcessor(model_proto=source.subwords)
    # "the" is cut into "▁", "th" and "e", as "th" is a piece of the English model.
    assert english.encode("the") == [ids["\u2581"], len(ids), ids["e"]]


def test_separate_vocabularies(tmp_path):
    write_tokenizer(tmp_path, separate=True)
    (tmp_path / "tokenizer_config.json").write_text('{"separate_vocabs": true}')
    sizes = [len(vocabulary(model)) for model in subword_models()]
    source, target = read(tmp_path, sizes[1], sizes[0])
    assert source.pieces == (*vocabulary(subword_models()[0]), MISSING)
    assert target.pieces == tuple(vocabulary(subword_models()[1]))
    assert (source.added, target.added) == (1, 0)


def test_more_embeddings_than_pieces(tmp_path):
    ids = write_tokenizer(tmp_path)
    source, _ = read(tmp_path, len(ids) + 2, pad_token_id=len(ids) - 1)
    names = [f"<no piece {number}>" for number in (len(ids), len(ids) + 1)]
    assert source.pieces == (*ids, *names, MISSING)


def test_the_unknown_piece_of_an_older_file(tmp_path):
    ids = write_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"unk_token": {"content": "<unk>"}}')
    assert read(tmp_path, len(ids))[0].unknown_id == 1


def test_the_padding_and_the_start(tmp_path):
    ids = write_tokenizer(tmp_path)
    changes = {"pad_token_id": ids[LANGUAGE], "decoder_start_token_id": ids["<pad>"]}
    _, target = read(tmp_path, len(ids), **changes)
    model = sentencepiece.SentencePieceProcessor(model_proto=target.subwords)
    assert (model.pad_id(), model.bos_id()) == (ids[LANGUAGE], ids["<pad>"])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"more": 99}, r"must be whole numbers below the number of embeddings, \d+.*'more': 99"),
        ({"more": "1"}, "ids must be whole numbers below.*'more': '1'"),
        ({"more": 0}, "each id must be there once. Received: 0 for '</s>' and 'more'"),
    ],
)
def test_ids_that_cannot_be(change, message, tmp_path):
    ids = write_tokenizer(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({**ids, **change}))
    with pytest.raises(ValueError, match=message):
        read(tmp_path, len(ids))


def test_special_pieces_that_are_missing(tmp_path):
    ids = write_tokenizer(tmp_path)
    message = r"`eos_token_id` must be the id of a piece, below \d+. Received: eos_token_id=999"
    with pytest.raises(ValueError, match=message):
        read(tmp_path, len(ids), eos_token_id=999)
    (tmp_path / "tokenizer_config.json").write_text('{"unk_token": "[UNK]"}')
    with pytest.raises(ValueError, match=r"vocab.json` must have the pieces \['\[UNK\]'\]"):
        read(tmp_path, len(ids))
    (tmp_path / "target.spm").unlink()
    with pytest.raises(FileNotFoundError, match="target.spm"):
        read(tmp_path, len(ids))
