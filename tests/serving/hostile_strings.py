"""Strings that nobody means well with, and what must hold of any answer to them."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from kbert.serving.loading.exported import Exported

_WORDS = "a the film good bad very goodness ! . é zebra [UNK] I'm x-y 3,000 GOOD Straße ǅ".split()
_SPECIAL = ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "[unused1]", "##ness", "[mask]", "[MASK"]
_EMOJI = ["\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea"]
_EMOJI += ["\U0001f44d\U0001f3fd", "\U0001f600", "\ufe0f", "a"]
_BIDI = [*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\u200e", "\u200f"]
_BIDI += [*"\u061c\u05d0\u05e9\u0627\u0644", "good "]
_SPACES = [*" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2003\u2028\u2029\u202f\u3000"]
_SPACES += ["\ufeff", "\u200b", "a"]
_CONTROLS = [*map(chr, range(1, 32)), "\x7f", "a", *map(chr, range(128, 160))]
# Overlong forms, surrogates, beyond U+10FFFF, lone heads and tails: no UTF-8.
_BROKEN = [b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80"]
_BROKEN += [b"\xf5\x80\x80\x80", b"\xff", b"\xfe", b"\x80", b"\xbf", b"\xc3", b"\xe4\xb8"]
_BROKEN += [b"\xf0\x9f\x98"]


def _text(draw: random.Random, size: int) -> bytes:
    return " ".join(draw.choices(_WORDS, k=1 + size // 5)).encode()


def _broken(draw: random.Random, size: int) -> bytes:
    text = bytearray(_text(draw, size) + "中é\U0001f600".encode() * (size // 9))
    for _ in range(1 + size // 20):
        text[draw.randrange(len(text))] = draw.randrange(256)
    return bytes(text[: draw.randrange(len(text)) + 1]) + draw.choice(_BROKEN)


def _marks(draw: random.Random, size: int) -> bytes:
    return "".join(
        draw.choice("aé中x") + "".join(chr(draw.randrange(0x300, 0x370)) for _ in range(depth))
        for depth in draw.choices([1, 3, max(1, size // 2)], k=3)
    ).encode()


def _points(draw: random.Random, size: int) -> bytes:
    points = (draw.randrange(0x110000) for _ in range(1 + size // 3))
    return "".join(map(chr, points)).encode("utf-8", "surrogatepass")


def _joined(parts: Any) -> Callable[[random.Random, int], bytes]:
    def made(draw: random.Random, size: int) -> bytes:
        chosen = [draw.choice(parts) for _ in range(1 + size // 4)]
        text = [one if isinstance(one, bytes) else one.encode() for one in chosen]
        return draw.choice([b"", b" "]).join(text)

    return made


FAMILIES: dict[str, Callable[[random.Random, int], bytes]] = {
    "random bytes": lambda draw, size: draw.randbytes(size),
    "random code points": _points,
    "broken UTF-8": _broken,
    "sequences that are no UTF-8": _joined([*_BROKEN, b"a", b" "]),
    "NUL": _joined([b"\0", b"a", b" \0 ", b"good"]),
    "deep combining marks": _marks,
    "emoji": _joined(_EMOJI),
    "right to left, and its controls": _joined(_BIDI),
    "control characters": _joined(_CONTROLS),
    "white space": _joined(_SPACES),
    "special tokens": _joined([*_SPECIAL, "good"]),
    "one long word": lambda draw, size: draw.choice([b"x", "é".encode(), b"xy"]) * size,
    "Chinese, Hangul, Thai": _joined(["中文", "한국어", "ภาษาไทย", "ﬁ", "İ", "ß", "a"]),
    "words": _text,
}


def hostile_strings(count: int, seed: int, large: int = 0) -> Iterator[bytes]:
    """Strings of all families in turn, most of them short, and some of about 1 MB.

    Args:
        count: How many.
        seed: Of the choice.
        large: How many of about 1 MB are among them.
    """
    draw = random.Random(seed)
    families = list(FAMILIES.values())
    places = set(draw.sample(range(count), min(large, count)))
    for number in range(count):
        size = draw.choice([0, 1, 2, 5, 20, 60, 60, 200, 200, 1000 if number % 20 == 0 else 60])
        if number in places:
            piece = families[number % len(families)](draw, 1000) or b"\0"
            yield (piece * (1_000_000 // len(piece) + 1))[:1_000_000]
        else:
            yield families[number % len(families)](draw, size)


def asked(found: Exported, rows: list[tuple[Any, Any]]) -> list[str]:
    """The faults of the answers of all signatures that read texts.

    Args:
        found: An export.
        rows: Two texts each; of a signature that reads one text, the last.
    """
    told = []
    for signature in found.metadata["signatures"]:
        names = found.input_names(signature)
        inputs = {name: [row[-1 - i] for row in rows] for i, name in enumerate(reversed(names))}
        told += list(faults(inputs, found.run(inputs, signature)))
    return told


def faults(inputs: Mapping[str, Any], outputs: Mapping[str, np.ndarray]) -> Iterator[str]:
    """What is wrong with the answers to a batch: nothing, where all is well.

    Args:
        inputs: Name of each input -> its texts (B,), bytes; `choices` (B, K).
        outputs: What the signature answered.
    """
    rows = len(next(iter(inputs.values())))
    for name, batch in outputs.items():
        if len(batch) != rows:
            yield f"{name} has {len(batch)} rows instead of {rows}"
        if batch.dtype.kind == "f" and not np.isfinite(batch.astype("float32")).all():
            yield f"{name} is not finite"
    if "scores" in outputs and "labels" in outputs:
        if not np.allclose(outputs["scores"].astype("float32").sum(-1), 1, atol=1e-2):
            yield "scores do not add up to 1"
    texts = inputs.get("context", inputs.get("text"))
    for row in range(rows) if texts is not None else ():
        text = bytes(texts[row])
        decoded = text.decode("utf-8", "replace")  # once: there may be 100,000 answers
        for found in _spans({key: batch[row] for key, batch in outputs.items()}):
            yield from _span_faults(text, decoded, *found)
        if "tags" in outputs and outputs["count"][row] != len(bytes(texts[row]).split(b" ")):
            yield f"{outputs['count'][row]} tags for {texts[row][:80]!r}"


def _spans(row: Mapping[str, Any]) -> Iterator[tuple[Any, int, int, Any, Any]]:
    """Each answer of a row: text, code points, and bytes or None."""
    if "answer" in row:
        yield row["answer"], row["start"], row["end"], row["start_byte"], row["end_byte"]
        for text, start, end in zip(row["nbest_answer"], row["nbest_start"], row["nbest_end"]):
            yield text, start, end, None, None
    places = [row.get(key) for key in ("start", "end", "start_byte", "end_byte")]
    if "entity" in row:
        yield from list(zip(row["entity"], *places))[: row["count"]]
    if "filled" in row:
        yield from [(b"[MASK]", *found) for found in list(zip(*places))[: row["count"]]]
    if "answers" in row:
        found = zip(row["answers"], row["starts"], row["ends"])
        yield from [(*one, None, None) for one in found][: row["count"]]


def _span_faults(
    text: bytes, decoded: str, answer: bytes, start: int, end: int, first: Any, last: Any
) -> Iterator[str]:
    told = f"{answer[:80]!r} at {start} to {end}, bytes {first} to {last}, of {text[:80]!r}"
    if not 0 <= start <= end <= len(decoded):
        yield f"outside its text: {told}"
    elif decoded[start:end] != answer.decode("utf-8", "replace"):
        yield f"not what its text has there: {told}"
    elif first is not None and text[first:last] != answer:
        yield f"not the bytes that its text has there: {told}"
