"""TALPCo's English and Burmese sentences, and whether Burmese came out whole."""

import re
from dataclasses import dataclass
from pathlib import Path

from kbert.text.subword import Subword
from kbert.text.subword_training import train_subwords

# In the order of their numbers: the first for training, the next for validation, the last to test.
SIZES = {"train": 1172, "validation": 100, "test": 100}
# English and Burmese together. The 1,172 pairs have 45,000 and 44,000 characters: a piece of a
# larger vocabulary would be seen a few times only. 256 are the bytes, for what was never seen.
PIECES = 1400
_CONSONANT = "[\u1000-\u102a\u103f\u104e]"  # and independent vowels
_SIGN = "[\u102b-\u103e]"
# A sign that is written at a letter but stands at none, a letter that is to be stacked with
# nothing below it, two vowels on one letter, and what stands for a character that was lost.
_BROKEN = re.compile(
    f"(?<!{_CONSONANT})(?<!{_SIGN}){_SIGN}|\u1039(?!{_CONSONANT})"
    "|([\u102b-\u1032])\\1|[\ufffd\u2047]"
)


@dataclass(frozen=True)
class Split:
    """Sentences and translations.

    Attributes:
        sources: English.
        targets: Burmese, raw: spaces stand between phrases.
    """

    sources: list[str]
    targets: list[str]


def read_splits(directory: Path) -> dict[str, Split]:
    """Reads the corpus.

    Args:
        directory: with `data_eng.txt` and `data_myn.txt`, lines of number, tab and sentence.

    Returns:
        The splits of `SIZES`.

    Raises:
        ValueError: it has another number of pairs.
    """
    english, burmese = (_read(directory / f"data_{name}.txt") for name in ("eng", "myn"))
    numbers = sorted(english.keys() & burmese.keys())
    if len(numbers) != sum(SIZES.values()):
        raise ValueError(
            f"`directory` must hold {sum(SIZES.values())} pairs. Received: {len(numbers)}"
        )
    splits, first = {}, 0
    for name, size in SIZES.items():
        some = numbers[first : first + size]
        splits[name] = Split([english[i] for i in some], [burmese[i] for i in some])
        first += size
    return splits


def _read(path: Path) -> dict[int, str]:
    rows = (line.split("\t", 1) for line in path.read_text("utf-8").splitlines() if line)
    return {int(number): " ".join(text.split()) for number, text in rows}


def train_pieces(train: Split, path: Path) -> Subword:
    """The joint pieces of both languages, made once; every text comes back as it is."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = [train.sources, train.targets]
        train_subwords(
            texts,
            path,
            vocabulary_size=PIECES,
            model_type="unigram",
            normalization="identity",
            byte_fallback=True,
        )
    return Subword.from_file(path)


def broken_places(text: str) -> list[str]:
    """What of a Burmese text is no whole syllable, with the two characters before and behind.

    Args:
        text: raw Burmese.
    """
    found = (match.span() for match in _BROKEN.finditer(text))
    return [text[max(0, begin - 2) : end + 2] for begin, end in found]
