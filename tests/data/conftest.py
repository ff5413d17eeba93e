"""Sentence pairs of written language, where the shared data are at hand."""

from pathlib import Path

import numpy as np
import pytest

from kbert.data.translation.parallel_text import read_parallel


@pytest.fixture(scope="session")
def multi30k(shared_data: Path) -> Path:
    """The folder of Multi30k, English and German captions of photographs (Elliott et al. 2016)."""
    folder = shared_data / "mt" / "multi30k"
    if not folder.is_dir():
        pytest.skip(f"No Multi30k at {folder}: put train.en.gz, train.de.gz and so on there.")
    return folder


@pytest.fixture(scope="session")
def multi30k_lengths(multi30k: Path) -> np.ndarray:
    """Words of each of its 29,000 training captions, int (2, n): English, German."""
    examples = read_parallel(multi30k / "train.en.gz", multi30k / "train.de.gz")
    sides = (examples.sources, examples.targets)
    return np.array([[len(text.split()) for text in side] for side in sides])
