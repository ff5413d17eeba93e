"""Writes records to pretrain on: examples are made and masked once, before the TPU is there.

    python tpu/write_records.py CONFIG.yaml FOLDER [--shards 16] [--epochs 10] [--compress]

CONFIG.yaml is a configuration of pretraining with `text` and a `vocabulary`: for example
tpu/configs/pretrain_base.yaml with `vocabulary: FILE` in the place of `vocabulary_size`, which
would have the training make one. Each epoch masks the text anew, as google-research/bert does by
its dupe_factor. The training reads the records: `records: [FOLDER/*.tfrecord]` in the place of
`text`, and the same `vocabulary`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes one folder.

    Args:
        arguments: Those of the command line; None for the process's own.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config", type=Path, help="a YAML file with `text` and `vocabulary`")
    parser.add_argument("folder", type=Path, help="the folder to make")
    parser.add_argument("--shards", type=int, default=16, help="how many files")
    parser.add_argument("--epochs", type=int, default=10, help="how often the text is masked")
    parser.add_argument("--compress", action="store_true", help="gzip the files")
    given = parser.parse_args(arguments)
    # TensorFlow takes seconds to load, which a wrong command line need not wait for.
    from kbert.data.pretraining.corpus import Corpus
    from kbert.data.pretraining.dataset import own_errors, pretraining_dataset
    from kbert.data.pretraining.records import write_records
    from kbert.text.vocabulary import Vocabulary
    from kbert.text.wordpiece.wordpiece import WordPiece
    from kbert.training.config.any_config import config_from_yaml
    from kbert.training.config.pretraining_config import PretrainingConfig, found_files

    try:
        config: Any = config_from_yaml(given.config)
        if not isinstance(config, PretrainingConfig):
            raise ValueError(f"`task` must be pretraining. Received: task={config.task!r}")
        if config.vocabulary is None or config.text is None:
            raise ValueError(
                "`text` and `vocabulary` must be given: the training needs the same vocabulary. "
                f"Received: text={config.text}, vocabulary={config.vocabulary}"
            )
        names = ("max_sequence_length", "max_predictions", "masked_share", "short_share")
        names += ("whole_words", "ngram", "objective", "batch_size", "seed")
        batches = pretraining_dataset(
            Corpus(
                found_files("text", config.text),
                separator=config.separator,
                encoding_errors=config.encoding_errors,
            ),
            WordPiece(Vocabulary.from_file(config.vocabulary), lowercase=config.lowercase),
            epochs=given.epochs,
            **{name: getattr(config, name) for name in names},
        )
        with own_errors(batches):
            count = write_records(batches, given.folder, given.shards, given.compress)
    except (OSError, ValueError) as error:
        print(f"write_records: {error}", file=sys.stderr)
        return 2
    print(f"{count:,} examples in {given.shards} files")
    print(given.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
