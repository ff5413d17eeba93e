"""Asks a model in TF Serving over REST or gRPC, with raw texts, and prints JSON Lines.

    python export/query_server.py http://localhost:8501 MODEL TEXT [TEXT ...]
    python export/query_server.py grpc://localhost:8500 MODEL < texts.txt
    python export/query_server.py URL MODEL $'who wrote it?\ta context'

Without TEXT each line of the standard input is one. Where the model reads several texts, tabs part
them, in the order in which `kbert.serving.Client.answers` takes them. Many texts go in batches;
what a busy server refuses is asked again. It needs kbert; `query_rest.py` needs only Python.
"""

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from kbert.serving.client.client import Client


def columns_of(texts: Sequence[bytes], inputs: int) -> list[list[Any]]:
    """A column for each input: a text itself, or its parts between tabs.

    Raises:
        ValueError: A text has too few or too many parts.
    """
    rows = [text.split(b"\t") if inputs > 1 else [text] for text in texts]
    for number, row in enumerate(rows, 1):
        if len(row) != inputs:
            raise ValueError(f"text {number} must have {inputs} part(s). It has {len(row)}")
    return [[row[i] for row in rows] for i in range(inputs)]


def plain(answer: Any) -> Any:
    """An answer as JSON can hold it."""
    return dataclasses.asdict(answer) if dataclasses.is_dataclass(answer) else answer


def main(arguments: Sequence[str] | None = None) -> None:
    """Asks once.

    Args:
        arguments: Those of the command line; None for the process's own.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", help="http://host:8501 or grpc://host:8500")
    parser.add_argument("model", help="the model's name in the server")
    parser.add_argument("texts", nargs="*", help="the texts; lines of standard input if absent")
    parser.add_argument("--version", type=int, help="the version; the server's choice if absent")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to wait in all")
    parser.add_argument("--rows", type=int, default=32, help="the most texts of a request")
    given = parser.parse_args(arguments)
    # os.fsencode gives back the very bytes of the command line.
    texts = [os.fsencode(text) for text in given.texts]
    if not texts:
        texts = [line.rstrip(b"\r\n") for line in sys.stdin.buffer]
    try:
        with Client(given.url, given.model, given.version, given.seconds, given.rows) as client:
            inputs = len(client.signatures()["serving_default"].inputs)
            for answer in client.answers(*columns_of(texts, inputs)):
                print(json.dumps(plain(answer), ensure_ascii=False))
    except (ImportError, RuntimeError, ValueError) as error:
        raise SystemExit(f"query_server: {error}") from error


if __name__ == "__main__":
    main()
