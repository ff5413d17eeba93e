"""A reader of general questions on an encoder that has learned on from a field's text.

    python benchmarks/biomedical_reader.py ENCODER_DIRECTORY QUESTIONS_JSON OUTPUT_DIRECTORY

minilm-squad is all-MiniLM-L6-v2 with adapters that learned to read questions from SQuAD 1.1. An
encoder that began as all-MiniLM-L6-v2 takes them too; here they are put on it, and learn again
from general questions, as the encoder below them has changed. A reader of the encoder as it was
comes of the same training of minilm-squad itself.
"""

import argparse
import json
import shutil
from pathlib import Path

from kbert.checkpoints.adapter_folder import CONFIG, WEIGHTS
from kbert.checkpoints.pretrained import SHIPPED
from kbert.storage.files import atomic_directory
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.run import train

READER = "minilm-squad"
WINDOWS = {"max_sequence_length": 192, "stride": 32}


def put_on(encoder: Path, output: Path) -> None:
    """Writes a new folder with the reader's adapters, and the encoder as what they belong to."""
    about = json.loads((SHIPPED[READER] / CONFIG).read_text())
    about["base"] = str(encoder.resolve(strict=True))
    with atomic_directory(output) as folder:
        shutil.copy(SHIPPED[READER] / WEIGHTS, folder)
        (folder / CONFIG).write_text(json.dumps(about, indent=2) + "\n")


def made(encoder: str, questions: Path, output: Path) -> str:
    """The folder of the reader that came of `encoder`; it is trained where it is missing."""
    if not output.is_dir():
        if encoder != READER:
            adapters = output.with_name(f"{output.name}-adapters")
            if not adapters.is_dir():
                put_on(Path(encoder), adapters)
            encoder = str(adapters)
        config = RunConfig(
            task="question-answering",
            train=str(questions),
            encoder=encoder,
            epochs=1,
            batch_size=8,
            learning_rate=5e-4,
            output=str(output),
            **WINDOWS,
        )
        train(config)
    return str(output / "model")


def main() -> None:
    """Makes the reader."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("encoder", help=f"model folder of a run of pretraining, or {READER}")
    parser.add_argument("questions", type=Path, help="in SQuAD's layout")
    parser.add_argument("output", type=Path, help="folder of the run; its model lies in it")
    arguments = parser.parse_args()
    print(made(arguments.encoder, arguments.questions, arguments.output))


if __name__ == "__main__":
    main()
