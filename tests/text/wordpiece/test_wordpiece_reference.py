"""The plain Python reference is checked itself: against what Hugging Face tokenizers gave."""

import gzip
import json
from pathlib import Path

import pytest

from tests.text import wordpiece_reference


@pytest.mark.parametrize("name", ["uncased", "cased"])
def test_reference_gives_the_goldens(shared_data: Path, name: str) -> None:
    """879 lines by tokenizers 0.23.3; the lines with typed special tokens are another rule."""
    path = shared_data / "golden" / f"hf_tokenizers_wordpiece_{name}.json.gz"
    golden = json.loads(gzip.decompress(path.read_bytes()))
    lines = (shared_data / "vocab" / f"bert-base-{name}-vocab.txt").read_text("utf-8").split("\n")
    ids = {token: number for number, token in enumerate(lines[:-1])}
    checked = 0
    for case in golden["cases"]:
        if any(token in case["text"] for token in ("[MASK]", "[SEP]", "[CLS]", "[UNK]", "[PAD]")):
            continue
        tokens = wordpiece_reference.tokenize(case["text"], set(ids), name == "uncased")
        assert [ids[token] for token, _, _ in tokens] == case["ids"], case["text"]
        assert [[start, end] for _, start, end in tokens] == case["offsets"], case["text"]
        checked += 1
    assert checked >= 870
