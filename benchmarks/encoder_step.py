"""Forward pass and train step of BERT: kbert, transformers, keras-hub and Model Garden.

    python benchmarks/encoder_step.py --peer-python peers/bin/python

Train step: forward, backward and AdamW without clipping; dropout 0.1; the loss is the mean of
squares of the output. Beside them the fastest large matrix product says what the machine can do;
FLOPs are 2mnk of every matrix product, attention included, and three times that for a train step.
"""

import itertools

from contenders.encoder_line_up import LOTS, WORKS, contenders
from side_by_side.contender import Contender, play, ratio
from side_by_side.results import Row, parser, write

SIZES = ["12x768x12x3072:8x128", "6x384x12x1536:16x128"]
NOTE = "XLA with bfloat16 is left out: it is many times slower than the rest on CPUs."


def flops(size: list[int]) -> float:
    """FLOPs of a forward pass; size is layers, hidden, heads, intermediate, batch, length."""
    layers, hidden, _, intermediate, batch, length = size
    weights = 4 * hidden * hidden + 2 * hidden * intermediate
    return layers * batch * length * 2.0 * (weights + 2 * length * hidden)


def rows_of(played: list[Contender], size: list[int], gemm: int) -> list[Row]:
    """One row for each contender and kind of work."""
    limit = max(2e-6 * gemm**3 / (c.median("gemm") or 1e30) for c in played)
    rows: list[Row] = []
    for work, passes in zip(WORKS, (1, 3)):
        found = [c for c in played if c.median(work) is not None]
        own = [c for c in found if c.name.startswith("kbert")]
        kbert = min(own, key=lambda c: c.median(work) or 0, default=None)
        for contender in found:
            milliseconds = contender.median(work) or 0
            reached = 1e-6 * passes * flops(size) / milliseconds
            row: Row = {"work": work, "contender": contender.name}
            row |= {"milliseconds": round(milliseconds, 1), "gflops": round(reached)}
            row |= {"gemm_gflops": round(limit), "share_of_gemm": round(reached / limit, 2)}
            row["times_kbert"] = ratio(contender, kbert, work) if kbert else None
            row["peak_mib"] = contender.answers[work][0]["peak_mib"]
            rows.append(row)
    return rows


def summary_of(rows: list[Row]) -> list[Row]:
    """For each kind of work the fastest of kbert against the best peer."""
    summary = []
    for work in WORKS:
        own = [r for r in rows if r["work"] == work and r["contender"].startswith("kbert")]
        peers = [r for r in rows if r["work"] == work and r not in own and r["times_kbert"]]
        if own and peers:
            row = dict(min(own, key=lambda r: float(r["milliseconds"])))
            best = min(peers, key=lambda r: float(r["times_kbert"]))
            row |= {"best_peer": best["contender"], "times_kbert": best["times_kbert"]}
            summary.append(row)
    return summary


def main() -> None:
    """Runs every size and precision; writes after each."""
    arguments_parser = parser("encoder_step", __doc__)
    arguments_parser.add_argument("--repeats", type=int, default=3, help="calls a turn")
    arguments_parser.add_argument("--sizes", nargs="+", default=SIZES, help="LxHxAxI:BxT")
    arguments_parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    arguments_parser.add_argument("--gemm", type=int, default=2048, help="side of the matrices")
    given = arguments_parser.parse_args()
    tables: dict[str, list[Row]] = {"summary": [], "rows": []}
    everyone: list[Contender] = []
    requests = [{"work": work, "repeats": given.repeats} for work in (*WORKS, "gemm")]
    settings = {key: getattr(given, key) for key in ("rounds", "repeats", "gemm")}
    for name, precision in itertools.product(given.sizes, given.precisions):
        size = [int(number) for number in name.replace(":", "x").split("x")]
        rows: list[Row] = []
        for lot in LOTS:
            played = contenders(size, precision, lot, given.peer_python, given.gemm)
            play(played, requests, given.rounds)
            everyone += played
            # kbert runs in each lot, so that all ratios are of one run; its first rows are shown.
            rows += [r for r in rows_of(played, size, given.gemm) if not known(r, rows)]
        for table, found in (("summary", summary_of(rows)), ("rows", rows)):
            tables[table] += [{"size": name, "precision": precision, **row} for row in found]
        write(given.output, tables, everyone, {**settings, "note": NOTE})


def known(row: Row, rows: list[Row]) -> bool:
    """Whether there is a row of the same contender and work."""
    return any(row["work"] == r["work"] and row["contender"] == r["contender"] for r in rows)


if __name__ == "__main__":
    main()
