"""WordPiece with packing: kbert in a tf.data pipeline beside Hugging Face tokenizers.

    python benchmarks/tokenization.py ../shared/data

Both read the uncased vocabulary, truncate to 128 tokens, add special tokens and pad; batches of 256
lines in memory; all cores. The ids are compared in the same run. MB are 10^6 bytes of UTF-8 text.
CPU seconds say more than the clock where other programs run at the same time (`load_average`).
"""

import argparse
import gzip
import json
import os
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import tensorflow as tf
from side_by_side.results import write
from side_by_side.turns import seconds
from tokenizers import BertWordPieceTokenizer

from kbert.data.batches.packed_examples import steady
from kbert.text.sequences.packing import PackedText, pack
from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.wordpiece import WordPiece

RESULTS = Path(__file__).parent / "results" / "tokenization.json"
BATCH, LENGTH = 256, 128


def texts(data: Path) -> dict[str, list[str]]:
    """Kind of text -> lines."""

    def lines(name: str) -> list[str]:
        content = (data / name).read_bytes()
        content = gzip.decompress(content) if name.endswith(".gz") else content
        return [line for line in content.decode().split("\n") if line.strip()]

    wikitext = lines("text/wikitext-2.valid.txt") + lines("text/wikitext-2.test.txt")
    golden = "".join(lines("golden/hf_tokenizers_wordpiece_uncased.json.gz"))
    cases = [case["text"] for case in json.loads(golden)["cases"]]
    return {
        "WikiText-2, ASCII lines": [line for line in wikitext if line.isascii()],
        "WikiText-2, all lines": wikitext,
        "English novels": lines("text/english_novels_19c.txt.gz")[:100_000],
        "English captions": lines("mt/multi30k/train.en.gz"),
        "German captions": lines("mt/multi30k/train.de.gz"),
        "French captions": lines("mt/multi30k/train.fr.gz"),
        "hard cases, six languages": [case for case in cases if "[SEP]" not in case],
    }


def compare(lines: list[str], kbert: WordPiece, peer: Any, rounds: int, size: int) -> Any:
    """One row of the table, but for its name; the two take turns."""
    lines = lines[: len(lines) // BATCH * BATCH]
    in_bytes = len("".join(lines).encode())
    repeats = max(1, size // in_bytes)
    batches = [lines[begin : begin + BATCH] for begin in range(0, len(lines), BATCH)]

    def packed(text: tf.Tensor) -> PackedText:
        return pack([kbert.tokenize(text)], kbert.vocabulary, LENGTH)

    cached = tf.data.Dataset.from_tensor_slices(lines).batch(BATCH).cache()
    for batch, ours in zip(batches, cached.map(packed), strict=True):  # fills the cache, too
        theirs = [encoding.ids for encoding in peer.encode_batch(batch)]
        if ours.token_ids.numpy().tolist() != theirs:
            raise SystemExit("The ids differ: there is nothing to compare.")
    endless = cached.repeat(repeats).map(packed, num_parallel_calls=tf.data.AUTOTUNE)
    endless = steady(endless)  # as kbert reads its own data
    ours_runs, their_runs = [], []
    for _ in range(rounds):
        ours_runs.append(seconds(lambda: endless.reduce(0, lambda count, _: count + 1).numpy()))
        their_runs.append(seconds(lambda: [peer.encode_batch(batch) for batch in batches]))
    clock, cpu = (
        [
            in_bytes * times / 1e6 / median(run[kind] for run in runs)
            for times, runs in ((repeats, ours_runs), (1, their_runs))
        ]
        for kind in (0, 1)
    )
    return {
        "kbert MB/s": round(clock[0], 1),
        "tokenizers MB/s": round(clock[1], 1),
        "times as fast": round(clock[0] / clock[1], 1),
        "kbert MB/CPU s": round(cpu[0], 1),
        "tokenizers MB/CPU s": round(cpu[1], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with vocab/, text/, mt/ and golden/")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=20, help="least text a round")
    options = parser.parse_args()
    path = options.data / "vocab" / "bert-base-uncased-vocab.txt"
    kbert = WordPiece(Vocabulary.from_file(path))
    peer = BertWordPieceTokenizer(str(path))
    peer.enable_truncation(LENGTH)
    peer.enable_padding()
    rows = [
        {"text": name} | compare(lines, kbert, peer, options.rounds, options.megabytes * 10**6)
        for name, lines in texts(options.data).items()
    ]
    names = ("tensorflow", "tensorflow-text", "tokenizers")
    settings: dict[str, Any] = {name: version(name) for name in names}
    settings |= {"batch": BATCH, "max_sequence_length": LENGTH, "rounds": options.rounds}
    write(RESULTS, {"tokenization": rows}, [], settings | {"load_average": os.getloadavg()[1]})


if __name__ == "__main__":
    main()
