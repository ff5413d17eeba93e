"""Data sets of the Hugging Face hub, or of a local folder of files, as tables for our readers.

Source: huggingface.co/docs/datasets, `load_dataset`, `Features`, `ClassLabel`.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kbert.extras import install_extra

_TOKENS, _TAGS = "tokens", ("ner_tags", "tags")


@contextmanager
def hf_file(given: str, split: str, tagged: bool = False) -> Iterator[str]:
    """Writes a split of a dataset to a file that is removed at the end of the context.

    Integers of class labels become their names, -1 (a test split without labels) becomes null. Rows
    become JSON Lines with the columns of the dataset.

    Args:
        given: NAME, NAME:CONFIGURATION or either with @SPLIT: "stanfordnlp/imdb@test" or
            "nyu-mll/glue:sst2@validation". A folder of CSV, JSON Lines or Parquet files is a name.
        split: The split where none is given.
        tagged: Whether rows with `tokens` and `ner_tags` (or `tags`) become CoNLL columns instead,
            word and tag.

    Raises:
        ImportError: The package datasets is not installed.
        ValueError: There is no such dataset, configuration or split, it cannot be fetched, or it
            has no rows.
    """
    datasets = _import_datasets()
    source, _, asked = given.partition("@")
    name, _, configuration = source.partition(":")
    try:
        rows = datasets.load_dataset(name, configuration or None, split=asked or split)
    # The library raises errors of its own, of the hub's client and of the file system.
    except Exception as error:
        said = " ".join(str(error).split())
        raise ValueError(
            f"`hf:NAME` must be a dataset that can be loaded. Received: hf:{given}, split "
            f"{asked or split}: {type(error).__name__}: {said[:400]}"
        ) from error
    if not len(rows):
        raise ValueError(f"hf:{given} must have rows. Received: none in {asked or split}")
    names = {column: _class_names(feature) for column, feature in rows.features.items()}
    tags = next((column for column in _TAGS if column in names), None)
    tagged = tagged and _TOKENS in names and tags is not None
    # Messages name the file, and so the dataset.
    stem = re.sub(r"[^\w.-]+", "-", f"hf-{source}-{asked or split}").strip("-")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{stem}.{'conll' if tagged else 'jsonl'}")
        with file.open("w", encoding="utf-8") as output:
            for row in rows:
                plain = {column: _named(value, names[column]) for column, value in row.items()}
                if tagged:
                    pairs = zip(plain[_TOKENS], plain[tags or ""], strict=True)
                    output.write("".join(f"{_word(w)}\t{tag}\n" for w, tag in pairs) + "\n")
                else:
                    output.write(json.dumps(plain, ensure_ascii=False, default=str) + "\n")
        yield str(file)


def _class_names(feature: Any) -> list[str] | None:
    """Returns the names of the classes of a feature, or of a list of it; None for others."""
    inside = feature[0] if isinstance(feature, list) else getattr(feature, "feature", feature)
    names = getattr(inside, "names", None)
    return None if names is None else list(names)


def _named(value: Any, names: list[str] | None) -> Any:
    if names is None:
        return value
    if isinstance(value, list):
        return [_named(one, names) for one in value]
    return names[value] if isinstance(value, int) and value >= 0 else None


def _word(token: str) -> str:
    """Returns a token as one column: white space within it would begin another."""
    return re.sub(r"\s+", "_", token) or "_"


def _import_datasets() -> Any:
    try:
        import datasets
    except ImportError as error:
        raise ImportError(
            f"Reading hf:NAME needs datasets: {install_extra('hf')}. Received: {error}"
        ) from error
    return datasets
