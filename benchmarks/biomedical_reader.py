"""A reader of general questions on another encoder: the adapters of minilm-squad on its weights.

    python benchmarks/biomedical_reader.py ENCODER_DIRECTORY OUTPUT_DIRECTORY

minilm-squad is all-MiniLM-L6-v2 with adapters that learned to read questions from SQuAD 1.1. An
encoder that began as all-MiniLM-L6-v2 and has learned on from a field's text takes them too.
"""

import argparse
import json
import shutil
from pathlib import Path

from kbert.checkpoints.adapter_folder import CONFIG, WEIGHTS
from kbert.checkpoints.pretrained import SHIPPED
from kbert.storage.atomic_directory import atomic_directory

READER = "minilm-squad"


def put_on(encoder: Path, output: Path) -> None:
    """Writes a new folder with the reader's adapters, and the encoder as what they belong to."""
    about = json.loads((SHIPPED[READER] / CONFIG).read_text())
    about["base"] = str(encoder.resolve(strict=True))
    with atomic_directory(output) as folder:
        shutil.copy(SHIPPED[READER] / WEIGHTS, folder)
        (folder / CONFIG).write_text(json.dumps(about, indent=2) + "\n")


def main() -> None:
    """Writes the folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("encoder", type=Path, help="model folder of a run of pretraining")
    parser.add_argument("output", type=Path, help="new folder")
    arguments = parser.parse_args()
    put_on(arguments.encoder, arguments.output)


if __name__ == "__main__":
    main()
