"""Vocabularies of 8,000 and 50,000 tokens, beside the published tokenizer."""

import gzip
import json
import random
from pathlib import Path

import pytest

from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
from kbert.text.byte_level_bpe.training import train_byte_level_bpe
from tests.text.byte_level_bpe_cases import PARTS, check, published

pytestmark = pytest.mark.slow


def lines_of(path: Path) -> list[str]:
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    return content.decode().split("\n")


@pytest.fixture(scope="module")
def goldens(shared_data: Path) -> list[str]:
    """Lines in six languages."""
    content = lines_of(shared_data / "golden" / "hf_tokenizers_wordpiece_cased.json.gz")
    return [case["text"] for case in json.loads("".join(content))["cases"]]


@pytest.fixture(scope="module", params=[8_000, 50_000])
def bpe(request: pytest.FixtureRequest, shared_data: Path, goldens: list[str]) -> ByteLevelBPE:
    texts = shared_data / "text"
    novels = lines_of(texts / "english_novels_19c.txt.gz")
    wikipedia = lines_of(texts / "wikitext-2.valid.txt")
    vocabulary, merges = train_byte_level_bpe([*novels, *wikipedia, *goldens], request.param)
    assert len(vocabulary) == request.param
    return ByteLevelBPE(vocabulary, merges)


def test_goldens_wikipedia_and_german(
    bpe: ByteLevelBPE, shared_data: Path, goldens: list[str]
) -> None:
    peer = published(bpe)
    for rows in (
        goldens,
        lines_of(shared_data / "text" / "wikitext-2.test.txt"),
        lines_of(shared_data / "mt" / "multi30k" / "train.de.gz")[:5000],
    ):
        for begin in range(0, len(rows), 512):
            check(bpe, peer, rows[begin : begin + 512])


def test_twenty_thousand_random_strings(bpe: ByteLevelBPE) -> None:
    peer, draw = published(bpe), random.Random(0)
    for _ in range(50):
        rows = ["".join(draw.choices(PARTS, k=draw.randrange(30))) for _ in range(300)]
        rows += ["".join(map(chr, draw.choices(range(0xD800), k=20))) for _ in range(50)]
        rows += ["".join(map(chr, draw.choices(range(0xE000, 0x110000), k=20))) for _ in range(25)]
        rows += ["".join(draw.choices("etaoinshr", k=draw.randrange(200))) for _ in range(25)]
        check(bpe, peer, rows)
    for _ in range(10):
        check(bpe, peer, [draw.randbytes(draw.randrange(60)) for _ in range(200)])
