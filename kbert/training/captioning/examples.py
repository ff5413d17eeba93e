"""The images and captions of a run, read and checked before the training; its subwords."""

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kbert.data.captions.captioned_images import CaptionExamples, read_captions
from kbert.options.configuration import wrong
from kbert.storage.files import sampled_hashes
from kbert.text.subword import Subword
from kbert.text.subword_training import train_subwords
from kbert.training.config.captioning_config import PARTS, CaptioningConfig
from kbert.training.runs.run_directory import tell_stage
from kbert.training.runs.stopped_runs import check_unchanged

# Name in the run directory.
SUBWORDS = "subwords.model"
# Options that determine the pieces.
_OF_SUBWORDS = ("subwords", "subword_type", "vocabulary_size", "normalization")
_HASHES = {"train": "data_sha256", "validation": "validation_sha256", "test": "test_sha256"}


@dataclass(frozen=True)
class CaptioningData:
    """The images and captions of a run, for training, validation and test."""

    parts: dict[str, CaptionExamples]

    @property
    def hashes(self) -> dict[str, str]:
        """Hashes of the parts, by their keys in a run's report."""
        return {_HASHES[name]: _sha256(part) for name, part in self.parts.items()}


def _sha256(examples: CaptionExamples) -> str:
    """Returns a hash of all captions, and of the images as `sampled_hashes` sees them."""
    digest = hashlib.sha256()
    hashes = sampled_hashes(examples.paths)
    for name, captions, image in zip(examples.images, examples.captions or (), hashes):
        digest.update(repr((name, captions, image)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def read_captioning_data(config: CaptioningConfig) -> CaptioningData:
    """Reads all captions of a run; errors name the file and the line."""
    parts: dict[str, CaptionExamples] = {}
    for part in PARTS:
        path = getattr(config, part)
        if path is None:
            continue
        tell_stage(f"reading {path}")
        columns = (config.image_column, config.caption_column)
        parts[part] = read_captions(path, config.images or "", *columns)
    sizes = config.split_sizes
    if sizes is not None:
        if sum(sizes) > (count := len(parts["train"])):
            raise wrong("split", f"of {count} images at most, as many as there are", config.split)
        parts = dict(zip(PARTS, parts["train"].split(sizes)))
    return CaptioningData(parts)


def run_subwords(config: CaptioningConfig, data: CaptioningData, kept: Path | None) -> Subword:
    """Returns the subwords of the captions.

    They are those of the stopped run in the folder `kept` (a ValueError if the configuration has
    others), given, or learned from the captions of training.
    """
    if kept is not None and (kept / SUBWORDS).is_file():
        check_unchanged(kept, config, _OF_SUBWORDS, f"the pieces in {kept / SUBWORDS}")
        return Subword.from_file(kept / SUBWORDS)
    if config.subwords is not None:
        return Subword.from_file(config.subwords)
    texts = [text for _, text in data.parts["train"].pairs]
    # Nothing is written into the run directory before all of its input is checked.
    with tempfile.TemporaryDirectory() as folder:
        return train_subwords(
            [texts],
            Path(folder, "learned.model"),
            vocabulary_size=config.vocabulary_size,
            model_type=config.subword_type,
            normalization=config.normalization,
            seed=config.seed,
        )
