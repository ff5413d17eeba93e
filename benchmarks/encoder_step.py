"""Forward pass and train step of BERT: kbert, transformers, keras-hub and Model Garden.

    python benchmarks/encoder_step.py --peer-python peers/bin/python

Train step: forward, backward and AdamW without clipping; dropout 0.1; the loss is the mean of
squares of the output. Beside them the fastest large matrix product says what the machine can do;
FLOPs are 2mnk of every matrix product, attention included, and three times that for a train step.
"""

from typing import Any

from side_by_side.contender import Contender, play, ratio
from side_by_side.results import parser, write

WORKS = ("forward", "train")
SIZES = ["12x768x12x3072:8x128", "6x384x12x1536:16x128"]
NOTE = "XLA with bfloat16 is left out: it is many times slower than the rest on CPUs."


def flops(size: list[int]) -> float:
    """FLOPs of a forward pass; size is layers, hidden, heads, intermediate, batch, length."""
    layers, hidden, _, intermediate, batch, length = size
    weights = 4 * hidden * hidden + 2 * hidden * intermediate
    return layers * batch * length * 2.0 * (weights + 2 * length * hidden)


def contenders(size: list[int], precision: str, python: str, gemm: int) -> list[Contender]:
    """All contenders of a size in "float32" or "bfloat16"."""
    low = precision == "bfloat16"
    policy = "mixed_bfloat16" if low else "float32"

    def kbert(name: str, policy: str, works: tuple[str, ...] = WORKS) -> Contender:
        module = "contenders.kbert_encoder_step"
        return Contender(name, module, works, size=size, policy=policy)

    def torch(name: str, works: tuple[str, ...] = WORKS, whole: bool = False) -> Contender:
        options: dict[str, Any] = {"autocast": low and not whole, "whole_bfloat16": whole}
        return Contender(name, "peers.torch_encoder_step", works, python, size=size, **options)

    def peer(name: str, library: str, xla: bool) -> Contender:
        module = "peers.keras_encoder_step"
        return Contender(name, module, WORKS, size=size, policy=policy, library=library, xla=xla)

    limit: dict[str, Any] = {"size": gemm, "precision": precision}
    made = [kbert(f"kbert {policy}", policy), torch(f"transformers{' autocast' * low}")]
    if low:
        made.append(kbert("kbert bfloat16", "bfloat16", ("forward",)))
        made.append(torch("transformers bfloat16", ("forward",), True))
    for name, library in (("keras-hub", "keras-hub"), ("Model Garden", "tf-models-official")):
        for xla in (False,) if low else (False, True):
            made.append(peer(f"{name} {'XLA' if xla else 'graph'}", library, xla))
    made.append(Contender("TensorFlow GEMM", "contenders.tensorflow_gemm", ("gemm",), **limit))
    made.append(Contender("torch GEMM", "peers.torch_gemm", ("gemm",), python, **limit))
    return made


def rows_of(played: list[Contender], size: list[int], gemm: int) -> dict[str, list[dict[str, Any]]]:
    """One row for each contender, and one for each kind of work with kbert against the best."""
    limit = max(2e-6 * gemm**3 / (c.median("gemm") or 1e30) for c in played)
    rows, summary = [], []
    for work, passes in zip(WORKS, (1, 3)):
        found = [c for c in played if c.median(work) is not None]
        own = [c for c in found if c.name.startswith("kbert")]
        others = [c for c in found if c not in own]
        kbert = min(own, key=lambda c: c.median(work) or 0, default=None)
        best = min(others, key=lambda c: c.median(work) or 0, default=None)
        for contender in found:
            milliseconds = contender.median(work) or 0
            reached = 1e-6 * passes * flops(size) / milliseconds
            row: dict[str, Any] = {
                "work": work,
                "contender": contender.name,
                "milliseconds": round(milliseconds, 1),
                "gflops": round(reached),
                "share_of_gemm": round(reached / limit, 2),
                "times_kbert": ratio(contender, kbert, work) if kbert else None,
                "peak_mib": contender.answers[work][0]["peak_mib"],
            }
            rows.append(row)
            if contender is kbert and best is not None:
                row = {key: row[key] for key in list(row)[:5]} | {"gemm_gflops": round(limit)}
                row |= {"best_peer": best.name, "times_kbert": ratio(best, kbert, work)}
                summary.append(row)
    return {"summary": summary, "rows": rows}


def main() -> None:
    """Runs every size and precision; writes after each."""
    arguments_parser = parser("encoder_step", __doc__)
    arguments_parser.add_argument("--repeats", type=int, default=3, help="calls a turn")
    arguments_parser.add_argument("--sizes", nargs="+", default=SIZES, help="LxHxAxI:BxT")
    arguments_parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    arguments_parser.add_argument("--gemm", type=int, default=2048, help="side of the matrices")
    arguments = arguments_parser.parse_args()
    tables: dict[str, list[dict[str, Any]]] = {"summary": [], "rows": []}
    everyone: list[Contender] = []
    requests = [{"work": work, "repeats": arguments.repeats} for work in (*WORKS, "gemm")]
    settings = {key: getattr(arguments, key) for key in ("rounds", "repeats", "gemm")}
    for name in arguments.sizes:
        size = [int(number) for number in name.replace(":", "x").split("x")]
        for precision in arguments.precisions:
            played = contenders(size, precision, arguments.peer_python, arguments.gemm)
            play(played, requests, arguments.rounds)
            everyone += played
            for table, rows in rows_of(played, size, arguments.gemm).items():
                tables[table] += [{"size": name, "precision": precision, **r} for r in rows]
            write(arguments.output, tables, everyone, {**settings, "note": NOTE})


if __name__ == "__main__":
    main()
