"""Preparation of pretraining records in an Apache Beam pipeline, for text beyond one machine.

An example is a function of seed, pass and block of the text, so a pipeline on many machines makes
the same ones as `kbert.training.pretraining.preparation` on one. Importing this module imports
apache_beam. Sources: its programming guide, sections 4.2.1 (ParDo) and 5 (I/O).
"""

import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kbert.data.pretraining.records import is_record
from kbert.data.remote_files import is_remote
from kbert.extras import install_extra
from kbert.storage.files import atomic_directory
from kbert.training.config.pretraining_config import PreparationConfig
from kbert.training.pretraining.preparation import prepared_corpus, prepared_output, records_of_part
from kbert.training.pretraining.sources import found_records

try:
    import apache_beam as beam
    from apache_beam.io.filesystems import FileSystems
except ImportError as error:
    raise ImportError(
        f"Preparing with Apache Beam needs it: {install_extra('beam')}. Received: {error}"
    ) from error

_TEMPLATE = "-SSSSS-of-NNNNN"


def prepare_with_beam(config: PreparationConfig, parts: int = 1, options: Any = None) -> None:
    """Makes examples of text in a pipeline, and writes them as TFRecords.

    A folder of this machine appears atomically when the pipeline is done; Beam keeps no order of
    examples. Every worker must reach the files of the configuration, and the output's parent.

    Text and vocabulary with a scheme, such as gs://, are read by `tf.io.gfile`, and such an output
    is written by Beam's filesystems: each file of it appears whole, when the pipeline is done.

    Args:
        parts: Number of parts of the text, each processed by one worker at a time; at most the
            number of blocks of `block_bytes`.
        options: `apache_beam.options.pipeline_options.PipelineOptions`; None runs locally.

    Raises:
        ValueError: The files are not text, or there are fewer blocks than parts.
        FileExistsError: The output exists, and may not be replaced.
        NotADirectoryError: The output is a file.
        OSError: Text cannot be reached.
    """
    if parts < 1:
        raise ValueError(f"`parts` must be at least 1. Received: parts={parts}")
    opened: Any
    if is_remote(config.output or ""):
        opened = _replacing(config, _old_shards(config))
    else:
        opened = atomic_directory(prepared_output(config), overwrite=config.overwrite)
    prepared_corpus(config, found_records)  # its errors must come before the pipeline
    # No shard of an older folder may stay among those of the new one.
    with opened as folder:
        with beam.Pipeline(options=options) as pipeline:
            numbers = pipeline | "Parts" >> beam.Create(range(parts)) | beam.Reshuffle()
            records = numbers | "Examples" >> beam.FlatMap(records_of_part, parts, config.to_dict())
            _ = records | "Write" >> _writer(folder, config)


def _old_shards(config: PreparationConfig) -> list[str]:
    """Returns the files of an output of Beam's filesystems, if they may be replaced."""
    output = (config.output or "").rstrip("/")
    (found,) = FileSystems.match([posixpath.join(output, "*")])
    before = [one.path for one in found.metadata_list]
    others = [path for path in before if not is_record(Path(posixpath.basename(path)))]
    if others or (before and not config.overwrite):
        raise FileExistsError(
            "`output` must not exist yet, unless overwrite is true; then it may hold records "
            f"alone. Received: output={output}, with {(others or before)[0]}"
        )
    return before


@contextmanager
def _replacing(config: PreparationConfig, before: list[str]) -> Iterator[str]:
    """Yields the output; of the shards `before`, those that were not replaced go at the end."""
    yield (config.output or "").rstrip("/")
    own = f"-of-{config.shards:05d}.tfrecord"
    FileSystems.delete([path for path in before if not path.endswith(own)])


def _writer(folder: str | Path, config: PreparationConfig) -> Any:
    """Returns the transform that writes records into the shards of a folder."""
    kinds = beam.io.filesystem.CompressionTypes
    return beam.io.WriteToTFRecord(
        posixpath.join(folder, "pretraining"),
        file_name_suffix=".tfrecord",
        num_shards=config.shards,
        shard_name_template=_TEMPLATE,
        compression_type=kinds.GZIP if config.compress else kinds.UNCOMPRESSED,
    )
