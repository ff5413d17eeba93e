"""JSON files that hold an object: reads them with clear errors, and their text to write."""

import json
from pathlib import Path
from typing import Any


def read_json_object(path: Path) -> dict[str, Any]:
    """Reads a JSON file in UTF-8; raises a ValueError unless it holds an object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"`{path}` must be a JSON file. Received: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"`{path}` must hold a JSON object. Received: a {type(value).__name__}")
    return value


def json_text(value: dict[str, Any]) -> str:
    """Returns an object as the text of a JSON file, in the order of its keys."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
