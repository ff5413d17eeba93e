"""Multi30k as the literature on small models reads it: tokenised by Moses, lower-cased."""

from dataclasses import dataclass
from pathlib import Path

from sacremoses import MosesTokenizer

from kbert.data.translation.parallel_text import read_parallel
from kbert.text.subword import Subword
from kbert.text.subword_training import train_subwords

TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
PIECES = 10_000


@dataclass(frozen=True)
class Split:
    """Sentences and translations.

    Attributes:
        sources: in one language, tokenised and lower-cased.
        targets: in the other, likewise.
        references: the targets as they were written.
    """

    sources: list[str]
    targets: list[str]
    references: list[str]


def read_split(directory: Path, name: str, direction: str = "en-de") -> Split:
    """Reads train, val or a test set.

    Args:
        directory: with `train.en.gz` and so on.
        name: of the split.
        direction: the languages to translate from and into.
    """
    source, _, target = direction.partition("-")
    files = (directory / f"{name}.{language}.gz" for language in (source, target))
    pairs = read_parallel(*files)
    given = pairs.targets or []
    return Split(tokenized(pairs.sources, source), tokenized(given, target), given)


def tokenized(texts: list[str], language: str) -> list[str]:
    """Texts cut by Moses' rules, and lower-cased."""
    moses = MosesTokenizer(lang=language)
    return [moses.tokenize(text, return_str=True, escape=False).lower() for text in texts]


def train_pieces(train: Split, path: Path) -> Subword:
    """The joint BPE of both languages, made once."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        train_subwords([train.sources, train.targets], path, vocabulary_size=PIECES)
    return Subword.from_file(path)
