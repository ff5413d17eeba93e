"""Objects of JSON Lines and JSON text, each with the line where it starts.

Sources: RFC 8259 (JSON); jsonlines.org (one value a line).
"""

import json
import re
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def json_value(source: str, text: str, contents: str, **kwargs: Any) -> Any:
    """Reads one JSON value.

    Args:
        source: path of the file, for messages.
        text: the file's text.
        contents: what the file must hold, for messages.
        **kwargs: further arguments of `json.loads`.

    Raises:
        ValueError: the text is empty or not JSON; the message names the line.
    """
    if not text.strip():
        raise ValueError(f"{source}: the file must hold {contents}. Received: an empty file")
    try:
        return json.loads(text, **kwargs)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{source}, line {error.lineno}: the file must be JSON. Received: {error.msg} at "
            f"column {error.colno}"
        ) from error
    except (ValueError, RecursionError) as error:  # a number too long, or brackets too deep
        raise ValueError(f"{source}: the file must be JSON. Received: {error}") from error


def json_rows(
    source: str, text: str, one_a_line: bool
) -> tuple[list[dict[str, Any]], list[int]]:
    """Reads the objects of a JSON Lines or a JSON text.

    Args:
        source: path of the file, for messages.
        text: the file's text.
        one_a_line: True for JSON Lines; False for one JSON value, which is a list of objects or
            an object {id: object}. Such an id becomes the object's `id` where it has none.

    Returns:
        The objects, at least one, and the 1-based line of each.

    Raises:
        ValueError: the text is not JSON, or a value is not an object. The message names the line.
    """
    rows, lines = _objects_by_line(source, text) if one_a_line else _objects(source, text)
    if not rows:
        raise ValueError(f"{source}: the file must hold examples. Received: no object")
    return rows, lines


def _objects_by_line(source: str, text: str) -> tuple[list[dict[str, Any]], list[int]]:
    rows, lines = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{source}, line {number}: each line must be a JSON object. Received: "
                f"{_shortened(line)} ({error.msg} at column {error.colno})"
            ) from error
        rows.append(_checked(source, number, value))
        lines.append(number)
    return rows, lines


def _objects(source: str, text: str) -> tuple[list[dict[str, Any]], list[int]]:
    """Parses the outermost list or object entry by entry, so that each entry's line is known."""
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    seen: dict[str, int] = {}
    position = _skip_space(text, 0)
    opening = text[position]
    if opening not in "{[":
        raise ValueError(
            f"{source}, line 1: the file must be a JSON object or list. Received: "
            f"{_shortened(text[position:])}"
        )
    closing = "}" if opening == "{" else "]"
    position = _skip_space(text, position + 1)
    line, counted = 1, 0
    while text[position : position + 1] != closing:
        line, counted = line + text.count("\n", counted, position), position
        key = None
        try:
            if opening == "{":
                key, position = _DECODER.raw_decode(text, position)
                position = _after(text, position, ":")
            value, position = _DECODER.raw_decode(text, position)
            position = _skip_space(text, position)
            if text[position : position + 1] != closing:
                position = _after(text, position, ",")
                if text[position : position + 1] == closing:
                    raise json.JSONDecodeError("a comma behind the last entry", text, position)
        except (json.JSONDecodeError, IndexError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "unexpected end"
            raise ValueError(
                f"{source}, line {line}: the file must be JSON. Received: an entry that cannot be "
                f"read ({reason})"
            ) from error
        row = _checked(source, line, value)
        if key is not None:
            if key in seen:
                raise ValueError(
                    f"{source}, line {line}: each id must occur once. Received: {key!r}, which "
                    f"line {seen[key]} has too"
                )
            seen[key] = line
            row = {"id": key, **row}
        rows.append(row)
        lines.append(line)
    rest = _skip_space(text, position + 1)
    if rest < len(text):
        raise ValueError(
            f"{source}, line {1 + text.count(chr(10), 0, rest)}: the file must hold one JSON "
            f"value. Received: more behind it: {_shortened(text[rest:])}"
        )
    return rows, lines


def _checked(source: str, line: int, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(
            f"{source}, line {line}: each example must be a JSON object. Received: "
            f"{_shortened(json.dumps(value))}"
        )
    return value


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _after(text: str, position: int, character: str) -> int:
    position = _skip_space(text, position)
    if text[position : position + 1] != character:
        raise json.JSONDecodeError(f"`{character}` is missing", text, position)
    return _skip_space(text, position + 1)


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}..."
