"""Tokenizers of checkpoints and of vocabulary files."""

import os
from pathlib import Path
from typing import Any

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.tokenizer_files import byte_level_files_of
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
from kbert.text.tokenizer import Tokenizer
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece

# Settings of all tokenizers, by which they are found among those of a text model.
SPECIAL = "special_tokens_in_text"
TOKENIZER_SETTINGS = (SPECIAL, *WordPiece.rules, *ByteLevelBPE.rules)


def tokenizer_of(checkpoint: Checkpoint, **kwargs: Any) -> Tokenizer:
    """Returns the tokenizer that a checkpoint was made with.

    `kwargs` are settings that replace its own; those that its class does not know are left out.

    Raises:
        ValueError: the checkpoint has no vocabulary, an invalid one, or another tokenizer.
    """
    if checkpoint.unread_tokenizer is not None:
        raise ValueError(
            "the checkpoint must have a tokenizer that kbert has, WordPiece or byte-level BPE, "
            f"beside its weights. Received: {checkpoint.unread_tokenizer}, which is not read here"
        )
    saved = {k: v for k, v in checkpoint.pipeline.items() if k in TOKENIZER_SETTINGS[1:]}
    settings = {**checkpoint.tokenizer_rules, **saved, **kwargs}
    if checkpoint.tokenizer_files:
        known = _known_to(ByteLevelBPE, settings)
        return ByteLevelBPE.from_contents(checkpoint.tokenizer_files, **known)
    if checkpoint.vocabulary_path is not None:
        vocabulary = Vocabulary.from_file(checkpoint.vocabulary_path)
    elif checkpoint.vocabulary_tokens is not None:
        vocabulary = Vocabulary(checkpoint.vocabulary_tokens)
    else:
        raise ValueError(
            "the checkpoint must have a vocabulary beside its weights: vocab.txt, or "
            "vocabulary.txt in kbert's own format. Received: none"
        )
    return WordPiece(
        vocabulary, **{"lowercase": checkpoint.lowercase, **_known_to(WordPiece, settings)}
    )


def pretrained_tokenizer(
    name_or_directory: str | os.PathLike[str], kind: type | None = None, **kwargs: Any
) -> Any:
    """Returns the tokenizer of a published encoder, or of the folder of a model.

    `name_or_directory` and errors are those of `kbert.Bert.from_pretrained`, `kwargs` those of
    `tokenizer_of`.

    Raises:
        ValueError: there is no vocabulary, or the tokenizer is not of the class `kind`.
        TypeError: a setting is unknown to its class.
    """
    checkpoint = read_checkpoint(name_or_directory, values=False)
    tokenizer = tokenizer_of(checkpoint, **kwargs)
    if kind is not None and not isinstance(tokenizer, kind):
        raise ValueError(
            f"`name_or_directory` must have the tokenizer {kind.__name__}. Received: "
            f"{os.fspath(name_or_directory)!r}, which has {type(tokenizer).__name__}"
        )
    unknown = [name for name in kwargs if name not in _known_to(type(tokenizer), kwargs)]
    if unknown:
        raise TypeError(
            f"{type(tokenizer).__name__} must be given settings that it has. Received: "
            f"{', '.join(unknown)}"
        )
    return tokenizer


def tokenizer_of_file(
    path: str | os.PathLike[str], lowercase: bool = True, **kwargs: Any
) -> Tokenizer:
    """Returns the tokenizer of a vocabulary file.

    `path` is a `vocab.txt` of WordPiece, or of a byte-level BPE a vocabulary in JSON, with
    `merges.txt` beside it, or `tokenizer.json`. `lowercase` is for WordPiece alone.

    Raises:
        ValueError: the file is damaged, or lacks its other half.
        FileNotFoundError: there is no such file.
    """
    file = Path(path)
    if file.suffix != ".json":
        return WordPiece(Vocabulary.from_file(file), lowercase, **kwargs)
    return ByteLevelBPE.from_contents(byte_level_files_of(file), **kwargs)


def put_tokenizer(tokenizer: Any, checkpoint: Checkpoint) -> None:
    """Puts the vocabulary and the settings of a tokenizer into a checkpoint."""
    if tokenizer.vocabulary.special_tokens.byte_level:
        checkpoint.tokenizer_files = tokenizer.files()
    else:
        checkpoint.vocabulary_tokens = tokenizer.vocabulary.tokens
    checkpoint.lowercase = tokenizer.lowercase
    checkpoint.tokenizer_rules = {name: getattr(tokenizer, name) for name in tokenizer.rules}


def settings_of(tokenizer: Any) -> dict[str, Any]:
    """Returns the settings of a tokenizer that a text model's folder keeps."""
    return {name: getattr(tokenizer, name) for name in (SPECIAL, *tokenizer.rules)}


def _known_to(tokenizer: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Returns those of some settings that a class of tokenizers has."""
    known = ("lowercase", SPECIAL, *tokenizer.rules)
    return {name: value for name, value in settings.items() if name in known}
