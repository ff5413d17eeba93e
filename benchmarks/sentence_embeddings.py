"""From raw strings to vectors with all-MiniLM-L6-v2: texts a second, and STS-B by the cosines.

    python benchmarks/sentence_embeddings.py GLUE_DIRECTORY --peer-python PYTHON

The texts are both sides of the dev set of STS-B, and runs of 1 to 450 words of SST-2, some of which
are longer than the model takes. kbert runs `encode` and its SavedModel,
sentence-transformers its `encode` with several sizes of batches, on the same folder. PYTHON has
torch and sentence-transformers.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side.contender import Contender, play, ratio
from side_by_side.results import parser, write

from kbert.checkpoints.pretrained import resolve
from kbert.data.classification.glue_tasks import read_glue
from kbert.data.classification.text_tuples import TupleExamples, read_tuple_examples
from kbert.metrics.embeddings import embedding_metrics

WORKS = ("embed",)
LONGEST = 450
BATCHES = (32, 128)


def texts_of(directory: Path, count: int, most: int) -> tuple[TupleExamples, dict[str, list[str]]]:
    """The dev set of STS-B, and what is embedded, by name."""
    pairs = read_tuple_examples(directory / "STS-B" / "dev.tsv").head(most)
    words = " ".join(read_glue("sst2", directory, "train").text_a[:30000]).split()
    draw = np.random.default_rng(1)
    lengths = np.linspace(1, LONGEST, count).astype(int)
    starts = [int(draw.integers(len(words) - n)) for n in lengths]
    runs = [" ".join(words[start : start + n]) for start, n in zip(starts, lengths)]
    return pairs, {"sts": [*pairs.text_a, *pairs.text_b], "runs": runs}


def contenders(folder: Path, kind: str, python: str, dtypes: list[str]) -> list[Contender]:
    """All contenders on one kind of texts, kbert's `encode` and sentence-transformers first."""
    made, model = [], str(resolve("all-MiniLM-L6-v2").resolve())
    for dtype in dtypes:
        for name, exported in (("encode", False), ("SavedModel", True)):
            given: dict[str, Any] = {"model": model, "dtype": dtype, "exported": exported}
            given |= {"data": str(folder / f"{kind}.json")}
            given["vectors"] = str(folder / f"{kind}-kbert-{name}-{dtype}.npy")
            module = "contenders.kbert_embeddings"
            made.append(Contender(f"kbert {name} {dtype}", module, WORKS, **given))
        for batch in BATCHES:
            given = {"model": model, "dtype": dtype, "batch": batch}
            given |= {"data": str(folder / f"{kind}.json")}
            given["vectors"] = str(folder / f"{kind}-peer-{batch}-{dtype}.npy")
            name = f"sentence-transformers {dtype} batch {batch}"
            made.append(Contender(name, "peers.torch_embeddings", WORKS, python, **given))
    return made


def rows_of(played: list[Contender], kind: str, folder: Path, pairs: Any) -> list[dict[str, Any]]:
    """A row for each contender: texts a second, how far from kbert, and STS-B's correlation."""
    count = len(json.loads((folder / f"{kind}.json").read_text()))
    files = {c.name: next(iter(sorted(folder.glob(_file(c, kind)))), None) for c in played}
    own = np.load(folder / f"{kind}-kbert-encode-float32.npy")
    peers = [c for c in played if c.name.startswith("sentence") and c.median("embed")]
    best = min(peers, key=lambda c: c.median("embed") or 1e30, default=None)
    rows = []
    for contender in (c for c in played if c.median("embed")):
        vectors = np.load(files[contender.name]).astype("float32")
        row = {"texts": kind, "contender": contender.name}
        row["texts_per_second"] = round(1e3 * count / (contender.median("embed") or 1e30), 1)
        row["largest_difference"] = float(np.abs(vectors - own).max())
        row["times_the_fastest_peer"] = ratio(best, contender, "embed") if best else None
        if kind == "sts":
            both = np.stack([vectors[: len(pairs)], vectors[len(pairs) :]], axis=1)
            row["spearman"] = round(embedding_metrics(both, pairs.labels)["spearman"], 5)
        rows.append(row)
    return rows


def _file(contender: Contender, kind: str) -> str:
    """The pattern of the file with a contender's vectors."""
    package, *rest = contender.name.split()
    if package == "kbert":
        return f"{kind}-kbert-{'-'.join(rest)}.npy"
    return f"{kind}-peer-{rest[2]}-{rest[0]}.npy"


def main() -> None:
    """Runs all contenders on both kinds of texts."""
    arguments_parser = parser("sentence_embeddings", __doc__)
    arguments_parser.add_argument("directory", type=Path, help="folder with STS-B/ and SST-2/")
    arguments_parser.add_argument("--dtypes", default="float32,bfloat16", help="with commas")
    arguments_parser.add_argument("--runs", type=int, default=1000, help="number of runs of words")
    arguments_parser.add_argument("--pairs", type=int, default=1500, help="pairs of STS-B")
    arguments: argparse.Namespace = arguments_parser.parse_args()
    pairs, texts = texts_of(arguments.directory, arguments.runs, arguments.pairs)
    rows, everyone = [], []
    with tempfile.TemporaryDirectory() as name:
        for kind, some in texts.items():
            (Path(name) / f"{kind}.json").write_text(json.dumps(some))
            dtypes = arguments.dtypes.split(",")
            played = contenders(Path(name), kind, arguments.peer_python, dtypes)
            play(played, [{"work": "embed", "repeats": 1}], arguments.rounds)
            rows += rows_of(played, kind, Path(name), pairs)
            everyone += played
    facts = {"rounds": arguments.rounds, "texts": {kind: len(some) for kind, some in texts.items()}}
    write(arguments.output, {"rows": rows}, everyone, facts)


if __name__ == "__main__":
    main()
