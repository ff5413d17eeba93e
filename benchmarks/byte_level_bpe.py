"""Byte-level BPE: kbert in a tf.data pipeline beside Hugging Face tokenizers.

    python benchmarks/byte_level_bpe.py ../shared/data

Both read vocabularies that are trained here, of 8,000 and of 50,000 tokens; batches of 512 lines in
memory; all cores. The ids are compared in the same run. MB are 10^6 bytes of UTF-8 text. Seconds of
the CPU say more than the clock where other programs run at the same time (`load_average`).
"""

import argparse
import gzip
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import tensorflow as tf
from side_by_side.results import write
from side_by_side.turns import seconds
from tokenizers import Tokenizer, models, pre_tokenizers

from kbert import ByteLevelBPE
from kbert.data.batches.packed_examples import steady
from kbert.text.byte_level_bpe.training import train_byte_level_bpe

RESULTS = Path(__file__).parent / "results" / "byte_level_bpe.json"
BATCH = 512
SIZES = (8_000, 50_000)


def lines_of(data: Path, name: str) -> list[str]:
    """Lines of a file that are not empty."""
    content = (data / name).read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    return [line for line in content.decode().split("\n") if line.strip()]


def texts(data: Path) -> dict[str, list[str]]:
    """Kind of text -> lines that no vocabulary was trained on."""
    wikitext = lines_of(data, "text/wikitext-2.test.txt")
    novels = lines_of(data, "text/english_novels_19c.txt.gz")[:100_000]
    return {
        "WikiText-2, ASCII lines": [line for line in wikitext if line.isascii()],
        "WikiText-2, all lines": wikitext,
        "English novels, ASCII lines": [line for line in novels if line.isascii()],
        "English captions": lines_of(data, "mt/multi30k/train.en.gz"),
        "German captions": lines_of(data, "mt/multi30k/train.de.gz"),
    }


def compare(lines: list[str], kbert: ByteLevelBPE, peer: Any, rounds: int, size: int) -> Any:
    """One row of the table, but for its names; the kinds take turns."""
    lines = lines[: len(lines) // BATCH * BATCH]
    in_bytes = len("".join(lines).encode())
    repeats = max(1, size // in_bytes)
    batches = [lines[begin : begin + BATCH] for begin in range(0, len(lines), BATCH)]
    cached = tf.data.Dataset.from_tensor_slices(lines).batch(BATCH).cache()
    for batch, ours in zip(batches, cached.map(kbert.tokenize), strict=True):  # fills the cache
        if ours.to_list() != [encoding.ids for encoding in peer.encode_batch(batch)]:
            raise SystemExit("The ids differ: there is nothing to compare.")

    def endless(function: Callable[[tf.Tensor], Any]) -> Callable[[], Any]:
        mapped = cached.repeat(repeats).map(function, num_parallel_calls=tf.data.AUTOTUNE)
        mapped = steady(mapped)  # as kbert reads its own data
        return lambda: mapped.reduce(0, lambda count, *_: count + 1).numpy()

    works = {
        "kbert": (endless(kbert.tokenize), repeats),
        "kbert, offsets": (endless(lambda text: tuple(kbert.tokenize_with_offsets(text))), repeats),
        "tokenizers": (lambda: [peer.encode_batch(batch) for batch in batches], 1),
    }
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, (work, _) in works.items():
            runs[name].append(seconds(work))
    row, clocks = {}, {}
    for name, (_, times) in works.items():
        clocks[name], cpu = (
            in_bytes * times / 1e6 / median(run[kind] for run in runs[name]) for kind in (0, 1)
        )
        row[f"{name} MB/s"], row[f"{name} MB/CPU s"] = round(clocks[name], 1), round(cpu, 1)
    return row | {"times as fast": round(clocks["kbert"] / clocks["tokenizers"], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with text/ and mt/")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=40, help="least text a round")
    options = parser.parse_args()
    training = lines_of(options.data, "text/english_novels_19c.txt.gz")[100_000:]
    training += lines_of(options.data, "text/wikitext-2.valid.txt")
    rows = []
    for size in SIZES:
        kbert = ByteLevelBPE(*train_byte_level_bpe(training, size))
        ids = {token: number for number, token in enumerate(kbert.vocabulary.tokens)}
        peer = Tokenizer(models.BPE(ids, list(kbert.merges)))
        peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        for name, lines in texts(options.data).items():
            found = compare(lines, kbert, peer, options.rounds, options.megabytes * 10**6)
            rows.append({"tokens": size, "text": name} | found)
    settings: dict[str, Any] = {
        name: version(name) for name in ("tensorflow", "tensorflow-text", "tokenizers")
    }
    settings |= {"batch": BATCH, "rounds": options.rounds, "load_average": os.getloadavg()[1]}
    write(RESULTS, {"byte_level_bpe": rows}, [], settings)


if __name__ == "__main__":
    main()
