"""Plain text in sentences of a few words, and a model that is pretrained on it in seconds."""

import random
from pathlib import Path
from typing import Any

from kbert.training.config.pretraining_config import PretrainingConfig
from tests.training.tiny_runs import WORDS, write_vocabulary


def text(documents: int, seed: int) -> str:
    """Documents of two to six sentences, one a line."""
    draw = random.Random(seed)
    made = []
    for _ in range(documents):
        lengths = [draw.randint(3, 7) for _ in range(draw.randint(2, 6))]
        made.append("\n".join(" ".join(draw.choices(WORDS, k=n)) + "." for n in lengths))
    return "\n\n".join(made) + "\n"


class TinyCorpus:
    """Two files to learn from and one to measure, a vocabulary, and configurations with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for number in range(2):
            (folder / f"part{number}.txt").write_text(text(30, number))
        (folder / "held-out.txt").write_text(text(10, 9))
        self.vocabulary = write_vocabulary(folder)

    def values(self, output: Path, **others: Any) -> dict[str, Any]:
        """The keys of a run of five steps, with a state after the second, fourth and fifth."""
        return {
            "text": [str(self.folder / "part*.txt")],
            "validation": [str(self.folder / "held-out.txt")],
            "vocabulary": str(self.vocabulary),
            "output": str(output),
            "num_layers": 1,
            "hidden_dim": 16,
            "num_heads": 2,
            "intermediate_dim": 32,
            "positions": 24,
            "max_sequence_length": 20,
            "batch_size": 4,
            "steps": 5,
            "save_every": 2,
            "learning_rate": 0.01,
            "validation_steps": 3,
            **others,
        }

    def config(self, output: Path, **others: Any) -> PretrainingConfig:
        """The configuration of such a run."""
        values = self.values(output, **others)
        return PretrainingConfig.from_dict({k: v for k, v in values.items() if v is not None})
