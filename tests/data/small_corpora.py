"""Plain text small enough for tests."""

import gzip
import random
from pathlib import Path

WORDS = ["a", "the", "film", "good", "bad", "very", "goodness", "xy", "qrs"]


def documents(count, seed=0, sentences=(2, 12), words=(3, 14)):
    """Documents, each a list of sentences of such words; every sentence is a different one."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        made.append([
            " ".join(draw.choices(WORDS, k=draw.randint(*words))).capitalize() + "."
            for _ in range(draw.randint(*sentences))
        ])
    return made


def text_of(some):
    """Documents with a sentence a line and a blank line between them."""
    return "\n\n".join("\n".join(sentences) for sentences in some) + "\n"


def written(path: Path, text: str | bytes) -> Path:
    """A file of text, gzipped where its name says so."""
    content = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path
