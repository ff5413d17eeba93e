"""Training of subword models, from text files to one `.model` file."""

import codecs
import gzip
import io
import os
import random
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kbert.storage.files import write_atomically
from kbert.text.subword import Subword
from kbert.text.tokenizer import check_flags

PADDING_ID, UNKNOWN_ID, START_ID, END_ID = range(4)
MODEL_TYPES = ("bpe", "unigram")
_FLAGS = ("byte_fallback", "remove_extra_whitespaces", "add_dummy_prefix")
NORMALIZATIONS = ("nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf", "identity")
MAX_VOCABULARY_SIZE = 1_000_000  # the library draws so many candidates of unigram pieces
MIN_CHARACTER_COVERAGE = 0.98  # the library's bound
_LONGEST_LINE = 2**30  # bytes; the library drops longer lines without an error
# Sums of floats depend on it, so it is not the machine's number of cores.
_NUM_THREADS = 16
_TOO_LARGE = re.compile(r"Vocabulary size too high .*<= (\d+)")
_TOO_SMALL = re.compile(r"Vocabulary size is smaller than required_chars\. \d+ vs (\d+)")

Text = str | os.PathLike[str] | Sequence[str]


def train_subwords(
    files: Sequence[Text],
    path: str | os.PathLike[str],
    *,
    vocabulary_size: int,
    model_type: str = "bpe",
    character_coverage: float = 1.0,
    normalization: str = "nfkc",
    byte_fallback: bool = False,
    remove_extra_whitespaces: bool = True,
    add_dummy_prefix: bool = True,
    max_lines: int | None = None,
    seed: int = 0,
) -> Subword:
    """Trains a SentencePiece model and writes it to `path` atomically.

    Texts of two languages make a joint model; for separate ones call it twice. The same arguments
    and texts produce the same file. Ids: padding 0, unknown 1, start 2, end 3, then the 256 bytes
    of `byte_fallback`.

    Args:
        files: Each is a text file (UTF-8, gzipped if the name ends in ".gz") or a list of lines.
        path: The `.model` file to write; an existing one is replaced.
        vocabulary_size: Number of pieces, all special ones included.
        model_type: "bpe" (Sennrich et al. 2016) or "unigram" (Kudo 2018).
        character_coverage: The fraction of the text's characters that get a piece, 0.98 to 1; the
            rarest get none. Below 1 for scripts of thousands of characters.
        normalization: "nfkc" (Unicode's), "nmt_nfkc" (it also drops control characters and turns
            every blank into a space), these with "_cf" (letters in lower case), or "identity".
        byte_fallback: Whether a character without a piece becomes its bytes, not unknown.
        remove_extra_whitespaces: Whether spaces at both ends are dropped, and runs collapsed.
        add_dummy_prefix: Whether a word at the start of a text is the same piece as elsewhere.
        max_lines: The number of lines to train on, drawn at random; None for all.
        seed: Seed of that draw.

    Returns:
        The tokenizer of the new model.

    Raises:
        OSError: A file does not exist, or `path` is a folder.
        TypeError: `files` is one name, or holds neither names nor texts; a flag is no bool.
        ValueError: A text is empty, not UTF-8 or broken gzip data (the message names file and
            line), an argument is out of range, or `vocabulary_size` is impossible for these texts
            (the message reports the bound).
    """
    _check_options(vocabulary_size, model_type, character_coverage, normalization, max_lines, seed)
    _check_places(files, path)
    lines = _lines(files)
    model = _train(
        lines if max_lines is None else _drawn(lines, max_lines, seed),
        vocab_size=vocabulary_size,
        model_type=model_type,
        character_coverage=character_coverage,
        normalization_rule_name=normalization,
        byte_fallback=byte_fallback,
        remove_extra_whitespaces=remove_extra_whitespaces,
        add_dummy_prefix=add_dummy_prefix,
    )
    write_atomically(path, model)
    return Subword(model)


def _train(lines: Iterable[bytes], **options: Any) -> bytes:
    """Returns the trained model; the library's errors are rephrased."""
    import sentencepiece

    check_flags(**{name: options[name] for name in _FLAGS})
    failures: list[Exception] = []

    def guarded() -> Iterator[bytes]:
        try:
            yield from lines
        except Exception as error:  # the library would turn it into a RuntimeError
            failures.append(error)
            raise

    written = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=guarded(),
            model_writer=written,
            pad_id=PADDING_ID,
            unk_id=UNKNOWN_ID,
            bos_id=START_ID,
            eos_id=END_ID,
            max_sentence_length=_LONGEST_LINE,
            num_threads=_NUM_THREADS,
            minloglevel=2,
            **options,
        )
    except (RuntimeError, ValueError) as error:
        if failures:
            raise failures[0] from None
        raise _in_our_words(error, options) from error
    return written.getvalue()


def _in_our_words(error: Exception, options: dict[str, Any]) -> ValueError:
    size, kind = options["vocab_size"], options["model_type"]
    if found := _TOO_LARGE.search(str(error)):
        return ValueError(
            f"`vocabulary_size` must be at most {found[1]} for this text with model_type={kind!r}. "
            f"Received: vocabulary_size={size}"
        )
    if found := _TOO_SMALL.search(str(error)):
        return ValueError(
            f"`vocabulary_size` must be at least {found[1]} for this text: a piece for each "
            "special token, each byte of a fallback and each character. "
            f"Received: vocabulary_size={size}"
        )
    return ValueError(
        "`files` must hold text that the normalization leaves something of. Received: "
        f"normalization={options['normalization_rule_name']!r} and the library's message: {error}"
    )


def _check_options(
    vocabulary_size: int,
    model_type: str,
    coverage: float,
    normalization: str,
    lines: int | None,
    seed: int,
) -> None:
    _check_choice("model_type", model_type, MODEL_TYPES)
    _check_choice("normalization", normalization, NORMALIZATIONS)
    _check_whole("vocabulary_size", vocabulary_size, END_ID + 2, MAX_VOCABULARY_SIZE)
    _check_whole("seed", seed, 0)
    if lines is not None:
        _check_whole("max_lines", lines, 1)
    if not MIN_CHARACTER_COVERAGE <= coverage <= 1:
        raise ValueError(
            f"`character_coverage` must be from {MIN_CHARACTER_COVERAGE} to 1. "
            f"Received: character_coverage={coverage!r}"
        )


def _check_places(files: Sequence[Text], path: str | os.PathLike[str]) -> None:
    if Path(path).is_dir():
        raise IsADirectoryError(f"`path` must be a file. Received a folder: path={str(path)!r}")
    if isinstance(files, str | bytes | os.PathLike) or not isinstance(files, Sequence):
        raise TypeError(
            "`files` must be a list, of names of text files or of lists of lines. "
            f"Received: files={files!r}"
        )
    if not files:
        raise ValueError("`files` must have at least one text. Received: files=[]")
    for index, source in enumerate(files):
        if isinstance(source, str | os.PathLike):
            if not os.path.isfile(source):  # a long line would make Path.is_file() raise
                raise FileNotFoundError(
                    "`files` must name text files; lines themselves are given as a list within the "
                    f"list. Received: files[{index}]={str(source)!r}"
                )
        elif isinstance(source, bytes) or not isinstance(source, Sequence):
            raise TypeError(
                "`files` must hold names of text files or lists of lines. "
                f"Received: files[{index}]={source!r}"
            )


def _lines(files: Sequence[Text]) -> Iterator[bytes]:
    """Yields the lines of all texts but blank ones, as UTF-8 without line ends."""
    for index, source in enumerate(files):
        if isinstance(source, str | os.PathLike):
            name, lines = os.fspath(source), _lines_of_file(Path(source))
        else:
            name, lines = f"files[{index}]", _lines_of_list(source, f"files[{index}]")
        number, has_text = 0, False
        for number, line in enumerate(lines, start=1):
            if line.strip():
                has_text = True
                yield line
        if not has_text:
            raise ValueError(f"{name}: the text must not be empty. Received: {number} blank lines")


def _lines_of_file(path: Path) -> Iterator[bytes]:
    number = 0
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                line = line.rstrip(b"\r\n")
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise ValueError(
                        f"{path}, line {number}: the file must be UTF-8. Received: byte "
                        f"{line[error.start]:#04x} ({error.reason})"
                    ) from error
                yield line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(
            f"{path}, after line {number}: the file must be gzip data. Received: {error}"
        ) from error


def _lines_of_list(lines: Sequence[str], name: str) -> Iterator[bytes]:
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, str):
            raise TypeError(f"{name}, line {number}: a line must be a string. Received: {line!r}")
        try:
            yield line.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{name}, line {number}: the text must have a form in UTF-8. Received: "
                f"{line[error.start]!a} ({error.reason})"
            ) from error


def _drawn(lines: Iterable[bytes], max_lines: int, seed: int) -> list[bytes]:
    """Draws `max_lines` lines with equal probability (Vitter 1985, algorithm R)."""
    generator = random.Random(seed)
    kept: list[bytes] = []
    for index, line in enumerate(lines):
        if index < max_lines:
            kept.append(line)
        elif (place := generator.randrange(index + 1)) < max_lines:
            kept[place] = line
    return kept


def _check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"`{name}` must be one of {known}. Received: {name}={value!r}")


def _check_whole(name: str, value: int, least: int, most: int | None = None) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"`{name}` must be an int. Received: {name}={value!r}")
    if value < least or (most is not None and value > most):
        span = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"`{name}` must be {span}. Received: {name}={value}")
