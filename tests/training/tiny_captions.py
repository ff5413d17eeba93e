"""A tiny set of drawn shapes with captions, whose captioner trains in seconds."""

from pathlib import Path
from typing import Any

import keras

from kbert.data.samples.drawn_shapes import write_drawn_shapes
from kbert.training.config.captioning_config import CaptioningConfig
from tests.small_captioner import small_network

SPLIT = (12, 4, 4)


class TinyCaptions:
    """The files of a tiny run in a folder, and configurations with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = write_drawn_shapes(folder / "shapes", sum(SPLIT), 3, 32, 2)
        self.network = folder / "cnn.keras"
        keras.utils.set_random_seed(1)
        small_network().save(self.network)

    def values(self, output: Path, **others: Any) -> dict[str, Any]:
        """The keys of a run of two epochs."""
        return {
            "task": "captioning",
            "train": str(self.table),
            "images": str(self.table.parent / "images"),
            "split": ",".join(str(size) for size in SPLIT),
            "network": str(self.network),
            "network_layer": "second",
            "output": str(output),
            "vocabulary_size": 60,
            "hidden_dim": 8,
            "max_sequence_length": 12,
            "max_length": 8,
            "beam_size": 2,
            "dropout": 0.1,
            "batch_size": 8,
            "epochs": 2,
            "learning_rate": 0.02,
            **others,
        }

    def config(self, output: Path, **others: Any) -> CaptioningConfig:
        """The configuration of a run of two epochs."""
        return CaptioningConfig.from_dict(self.values(output, **others))
