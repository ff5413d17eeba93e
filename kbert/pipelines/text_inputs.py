"""Recognition of the forms of texts, and of numbers, that `fit`, `evaluate` and `predict` take."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf


@dataclass(frozen=True)
class TextInputs:
    """Raw texts or pairs: n str or bytes, and as many second texts or None."""

    text_a: Sequence[Any]
    text_b: Sequence[Any] | None = None

    def __len__(self) -> int:
        return len(self.text_a)

    def __getitem__(self, rows: slice) -> "TextInputs":
        return TextInputs(self.text_a[rows], None if self.text_b is None else self.text_b[rows])


def read_single_texts(x: Any, *names: str) -> list[Any] | None:
    """Returns raw single texts, or None if `x` is something else.

    Texts are a list, array or column of str or bytes, or a dict or table with such a column of one
    of the names, of which the first present is taken; "text" by default.

    Raises:
        ValueError: `x` is a single text, or a dict or table with other names.
        TypeError: an entry is neither str nor bytes.
    """
    forms = [(name,) for name in names or ("text",)]
    x = read_columns(x, *forms)
    if isinstance(x, dict):
        columns = dict_of_texts(x, *forms)
        return None if columns is None else columns[0]
    if isinstance(x, str | bytes):
        raise ValueError(f"`x` must be a list of texts. Received: x={x[:80]!r}, a single one")
    if isinstance(x, tuple) and x and all(map(is_texts, x)):
        raise ValueError(f"`x` must be one list of texts. Received: a tuple of {len(x)} lists")
    return checked_texts("x", x) if is_texts(x) else None


def read_text_inputs(x: Any, pair: bool | None = None) -> TextInputs | None:
    """Returns raw texts or pairs, or None if `x` is something else (token ids, a dataset).

    Texts are a list, array or column of str; a tuple of two such; or a dict or table {"text"} or
    {"text_a", "text_b"}. `pair` says whether the model reads pairs; None where it may be either.

    Raises:
        ValueError: `x` is a single text, a list of pairs, a dict or table of strings with other
            names, or columns of different lengths; or it has pairs where the model reads single
            texts, or the reverse.
        TypeError: an entry is neither str nor bytes.
    """
    singles, pairs = (("text",), ("text_a",)), (("text_a", "text_b"),)
    forms = {None: pairs + singles, True: pairs, False: singles}[pair]
    x = read_columns(x, *forms)
    if isinstance(x, str | bytes):
        raise ValueError(f"`x` must be a list of texts. Received: x={x[:80]!r}, a single one")
    if isinstance(x, list) and x and isinstance(x[0], list | tuple) and is_texts(x[0]) and x[0]:
        raise ValueError(
            "`x` must be a tuple of two lists, the first texts and the second texts of all pairs. "
            f"Received: a list that begins with {x[0]!r}"
        )
    if isinstance(x, dict):
        if set(x) == {"text_a"}:
            x = {"text": x["text_a"]}
        lists = dict_of_texts(x, ("text",), *pairs)
        if lists is None:
            return None
    elif isinstance(x, tuple) and len(x) in (1, 2) and all(map(is_texts, map(as_column, x))):
        names = ("x",) if len(x) == 1 else ("text_a", "text_b")
        lists = [checked_texts(name, as_column(column)) for name, column in zip(names, x)]
    elif is_texts(x):
        lists = [checked_texts("x", x)]
    else:
        return None
    if len(lists) == 2 and len(lists[0]) != len(lists[1]):
        raise ValueError(
            f"`text_b` must be as long as `text_a`. Received: {len(lists[0])} and {len(lists[1])}"
        )
    check_pair(len(lists) == 2, pair)
    return TextInputs(*lists)


def check_pair(received: bool, pair: bool | None) -> None:
    """Raises a ValueError where a model of single texts received pairs, or the reverse."""
    if pair and not received:
        raise ValueError(
            "`x` must be pairs of texts, a tuple of two lists or columns `text_a` and `text_b`: "
            "the model was made with pair=True. Received: single texts"
        )
    if pair is False and received:
        raise ValueError(
            "`x` must be single texts: the model was made with pair=False. Received: pairs; a "
            "model of pairs is made with pair=True, which `from_pretrained` takes too"
        )


def read_columns(x: Any, *forms: tuple[str, ...]) -> Any:
    """Reads a table of another library as a dict of columns, and a column as a list.

    Tables are those of pandas or Hugging Face's datasets; neither need be installed. The first of
    the forms, names of columns, that a table has is taken, and its other columns are left out.
    Anything else stays as it is.

    Raises:
        ValueError: `x` is a table without these columns, or several tables.
    """
    names = getattr(x, "column_names", None)  # of datasets
    if isinstance(names, dict):
        raise ValueError(
            f"`x` must be one split of the data set. Received: a {type(x).__name__} of "
            f"{sorted(names)}"
        )
    if names is None and hasattr(x, "iloc"):  # of pandas
        names = getattr(x, "columns", None)
    if names is None:
        return as_column(x)
    for form in forms:
        if set(form) <= set(names):
            return {name: as_column(x[name]) for name in form}
    raise ValueError(
        f"`x` must have the columns {_either(forms)}. Received: a {type(x).__name__} with the "
        f"columns {[str(name) for name in names]}"
    )


def dict_of_texts(x: dict[str, Any], *forms: tuple[str, ...]) -> list[list[Any]] | None:
    """Returns the columns of a dict of texts in the order of its form, or None without texts.

    Raises:
        ValueError: the names are others, or a column is no list of texts.
        TypeError: an entry is neither str nor bytes.
    """
    columns = {key: as_column(column) for key, column in x.items()}
    if not any(is_texts(column) or isinstance(column, str | bytes) for column in columns.values()):
        return None
    form = next((form for form in forms if set(form) == set(x)), None)
    if form is None:
        raise ValueError(
            f"`x`, a dict of texts, must have the keys {_either(forms)}. Received: {sorted(x)}"
        )
    for key, column in columns.items():
        if not is_texts(column):
            raise ValueError(f"`{key}` must be a list of texts. Received: {key}={column!r:.80}")
    return [checked_texts(key, columns[key]) for key in form]


def tensors_of(x: Any, forms: Sequence[tuple[str, ...]]) -> list[Any]:
    """Returns the string tensors of a batch, those of a dict in the order of its form.

    Raises:
        ValueError: the names of a dict are others.
    """
    if not isinstance(x, dict):
        return list(x) if isinstance(x, list | tuple) else [x]
    form = next((form for form in forms if set(form) == set(x)), None)
    if form is None:
        raise ValueError(
            f"a dataset of texts by name must have {_either(forms)}. Received: {sorted(x)}"
        )
    return [x[name] for name in form]


def is_texts(column: Any) -> bool:
    """Returns whether an object is a column of texts; single entries may be missing values."""
    if isinstance(column, tf.Tensor):
        return bool(column.dtype == tf.string and column.shape.rank == 1)
    if isinstance(column, np.ndarray):
        return column.ndim == 1 and (column.dtype.kind in "OUS" or not column.size)
    if not isinstance(column, list | tuple):
        return False
    return not column or any(isinstance(text, str | bytes) or _is_missing(text) for text in column)


def as_column(column: Any) -> Any:
    """Converts a column of pandas or Hugging Face's datasets to a list; all else stays as it is."""
    if isinstance(column, list | tuple | str | bytes):
        return column
    if hasattr(column, "to_numpy") and hasattr(column, "tolist"):  # of pandas
        return column.tolist()
    return list(column) if isinstance(column, Sequence) else column  # of datasets


def listed(x: Any) -> Any:
    """Reads an iterator of texts or of targets into a list; one of batches stays an iterator.

    So do those that a tuple or dict holds. Anything else stays as it is.
    """
    if type(x) is tuple:  # no named ones, nor several data sets, which are a subclass of dict
        return tuple(map(listed, x))
    if type(x) is dict:
        return {key: listed(column) for key, column in x.items()}
    if not isinstance(x, Iterator):
        return x
    first = list(itertools.islice(x, 1))
    every = itertools.chain(first, x)
    if not first or isinstance(first[0], str | bytes | int | float | np.generic | None):
        return list(every)
    return list(every) if is_texts(first[0]) else (batch for batch in every)


def checked_inputs(x: Any, batch_size: Any = None) -> Any:
    """Checks `x` and `batch_size` of a method of a model, and reads `x` as `listed` does.

    Raises:
        ValueError: `x` is nothing, a number, a list of numbers or texts of another shape than
            (n,), or `batch_size` no size.
    """
    if batch_size is not None and not (isinstance(batch_size, int | np.integer) and batch_size > 0):
        raise ValueError(
            f"`batch_size` must be a whole number above 0, or None. Received: {batch_size!r}"
        )
    x = listed(x)
    if isinstance(x, np.ndarray) and x.dtype.kind in "OUS" and x.ndim != 1:
        raise ValueError(f"`x` must be texts of the shape (n,). Received: shape {x.shape}")
    first = x[0] if isinstance(x, list) and x and not is_texts(x) else x
    number = first[0] if isinstance(first, list) and first and not is_texts(first) else first
    if first is None or isinstance(number, int | float | np.number):
        form = "a list that begins with " if first is not x else ""
        raise ValueError(
            "`x` must be texts, or a dict with token ids in arrays. "
            f"Received: {form}{first!r:.80}"
        )
    return x


def weight_array(weight: Any) -> np.ndarray | None:
    """Converts weights of texts to float32 (n,); None stays; a ValueError for what is no weight."""
    if weight is None:
        return None
    values = np.asarray(as_column(listed(weight)), "float32")
    if not (np.isfinite(values) & (values >= 0)).all():  # one NaN makes all weights of a model NaN
        raise ValueError(
            "`sample_weight` must hold finite numbers of at least 0. "
            f"Received: {values.ravel().tolist()[:10]}"
        )
    return values


def checked_texts(name: str, column: Any) -> list[Any]:
    """Returns the texts of a column as a list, or raises a TypeError that names the column."""
    if isinstance(column, dict) or hasattr(column, "columns") or hasattr(column, "column_names"):
        # Whose list is that of its names.
        raise TypeError(f"`{name}` must be a list of texts. Received: {type(column).__name__}")
    texts = list(as_column(column.numpy() if isinstance(column, tf.Tensor) else column))
    for number, text in enumerate(texts):
        if not isinstance(text, str | bytes):
            raise TypeError(f"`{name}[{number}]` must be str or bytes. Received: {text!r:.80}")
    return texts


def _is_missing(text: Any) -> bool:
    return text is None or (isinstance(text, float) and text != text)


def _either(forms: Sequence[tuple[str, ...]]) -> str:
    """Formats names of columns for an error: "text_a" and "text_b", or "text"."""
    return ", or ".join(" and ".join(f'"{name}"' for name in form) for form in forms)


def finite_numbers(y: Any, one: str) -> np.ndarray:
    """Converts targets that are numbers, n or (n, 1), to float32 (n,).

    Raises:
        ValueError: an entry is not a finite number, or there are several; `one` says of what one is
            wanted, such as "number a text".
    """
    try:
        values = np.asarray(y, dtype="float32")
    except (TypeError, ValueError) as error:
        raise ValueError(f"`y` must hold finite numbers. Received: {y!r:.80}") from error
    if values.ndim != 1 and values.shape != (len(values), 1):
        raise ValueError(f"`y` must have one {one}. Received: shape {values.shape}")
    values = values.reshape(-1)
    if not np.isfinite(values).all():
        raise ValueError(f"`y` must hold finite numbers. Received: {values.tolist()[:10]}")
    return values
