"""Values of rows and answers: as JSON, as cells of tables, and as columns of Parquet."""

import json
import math
from typing import Any

from kbert.data.tables.columns import without_surrogates
from kbert.serving.batch_prediction.row_files import Block, pyarrow

# Prefix of an answer whose name is a column of the input already, such as "label".
PREFIX = "predicted_"
# Answers that are a vector, which Parquet holds as numbers; other lists become JSON there.
_VECTORS = ("embedding",)


def json_text(value: Any) -> str:
    """Formats a value as JSON: null for numbers that are not finite, lone surrogates escaped."""
    try:
        text = _dumped(value)
    except ValueError:  # JSON has no infinity and no NaN
        text = _dumped(value := _finite(value))
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates, which JSON can escape
        return _dumped(value, ensure_ascii=True)
    return text


def _dumped(value: Any, ensure_ascii: bool = False) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False, default=_plain)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cell_text(value: Any) -> str:
    """Formats a value as the text of a cell, nested values as JSON."""
    if isinstance(value, bool | int | float | dict | list):
        return json_text(value)
    return "" if value is None else _plain(value)


def parquet_schema(block: Block) -> Any:
    """Returns the pyarrow schema of the columns of a block: its own, or what its values are of."""
    if block.schema is not None:
        return block.schema
    columns = {name: [row.get(name) for row in block.rows] for name in block.columns}
    fields = [parquet_column(block, name, values, None)[1] for name, values in columns.items()]
    return pyarrow("pyarrow").schema(fields)


def parquet_column(block: Block, name: str, values: list[Any], field: Any) -> tuple[Any, Any]:
    """Returns the pyarrow array and field of a column's values, which are of a known field's type.

    A ValueError says that they are of another type, or of several.
    """
    arrow = pyarrow("pyarrow")
    is_vector = field is None and _is_vector(name, values)
    if not is_vector and (field is None or not arrow.types.is_nested(field.type)):
        values = [cell_text(v) if isinstance(v, dict | list) else v for v in values]
        values = [without_surrogates(v, "", "replace") if isinstance(v, str) else v for v in values]
    kind = arrow.list_(arrow.float32()) if is_vector else None if field is None else field.type
    array: Any = None
    wrong: object = next((value for value in values if _is_changed(value, kind)), None)
    try:
        array = arrow.array(values, kind) if wrong is None else array
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError) as error:
        wrong = error
    if wrong is not None:
        raise ValueError(
            f"--input, {block.places[0]} to {block.places[-1]}: the values of the column {name!r} "
            f"must be of one type, to become Parquet{'' if kind is None else f', {kind}'}. "
            f"Received: {wrong}"
        )
    if field is None:
        array = array.cast(arrow.string()) if arrow.types.is_null(array.type) else array
        field = arrow.field(name, array.type)
    return array, field


def _is_changed(value: Any, kind: Any) -> bool:
    """Returns whether pyarrow would make another number of a value without a word."""
    types = pyarrow("pyarrow").types
    if kind is None or not isinstance(value, bool | float):
        return False
    if isinstance(value, bool):
        return bool(types.is_integer(kind) or types.is_floating(kind))
    return bool(types.is_integer(kind)) and not value.is_integer()


def _is_vector(name: str, values: list[Any]) -> bool:
    """Returns whether a new column holds vectors."""
    own = name.rpartition(PREFIX)[2]
    return own in _VECTORS and all(isinstance(value, list) for value in values)


def _plain(value: Any) -> str:
    """Converts a value without a JSON type to str, such as dates and decimals of Parquet files."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
