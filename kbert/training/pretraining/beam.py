"""Preparation of pretraining records in an Apache Beam pipeline, for text beyond one machine.

An example is a function of seed, pass and block of the text, so a pipeline on many machines makes
the same ones as `kbert.training.pretraining.preparation` on one. Importing this module imports
apache_beam. Sources: its programming guide, sections 4.2.1 (ParDo) and 5 (I/O).
"""

from pathlib import Path
from typing import Any

from kbert.extras import install_extra
from kbert.storage.files import atomic_directory
from kbert.training.config.pretraining_config import PreparationConfig
from kbert.training.pretraining.preparation import prepared_corpus, prepared_output, records_of_part

try:
    import apache_beam as beam
except ImportError as error:
    raise ImportError(
        f"Preparing with Apache Beam needs it: {install_extra('beam')}. Received: {error}"
    ) from error

_TEMPLATE = "-SSSSS-of-NNNNN"


def prepare_with_beam(config: PreparationConfig, parts: int = 1, options: Any = None) -> None:
    """Makes examples of text in a pipeline, and writes them as TFRecords.

    The folder appears atomically when the pipeline is done; Beam keeps no order of examples. Every
    worker must reach the files of the configuration, and the output's parent folder.

    Args:
        parts: Number of parts of the text, each processed by one worker at a time; at most the
            number of blocks of `block_bytes`.
        options: `apache_beam.options.pipeline_options.PipelineOptions`; None runs locally.

    Raises:
        ValueError: The files are not text, or there are fewer blocks than parts.
        FileExistsError: The output exists, and may not be replaced.
        NotADirectoryError: The output is a file.
    """
    output = prepared_output(config)
    if parts < 1:
        raise ValueError(f"`parts` must be at least 1. Received: parts={parts}")
    prepared_corpus(config)  # its errors must come before the pipeline
    # No shard of an older folder may stay among those of the new one.
    with atomic_directory(output, overwrite=config.overwrite) as folder:
        with beam.Pipeline(options=options) as pipeline:
            numbers = pipeline | "Parts" >> beam.Create(range(parts)) | beam.Reshuffle()
            records = numbers | "Examples" >> beam.FlatMap(records_of_part, parts, config.to_dict())
            _ = records | "Write" >> _writer(folder, config)


def _writer(folder: Path, config: PreparationConfig) -> Any:
    """Returns the transform that writes records into the shards of a folder."""
    kinds = beam.io.filesystem.CompressionTypes
    return beam.io.WriteToTFRecord(
        str(folder / "pretraining"),
        file_name_suffix=".tfrecord",
        num_shards=config.shards,
        shard_name_template=_TEMPLATE,
        compression_type=kinds.GZIP if config.compress else kinds.UNCOMPRESSED,
    )
