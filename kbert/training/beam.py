"""Records to pretrain on, made by an Apache Beam pipeline: for text beyond one machine.

An example is a function of seed, pass and block of the text, so a pipeline on many machines makes
those that `kbert.training.preparation` makes on one. Sources: Apache Beam, programming guide,
sections 4.2.1 (ParDo) and 5 (I/O).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kbert.data.pretraining_dataset import pretraining_dataset
from kbert.data.pretraining_records import serialized
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece import WordPiece
from kbert.training.preparation import example_settings, prepared_corpus
from kbert.training.preparation_config import PreparationConfig

_ROWS = 64
_TEMPLATE = "-SSSSS-of-NNNNN"


def prepare_with_beam(config: PreparationConfig, parts: int = 1, options: Any = None) -> None:
    """Makes examples of text in a pipeline, and writes them as TFRecords.

    Beam gives each file its name when it is whole; it keeps no order of examples.

    Args:
        config: The configuration. Every worker must reach its files, and the folder of the output.
        parts: Into how many parts the text is divided, each made by one worker at a time; at most
            as many as there are blocks of `block_bytes`.
        options: `apache_beam.options.pipeline_options.PipelineOptions`; None runs here.

    Raises:
        ImportError: apache_beam is not installed.
        ValueError: The files are no text, or there are fewer blocks than parts.
        FileExistsError: The folder is there already.
    """
    try:
        import apache_beam as beam
    except ImportError as error:
        raise ImportError(
            'Preparing with Apache Beam needs it: pip install "kbert[beam]". '
            f"Received: {error}"
        ) from error
    output = Path(config.output or "")
    if output.exists() and not config.overwrite:
        raise FileExistsError(
            f"`output` must not exist yet, unless overwrite is true. Received: output={output}"
        )
    if parts < 1:
        raise ValueError(f"`parts` must be at least 1. Received: parts={parts}")
    prepared_corpus(config)  # its errors belong before the pipeline
    kinds = beam.io.filesystem.CompressionTypes
    writer = beam.io.WriteToTFRecord(
        str(output / "pretraining"),
        file_name_suffix=".tfrecord",
        num_shards=config.shards,
        shard_name_template=_TEMPLATE,
        compression_type=kinds.GZIP if config.compress else kinds.UNCOMPRESSED,
    )
    with beam.Pipeline(options=options) as pipeline:
        numbers = pipeline | "Parts" >> beam.Create(range(parts)) | beam.Reshuffle()
        records = numbers | "Examples" >> beam.FlatMap(records_of_part, parts, config.to_dict())
        _ = records | "Write" >> writer


def records_of_part(part: int, parts: int, settings: dict[str, Any]) -> Iterator[bytes]:
    """The examples of a part of the text, as records.

    Args:
        part: Number of the part, from 0.
        parts: How many there are.
        settings: The keys and values of a `PreparationConfig`.

    Yields:
        Serialized tf.train.Example.

    Raises:
        ValueError: The part has no example.
    """
    config = PreparationConfig.from_dict(settings)
    tokenizer = WordPiece(Vocabulary.from_file(config.vocabulary or ""), config.lowercase)
    batches = pretraining_dataset(
        prepared_corpus(config),
        tokenizer,
        batch_size=_ROWS,
        shuffle=False,
        epochs=config.copies,
        worker=part,
        workers=parts,
        **example_settings(config),
    )
    for inputs, targets in batches:
        yield from serialized(inputs, targets)
