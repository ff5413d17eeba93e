"""Tokens and their ids, and which of them are special."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kbert.architectures import loaded
from kbert.storage.files import write_atomically


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens of a family of models, and how texts become sequences with them.

    Attributes:
        unknown: what stands for text without a token.
        cls: the first token of a sequence.
        sep: the token after each text.
        padding: what fills a batch.
        mask: what hides a token in pretraining.
        separators: how many `sep` stand between the two texts of a pair.
        has_segments: whether the second text of a pair has the segment id 1.
        byte_level: whether the other tokens are bytes, each written as a character of
            `BYTE_CHARACTERS`; otherwise they are text, and begin with "##" inside a word.
    """

    unknown: str
    cls: str
    sep: str
    padding: str
    mask: str
    separators: int = 1
    has_segments: bool = True
    byte_level: bool = False

    @property
    def required(self) -> tuple[str, ...]:
        """The tokens that a vocabulary must have."""
        return (self.unknown, self.cls, self.sep, self.padding)

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.required, self.mask)


BERT_TOKENS = SpecialTokens("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")
# `<s> a </s></s> b </s>` (Liu et al. 2019, "RoBERTa").
ROBERTA_TOKENS = SpecialTokens(
    *("<unk>", "<s>", "</s>", "<pad>", "<mask>"), separators=2, has_segments=False, byte_level=True
)
CONTINUES = "##"  # how a piece inside a word begins, unless tokens are bytes


@cache
def byte_characters() -> tuple[str, ...]:
    """Returns the character that stands for each byte in tokens of a byte-level BPE.

    Printable characters of Latin-1 stand for themselves, the other bytes for U+0100 and what
    follows, in order: a space is "\u0120". Source: Radford et al. 2019, "GPT-2", `encoder.py`.
    """
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in shown]
    return tuple(chr(b) if b in shown else chr(0x100 + hidden.index(b)) for b in range(256))


@cache
def _byte_numbers() -> dict[str, int]:
    return {character: byte for byte, character in enumerate(byte_characters())}


class Vocabulary:
    """Tokens in the order of their ids, as BERT's `vocab.txt` lists them, one per line.

    Args:
        tokens: The tokens; the index of a token is its id. All special tokens are required but the
            mask token: `[UNK]`, `[CLS]`, `[SEP]` and `[PAD]` for BERT.
        special_tokens: The special tokens, `BERT_TOKENS` or `ROBERTA_TOKENS` for example.

    Raises:
        TypeError: `tokens` is a text or no list, or a token is not a string.
        ValueError: No tokens, an empty or a repeated token, or a special token is missing.
    """

    def __init__(
        self, tokens: Iterable[str], special_tokens: SpecialTokens = BERT_TOKENS
    ) -> None:
        if isinstance(tokens, str | bytes) or not isinstance(tokens, Iterable):
            raise TypeError(f"`tokens` must be a list of strings. Received: {tokens!r:.80}")
        self.tokens: tuple[str, ...] = tuple(tokens)
        self.special_tokens = special_tokens
        self._ids = _ids_of(self.tokens, "`tokens`", "index", 0, special_tokens.required)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "Vocabulary":
        """Reads a `vocab.txt`: UTF-8, one token per line, the line number minus one is the id.

        Lines end in `\\n` or `\\r\\n` only: U+2028 and others may be part of a token. ASCII spaces
        and tabs around a token are dropped.

        Args:
            path: The file.

        Raises:
            TypeError: `path` is no path.
            FileNotFoundError: The file does not exist.
            ValueError: The file is empty or not UTF-8, a line is empty or repeats another one, or
                a special token is missing. The message names the file and the line.
        """
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"`path` must be a vocabulary file. Received: path={path!r:.80}")
        file = Path(path)
        if not file.is_file():
            raise FileNotFoundError(f"`path` must be a vocabulary file. Received: path={file}")
        lines = decoded(file.read_bytes(), f"Vocabulary file {file}").split("\n")
        tokens = [line.strip(" \t\r") for line in lines]
        if tokens[-1] == "":
            tokens.pop()  # after the last line end
        _ids_of(tuple(tokens), f"Vocabulary file {file}", "line", 1, BERT_TOKENS.required)
        return cls(tokens)

    @classmethod
    def from_pretrained(cls, name_or_directory: str | os.PathLike[str]) -> "Vocabulary":
        """Reads the vocabulary of a published encoder, or of the folder of a model.

        Args:
            name_or_directory: A known name, an `org/name` of the Hugging Face hub, or a directory,
                as for `kbert.Bert.from_pretrained`.

        Raises:
            ValueError: It is no checkpoint, or has no vocabulary.
            FileNotFoundError: The directory or name does not exist.
        """
        read = loaded("kbert.pipelines.tokenizers.pretrained_tokenizer")
        found: Vocabulary = read(name_or_directory).vocabulary
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the tokens to `path`, one per line, in the format of `from_file`.

        Raises:
            ValueError: A token would not survive a round trip: it contains a line end, or begins
                or ends with ASCII white space.
        """
        for index, token in enumerate(self.tokens):
            if "\n" in token or token != token.strip(" \t\r"):
                raise ValueError(
                    "Tokens written to a file must have no line ends and no ASCII white space "
                    f"around them. Received: tokens[{index}]={token!r}"
                )
        write_atomically(Path(path), "".join(f"{token}\n" for token in self.tokens))

    def id_of(self, token: str) -> int:
        """Returns the id of `token`; raises a KeyError if there is none."""
        try:
            return self._ids[token]
        except KeyError:
            raise KeyError(
                f"`token` must be in the vocabulary of {len(self)}. Received: token={token!r}"
            ) from None

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Vocabulary)
            and self.tokens == other.tokens
            and self.special_tokens == other.special_tokens
        )

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens)"

    @property
    def padding_id(self) -> int:
        """The id of `[PAD]`."""
        return self._ids[self.special_tokens.padding]

    @property
    def unknown_id(self) -> int:
        """The id of `[UNK]`."""
        return self._ids[self.special_tokens.unknown]

    @property
    def cls_id(self) -> int:
        """The id of `[CLS]`."""
        return self._ids[self.special_tokens.cls]

    @property
    def sep_id(self) -> int:
        """The id of `[SEP]`."""
        return self._ids[self.special_tokens.sep]

    @property
    def mask_id(self) -> int:
        """The id of `[MASK]`; a KeyError if the vocabulary has none."""
        return self.id_of(self.special_tokens.mask)

    @property
    def has_mask(self) -> bool:
        """True if there is `[MASK]`."""
        return self.special_tokens.mask in self._ids

    def is_special(self, token: str) -> bool:
        """Returns whether `token` is one of the special tokens."""
        return token in self.special_tokens.names

    def continues_word(self, token: str) -> bool:
        """Returns whether `token` continues the word of the token before it.

        In a byte-level vocabulary a word begins with the space before it, so the first word of a
        text, and a mark after a word, count as its continuation.
        """
        if self.special_tokens.byte_level:
            return not self.is_special(token) and not token.startswith(byte_characters()[0x20])
        return token.startswith(CONTINUES)

    def text_of(self, token: str) -> str:
        """Returns the text of `token`: with the space before it where it has one, without "##".

        Bytes that are not UTF-8, as of a part of a character, become U+FFFD.
        """
        if self.is_special(token):
            return token
        if self.special_tokens.byte_level:
            if not _byte_numbers().keys() >= set(token):  # an added one, as it is
                return token
            return bytes(map(_byte_numbers().__getitem__, token)).decode("utf-8", "replace")
        return token.removeprefix(CONTINUES)


def decoded(content: bytes, where: str) -> str:
    """Decodes a file; a ValueError begins with `where`, and names the first line not in UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{where} must be UTF-8. Received: line {line} with the byte "
            f"{content[error.start]:#04x}"
        ) from error


def _ids_of(
    tokens: tuple[str, ...], where: str, place: str, first: int, required: tuple[str, ...]
) -> dict[str, int]:
    """Returns token -> id. `where`, `place` and `first` describe the source in errors."""
    if not tokens or tokens == ("",):
        raise ValueError(f"{where} must have at least one token. Received: none")
    ids: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if not isinstance(token, str):
            raise TypeError(
                f"{where} must have strings only. Received: {token!r} at {place} {index + first}"
            )
        if not token:
            raise ValueError(
                f"{where} must have a token on each line. "
                f"Received: an empty one at {place} {index + first}"
            )
        if token in ids:
            raise ValueError(
                f"{where} must have each token once. Received: {token!r} at {place} "
                f"{ids[token] + first} and again at {place} {index + first}"
            )
        ids[token] = index
    missing = [token for token in required if token not in ids]
    if missing:
        raise ValueError(
            f"{where} must have the tokens {', '.join(required)}. Received: {len(tokens)} "
            f"tokens up to {place} {len(tokens) - 1 + first}, without {', '.join(missing)}"
        )
    return ids
