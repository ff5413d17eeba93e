"""SentencePiece models with the ids of another vocabulary.

A Marian model in Hugging Face's layout has one or two SentencePiece models that split its texts,
and a `vocab.json` with the ids of the pieces, of both languages together. Here the SentencePiece
model itself gets these ids, so that it needs no other file.

Source: transformers, `models/marian/tokenization_marian.py`; SentencePiece,
`sentencepiece_model.proto`.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kbert.checkpoints.arrays.wire_format import field_bytes, read_fields
from kbert.storage.json_files import read_json_object

SPACE = "\u2581"  # how a SentencePiece model writes a space
_LANGUAGE = re.compile(r">>.+<<")
# An unknown character is as likely as the rarest piece, less so many powers of e
# (`kUnkPenalty` in SentencePiece's unigram_model.cc).
_UNKNOWN_PENALTY = 10.0
# Fields of a model and of its parts.
_PIECES, _TRAINER, _NORMALIZER, _SELF_TEST = 1, 2, 3, 4
_PIECE_NAME, _PIECE_SCORE, _PIECE_TYPE = 1, 2, 3
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_SPELLED = (_NORMAL, _USER_DEFINED, _BYTE)
_MODEL_TYPE, _VOCABULARY_SIZE, _ADD_DUMMY_PREFIX = 3, 4, 3
_UNIGRAM, _TYPES = 1, {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
_SPECIAL_IDS = {"unknown": 40, "start": 41, "end": 42, "padding": 43}
_SPECIAL_NAMES = {"unknown": 45, "start": 46, "end": 47, "padding": 48}


@dataclass(frozen=True)
class SpecialPieces:
    """The special pieces, which no text contains, by their names in the vocabulary."""

    unknown: str
    padding: str
    start: str
    end: str


class _Piece(NamedTuple):
    name: str
    score: float
    type: int
    raw: bytes


def pieces_without_id(model: bytes, vocabulary: Collection[str]) -> list[str]:
    """Returns the pieces of a SentencePiece model's output that a vocabulary does not have."""
    pieces = _parts(model)[0]
    return [p.name for p in pieces if p.type in _SPELLED and p.name not in vocabulary]


def piece_count(model: bytes) -> int:
    """Returns the number of pieces of a SentencePiece model."""
    return len(_parts(model)[0])


def with_ids(model: bytes, pieces: Sequence[str], special: SpecialPieces) -> bytes:
    """Assigns the ids of a vocabulary to the pieces of a SentencePiece model.

    Texts are split as by the original model, with two differences. A character that only the
    vocabulary has is found there, as by Marian's tokenizer; but next to an unknown character it
    stays known. And a language code such as ">>deu<<", which precedes the text there, is one piece
    wherever a word begins with it; its name gets the space that the model puts before a text.

    `pieces` are the vocabulary in the order of its ids; it must have all pieces of the model. Those
    that the model lacks are never produced, but they can be decoded. The start piece may be one of
    the other special ones.

    Raises a ValueError if `model` is no SentencePiece model, or has another type than unigram (such
    as BPE) and lacks pieces of the vocabulary, which would change its merges.
    """
    before, trainer, normalizer, rest = _parts(model)
    own = {piece.name: piece for piece in before}
    rarest = min((piece.score for piece in before if piece.type == _NORMAL), default=0.0)
    prefix = SPACE if _number(normalizer, _ADD_DUMMY_PREFIX, 1) else ""
    control = (special.padding, special.start, special.end)
    after, foreign = [], []
    for name in pieces:
        if name == special.unknown:
            after.append(_piece(name, 0.0, _UNKNOWN))
        elif name in control:
            after.append(_piece(name, 0.0, _CONTROL))
        elif name in own:
            after.append(own[name].raw)
        elif _LANGUAGE.fullmatch(name):
            after.append(_piece(f"{prefix}{name}", 0.0, _USER_DEFINED))
        elif len(name) == 1:
            after.append(_piece(name, rarest - _UNKNOWN_PENALTY, _NORMAL))
        else:
            after.append(_piece(name, 0.0, _UNUSED))
            foreign.append(name)
    kind = _number(trainer, _MODEL_TYPE, _UNIGRAM)
    if foreign and kind != _UNIGRAM:
        raise ValueError(
            "`model` must be a SentencePiece model of the type unigram where the vocabulary has "
            "other pieces too: pairs of characters would be joined to them. Received: the type "
            f"{_TYPES.get(kind, kind)} and {len(foreign)} other pieces, such as {foreign[0]!r}"
        )
    trainer += field_bytes(_VOCABULARY_SIZE, len(pieces))
    for role, name in vars(special).items():
        trainer += field_bytes(_SPECIAL_IDS[role], pieces.index(name))
        trainer += field_bytes(_SPECIAL_NAMES[role], name)
    written = b"".join(field_bytes(_PIECES, piece) for piece in after)
    written += field_bytes(_TRAINER, trainer) + field_bytes(_NORMALIZER, normalizer)
    return written + rest


def _piece(name: str, score: float, kind: int) -> bytes:
    message = field_bytes(_PIECE_NAME, name) + field_bytes(_PIECE_SCORE, score)
    return message + field_bytes(_PIECE_TYPE, kind)


def _parts(model: bytes) -> tuple[list[_Piece], bytes, bytes, bytes]:
    """Splits a model into pieces, trainer spec, normalizer spec, and the remaining fields."""
    pieces, trainer, normalizer, rest = [], b"", b"", b""
    try:
        for field in read_fields(model):
            if field.number == _PIECES:
                pieces.append(_parsed_piece(field.value))
            elif field.number == _TRAINER:
                trainer += field.value
            elif field.number == _NORMALIZER:
                normalizer += field.value
            elif field.number != _SELF_TEST:  # examples with the original ids
                rest += field.raw
        if not pieces:
            raise ValueError("a model must have pieces")
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"`model` must be a SentencePiece model. Received: {len(model)} bytes, beginning with "
            f"{model[:16]!r}"
        ) from error
    return pieces, trainer, normalizer, rest


def _parsed_piece(message: bytes) -> _Piece:
    values = {field.number: field.value for field in read_fields(message)}
    name = values[_PIECE_NAME].decode() if _PIECE_NAME in values else ""
    return _Piece(name, values.get(_PIECE_SCORE, 0.0), values.get(_PIECE_TYPE, _NORMAL), message)


def _number(message: bytes, number: int, default: int) -> int:
    """Returns an int field of a message; the last one counts."""
    found = [field.value for field in read_fields(message) if field.number == number]
    return int(found[-1]) if found else default


VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
SOURCE_SUBWORDS, TARGET_SUBWORDS = "source.spm", "target.spm"
TOKENIZER = "tokenizer_config.json"


@dataclass(frozen=True)
class MarianVocabulary:
    """One side of a Marian model."""

    # In the order of their ids; after those of `vocab.json` come those that only a SentencePiece
    # model has.
    pieces: tuple[str, ...]
    added: int  # the number of the latter
    unknown_id: int  # the id of the unknown piece
    subwords: bytes  # a SentencePiece model with these ids


def read_vocabularies(
    folder: Path, raw: Mapping[str, Any], config: Mapping[str, Any]
) -> tuple[MarianVocabulary, MarianVocabulary]:
    """Reads the vocabularies of source and target, which have the same pieces if the files have.

    The folder holds `vocab.json`, `source.spm` and `target.spm`, and `target_vocab.json` if the
    vocabularies are separate by the tokenizer's configuration. `raw`, the content of `config.json`,
    has the ids of padding, start and end, and `config`, the arguments of the Transformer, the
    numbers of embeddings.

    Raises a ValueError if a file is damaged, or an id is missing or out of range, and a
    FileNotFoundError if a file is missing.
    """
    file = folder / TOKENIZER
    tokenizer = read_json_object(file) if file.is_file() else {}
    size = config["vocabulary_size"]
    source = _ordered(folder / VOCABULARY, config["source_vocabulary_size"] or size)
    name = TARGET_VOCABULARY if tokenizer.get("separate_vocabs") else VOCABULARY
    target = _ordered(folder / name, size)
    special = _special(target, raw, tokenizer, f"`{folder}`")
    models = [(folder / name).read_bytes() for name in (SOURCE_SUBWORDS, TARGET_SUBWORDS)]
    missing = [pieces_without_id(model, pieces) for model, pieces in zip(models, (source, target))]
    if source == target:
        missing = [list(dict.fromkeys(missing[0] + missing[1]))] * 2
    sides = []
    for model, ids, added in zip(models, (source, target), missing):
        pieces = (*ids, *added)
        absent = [piece for piece in vars(special).values() if piece not in ids]
        if absent:
            raise ValueError(f"`{folder / VOCABULARY}` must have the pieces {absent}.")
        subwords = with_ids(model, pieces, special)
        sides.append(MarianVocabulary(pieces, len(added), ids[special.unknown], subwords))
    return sides[0], sides[1]


def _ordered(path: Path, size: int) -> dict[str, int]:
    """Returns piece -> id, in the order of the ids; ids without a piece get a name."""
    ids = read_json_object(path)
    piece_of: dict[int, str] = {}
    for piece, number in ids.items():
        if type(number) is not int or not 0 <= number < size:
            raise ValueError(
                f"`{path}`: ids must be whole numbers below the number of embeddings, {size}. "
                f"Received: {piece!r}: {number!r}"
            )
        if number in piece_of:
            raise ValueError(
                f"`{path}`: each id must be there once. Received: {number} for "
                f"{piece_of[number]!r} and {piece!r}"
            )
        piece_of[number] = piece
    ordered = {piece_of.get(number, f"<no piece {number}>"): number for number in range(size)}
    if len(ordered) < size:
        raise ValueError(f"`{path}`: no piece must be named <no piece ...>.")
    return ordered


def _special(
    ids: Mapping[str, int], raw: Mapping[str, Any], tokenizer: Mapping[str, Any], source: str
) -> SpecialPieces:
    pieces = list(ids)
    padding_id = raw.get("pad_token_id", 58100)
    numbers = {
        "pad_token_id": padding_id,
        "decoder_start_token_id": raw.get("decoder_start_token_id", padding_id),
        "eos_token_id": raw.get("eos_token_id", 0),
    }
    for key, number in numbers.items():
        if type(number) is not int or not 0 <= number < len(pieces):
            raise ValueError(
                f"{source}: `{key}` must be the id of a piece, below {len(pieces)}. "
                f"Received: {key}={number!r}"
            )
    unknown = tokenizer.get("unk_token") or "<unk>"
    if isinstance(unknown, dict):  # the form of older versions
        unknown = unknown["content"]
    padding, start, end = (pieces[number] for number in numbers.values())
    return SpecialPieces(unknown, padding, start, end)
