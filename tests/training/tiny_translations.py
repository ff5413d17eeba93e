"""A language of six words, whose translator trains in seconds."""

from pathlib import Path
from typing import Any

from kbert.training.config.translation_config import TranslationConfig

WORDS = {"red": "rot", "blue": "blau", "old": "alt", "big": "gross", "dog": "hund", "cat": "katze"}
SOURCES = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in ("dog", "cat")]
TARGETS = [" ".join(WORDS[word] for word in source.split()) for source in SOURCES]
# What replaces the sizes of a Transformer in the values of a run.
_OTHER = {"num_heads": None, "intermediate_dim": None}
_RECURRENT = {**_OTHER, "num_encoder_layers": None, "num_decoder_layers": None}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "rnn": {"architecture": "rnn", **_RECURRENT},
    "bahdanau": {"architecture": "bahdanau", **_RECURRENT},
    "convs2s": {"architecture": "convs2s", **_OTHER},
}
PARTS = {"train": slice(0, 56), "validation": slice(56, 64), "test": slice(64, 72)}


def write_pairs(folder: Path) -> None:
    """train.tsv, train.en, train.de and so on."""
    for part, rows in PARTS.items():
        sources, targets = SOURCES[rows], TARGETS[rows]
        table = "".join(f"{a}\t{b}\n" for a, b in zip(sources, targets))
        (folder / f"{part}.tsv").write_text(f"source\ttarget\n{table}")
        (folder / f"{part}.en").write_text("".join(f"{line}\n" for line in sources))
        (folder / f"{part}.de").write_text("".join(f"{line}\n" for line in targets))


class TinyPairs:
    """The files of a tiny run in a folder, and configurations with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write_pairs(folder)

    def values(self, output: Path, **others: Any) -> dict[str, Any]:
        """The keys of a run of two epochs."""
        return {
            "task": "translation",
            "train": str(self.folder / "train.tsv"),
            "validation": str(self.folder / "validation.tsv"),
            "output": str(output),
            "vocabulary_size": 46,
            "num_encoder_layers": 1,
            "num_decoder_layers": 1,
            "hidden_dim": 16,
            "num_heads": 2,
            "intermediate_dim": 32,
            "max_sequence_length": 24,
            "batch_tokens": 128,
            "epochs": 2,
            "learning_rate": 0.01,
            "warmup_steps": 10,
            "beam_size": 2,
            **others,
        }

    def config(self, output: Path, **others: Any) -> TranslationConfig:
        """The configuration of a run of two epochs."""
        return TranslationConfig.from_dict(self.values(output, **others))
