"""Asks a model in TF Serving over REST, with raw texts, and prints its answer as JSON.

    python export/query_rest.py MODEL TEXT [TEXT ...]
    printf 'first text\nsecond text\n' | python export/query_rest.py MODEL
    python export/query_rest.py MODEL --pair $'a question\ta sentence'

Needs nothing but Python. Without TEXT each line of the standard input is one; with --pair a tab
parts the two texts of a pair. Bytes that are no UTF-8 travel as base64, as the server asks.
"""

import argparse
import base64
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote


def json_text(content: bytes) -> Any:
    """A text as TF Serving's REST takes it: a JSON string, or {"b64": ...} for other bytes."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    # A NUL byte may end a C string on the way.
    return {"b64": base64.b64encode(content).decode("ascii")} if "\0" in text else text


def request_body(texts: Sequence[bytes], pair: bool, signature: str | None) -> dict[str, Any]:
    """The body of a predict request: one instance a text, or a pair of texts.

    Raises:
        ValueError: `pair` is True and a text has not one tab.
    """
    if pair and any(text.count(b"\t") != 1 for text in texts):
        raise ValueError("with --pair every text must have one tab between its two parts")
    names = ("text_a", "text_b") if pair else ("text",)
    rows = [text.split(b"\t") if pair else [text] for text in texts]
    body: dict[str, Any] = {"signature_name": signature} if signature else {}
    body["instances"] = [dict(zip(names, map(json_text, row))) for row in rows]
    return body


def query(url: str, body: dict[str, Any], seconds: float) -> Any:
    """Posts a request.

    Returns:
        The answer, parsed.

    Raises:
        OSError: No answer, or one that tells of an error; its text is the message.
    """
    request = urllib.request.Request(
        url, json.dumps(body).encode("utf-8"), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        words = error.read().decode("utf-8", "replace").strip()
        raise OSError(f"{url} answered {error.code}: {words or error.reason}") from error
    except urllib.error.URLError as error:
        raise OSError(f"{url} does not answer: {error.reason}") from error


def main(arguments: Sequence[str] | None = None) -> None:
    """Asks once.

    Args:
        arguments: Those of the command line; None for the process's own.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="the model's name in the server")
    parser.add_argument("texts", nargs="*", help="the texts; lines of standard input if absent")
    parser.add_argument("--url", default="http://localhost:8501", help="where the server listens")
    parser.add_argument("--version", type=int, help="the version; the server's choice if absent")
    parser.add_argument("--signature", help="a signature on raw texts; serving_default if absent")
    parser.add_argument("--pair", action="store_true", help="each text is two, with a tab between")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to wait")
    given = parser.parse_args(arguments)
    # os.fsencode gives back the very bytes of the command line.
    texts = [os.fsencode(text) for text in given.texts]
    if not texts:
        texts = [line.rstrip(b"\r\n") for line in sys.stdin.buffer]
    version = f"/versions/{given.version}" if given.version is not None else ""
    url = f"{given.url.rstrip('/')}/v1/models/{quote(given.model, safe='')}{version}:predict"
    try:
        answer = query(url, request_body(texts, given.pair, given.signature), given.seconds)
    except (OSError, ValueError) as error:
        raise SystemExit(f"query_rest: {error}") from error
    print(json.dumps(answer, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
