"""The tokens of a WordPiece model and their ids."""

import os
from collections.abc import Iterable
from pathlib import Path

from kbert.storage.atomic_directory import write_atomically

UNKNOWN, CLS, SEP, PADDING, MASK = "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"
REQUIRED_TOKENS = (UNKNOWN, CLS, SEP, PADDING)
SPECIAL_TOKENS = (*REQUIRED_TOKENS, MASK)


class Vocabulary:
    """Tokens in the order of their ids, as BERT's `vocab.txt` lists them, one per line.

    Args:
        tokens: The tokens; the index of a token is its id. `[UNK]`, `[CLS]`, `[SEP]` and `[PAD]`
            are required, `[MASK]` is optional.

    Raises:
        TypeError: A token is not a string.
        ValueError: No tokens, an empty or a repeated token, or a special token is missing.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens: tuple[str, ...] = tuple(tokens)
        self._ids = _ids_of(self.tokens, "`tokens`", "index", 0)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "Vocabulary":
        """Reads a `vocab.txt`: UTF-8, one token per line, the line number minus one is the id.

        Lines end in `\\n` or `\\r\\n` only: U+2028 and others may be part of a token. ASCII spaces
        and tabs around a token are dropped.

        Args:
            path: The file.

        Raises:
            FileNotFoundError: The file does not exist.
            ValueError: The file is empty or not UTF-8, a line is empty or repeats another one, or
                a special token is missing. The message names the file and the line.
        """
        file = Path(path)
        if not file.is_file():
            raise FileNotFoundError(f"`path` must be a vocabulary file. Received: path={file}")
        tokens = [line.strip(" \t\r") for line in _decoded(file).split("\n")]
        if tokens[-1] == "":
            tokens.pop()  # after the last line end
        _ids_of(tuple(tokens), f"Vocabulary file {file}", "line", 1)
        return cls(tokens)

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
        return isinstance(other, Vocabulary) and self.tokens == other.tokens

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens)"

    @property
    def padding_id(self) -> int:
        """The id of `[PAD]`."""
        return self._ids[PADDING]

    @property
    def unknown_id(self) -> int:
        """The id of `[UNK]`."""
        return self._ids[UNKNOWN]

    @property
    def cls_id(self) -> int:
        """The id of `[CLS]`."""
        return self._ids[CLS]

    @property
    def sep_id(self) -> int:
        """The id of `[SEP]`."""
        return self._ids[SEP]

    @property
    def mask_id(self) -> int:
        """The id of `[MASK]`; a KeyError if the vocabulary has none."""
        return self.id_of(MASK)


def _decoded(file: Path) -> str:
    """Returns the text of a vocabulary file; an error names the first line that is not UTF-8."""
    content = file.read_bytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"Vocabulary file {file} must be UTF-8. Received: line {line} with the byte "
            f"{content[error.start]:#04x}"
        ) from error


def _ids_of(tokens: tuple[str, ...], where: str, place: str, first: int) -> dict[str, int]:
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
    missing = [token for token in REQUIRED_TOKENS if token not in ids]
    if missing:
        raise ValueError(
            f"{where} must have the tokens {', '.join(REQUIRED_TOKENS)}. Received: {len(tokens)} "
            f"tokens up to {place} {len(tokens) - 1 + first}, without {', '.join(missing)}"
        )
    return ids
