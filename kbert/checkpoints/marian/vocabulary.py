"""The vocabularies of a Marian model: pieces and their ids."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbert.checkpoints.arrays.json_object import read_json_object
from kbert.checkpoints.marian.subwords import SpecialPieces, pieces_without_id, with_ids

VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
SOURCE_SUBWORDS, TARGET_SUBWORDS = "source.spm", "target.spm"
TOKENIZER = "tokenizer_config.json"


@dataclass(frozen=True)
class MarianVocabulary:
    """One side of a Marian model.

    Attributes:
        pieces: in the order of their ids; after those of `vocab.json` come those that only a
            SentencePiece model has.
        added: the number of the latter.
        unknown_id: the id of the unknown piece.
        subwords: a SentencePiece model with these ids.
    """

    pieces: tuple[str, ...]
    added: int
    unknown_id: int
    subwords: bytes


def read_vocabularies(
    folder: Path, raw: Mapping[str, Any], config: Mapping[str, Any]
) -> tuple[MarianVocabulary, MarianVocabulary]:
    """Reads the vocabularies of source and target.

    Args:
        folder: with `vocab.json`, `source.spm` and `target.spm`, and `target_vocab.json` if the
            vocabularies are separate by the tokenizer's configuration.
        raw: the content of `config.json`, for the ids of padding, start and end.
        config: the arguments of the Transformer, for the numbers of embeddings.

    Returns:
        Source and target. They have the same pieces if the files have the same.

    Raises:
        ValueError: a file is damaged, or an id is missing or out of range.
        FileNotFoundError: a file is missing.
    """
    file = folder / TOKENIZER
    tokenizer = read_json_object(file) if file.is_file() else {}
    size = config["vocabulary_size"]
    source = _ordered(folder / VOCABULARY, config["source_vocabulary_size"] or size)
    name = TARGET_VOCABULARY if tokenizer.get("separate_vocabs") else VOCABULARY
    target = _ordered(folder / name, size)
    special = _special(target, raw, tokenizer, f"`{folder}`")
    models = [(folder / name).read_bytes() for name in (SOURCE_SUBWORDS, TARGET_SUBWORDS)]
    missing = [
        pieces_without_id(model, pieces) for model, pieces in zip(models, (source, target))
    ]
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
