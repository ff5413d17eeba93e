"""Preparation of pretraining records from plain text, before any training."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kbert.data.pretraining.corpus import Corpus
from kbert.data.pretraining.dataset import own_errors, pretraining_dataset
from kbert.data.pretraining.records import is_record, serialized, write_records
from kbert.data.remote_files import RemoteFile, fetched, is_remote
from kbert.pipelines.tokenizers import tokenizer_of_file
from kbert.training.config.pretraining_config import PreparationConfig, found_files
from kbert.training.pretraining.sources import found_records

_ROWS = 64
_EXAMPLES = (
    *("objective", "max_sequence_length", "max_predictions", "masked_share", "short_share"),
    *("packing", "whole_words", "ngram", "seed"),
)


def prepare_records(config: PreparationConfig) -> int:
    """Makes examples of text, writes them as TFRecords, and returns their number.

    Memory does not grow with the text. The examples are in its order, pass by pass, and the folder
    appears atomically. Files that are no text, or have fewer examples than shards, are ValueErrors;
    see `prepared_output` for the others.
    """
    output = prepared_output(config)
    corpus = prepared_corpus(config)
    batches = _batches(config, corpus)
    about = {"text": str(corpus), "fingerprint": corpus.fingerprint, "config": config.to_dict()}
    with own_errors(batches):
        return write_records(
            batches, output, config.shards, config.compress, config.overwrite, about=about
        )


def prepared_output(config: PreparationConfig) -> Path:
    """Returns the output folder, checked before any work: new, empty, or of records that may go."""
    output = config.check_output()
    others = sorted(
        path.name for path in (output.iterdir() if output.exists() else ()) if not is_record(path)
    )
    if others:
        raise FileExistsError(
            f"`output` must be new, empty, or a folder of records: nothing else is overwritten. "
            f"Received: output={output}, which holds {others[0]!r}"
        )
    return output


def prepared_corpus(
    config: PreparationConfig, found: Callable[..., list[Any]] = found_files
) -> Corpus:
    """Returns the text of a configuration, whose files `found` looks for."""
    paths = found("text", config.text or [])
    files = [RemoteFile(path) if is_remote(path) else path for path in paths]
    return Corpus(files, config.separator, config.block_bytes, config.encoding_errors, "text")


def _batches(config: PreparationConfig, corpus: Corpus, **part: Any) -> Any:
    """Returns the examples of a text, or of a worker's part of it, in its order."""
    with fetched(config.vocabulary or "") as vocabulary:
        tokenizer = tokenizer_of_file(vocabulary, config.lowercase)
    settings = {name: getattr(config, name) for name in _EXAMPLES}
    copies: dict[str, Any] = {"batch_size": _ROWS, "shuffle": False, "epochs": config.copies}
    return pretraining_dataset(corpus, tokenizer, **copies, **settings, **part)


def records_of_part(part: int, parts: int, settings: dict[str, Any]) -> Iterator[bytes]:
    """Yields the examples of a part of the text, as serialized tf.train.Example; one at least."""
    config = PreparationConfig.from_dict(settings)
    corpus = prepared_corpus(config, found_records)
    batches = _batches(config, corpus, worker=part, workers=parts)
    with own_errors(batches):
        for inputs, targets in batches:
            yield from serialized(inputs, targets)
