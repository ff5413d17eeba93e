"""Where the time of one text goes in an export: tokens, products of matrices, the rest, the answer.

    python benchmarks/exported_profile.py

The shipped models of sentiment, questions and entities, with weights as variables and as constants
(`--frozen`), in float32 and int8, on one thread, so that parts add up. Times of kernels are those
of TensorFlow's trace, of the request whose kernels took least; `all_ms` is the least time of those
without a trace, and `dispatch_ms` what the kernels do not take of it. Text becomes tokens until the
first product of matrices begins; behind the last one is the answer.
"""

import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
from side_by_side.results import parser, write

import kbert
from kbert.serving.export.export import export

v1 = tf.compat.v1
MODELS = {"class": "minilm-sentiment", "answer": "minilm-squad", "entities": "minilm-ner"}
INT8, FROZEN = {"precision": "int8"}, {"frozen": True}
WAYS: dict[str, Any] = {"": {}, "frozen": FROZEN, "int8": INT8, "int8, frozen": INT8 | FROZEN}
CONTEXT = "The Apollo program, also known as Project Apollo, landed the first humans on the Moon. "
REQUESTS: dict[str, dict[str, list[str]]] = {
    "class": {"text": ["it 's a charming and often affecting journey through one family ."]},
    "answer": {"question": ["Who landed on the Moon?"], "context": [CONTEXT * 9]},
    "entities": {"text": ["Anna Schmidt lives in Vienna and has worked in York since May ."]},
}
OUTER = ("BatchFunction", "PartitionedCall", "StatefulPartitionedCall")  # what they run is traced
ATTENTION = ("BatchMatMul", "Softmax", "Transpose")
PARTS = ("tokens", "products", "attention", "others", "answer")


class Kernel(NamedTuple):
    """A node of the graph that was run: its operation, and when it began and ended, in ns."""

    operation: str
    begin: int
    end: int

    @property
    def is_attention(self) -> bool:
        """Whether it is of the attention; other products of matrices are Dense layers."""
        return any(name in self.operation for name in ATTENTION)

    @property
    def is_product(self) -> bool:
        """Whether it is a Dense layer, with what it is fused with."""
        return "MatMul" in self.operation and not self.is_attention

    def part(self, first: int, last: int) -> str:
        """Its part of a request whose products begin at `first` and end at `last`."""
        if self.end <= first or self.begin >= last:
            return "tokens" if self.end <= first else "answer"
        return "products" if self.is_product else "attention" if self.is_attention else "others"


def traced(session: Any, outputs: list[str], feed: dict[str, Any]) -> list[Kernel]:
    """The kernels of a request."""
    options, found = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE), v1.RunMetadata()
    session.run(outputs, feed, options=options, run_metadata=found)
    kernels = []
    for node in (node for device in found.step_stats.dev_stats for node in device.node_stats):
        operation = node.timeline_label.partition(" = ")[2].partition("(")[0] or node.node_name
        times = (node.op_start_rel_nanos, node.op_end_rel_nanos)
        kernels.append(Kernel(operation, *(node.all_start_nanos + one for one in times)))
    return [kernel for kernel in kernels if kernel.operation not in OUTER]


def milliseconds(kernels: list[Kernel]) -> dict[str, float]:
    """How long the kernels of each part took."""
    products = [one for one in kernels if one.is_product]
    first, last = min(one.begin for one in products), max(one.end for one in products)
    found = dict.fromkeys(PARTS, 0.0)
    for one in kernels:
        found[one.part(first, last)] += (one.end - one.begin) / 1e6
    return found


def measure(folder: Path, request: dict[str, list[str]], requests: int) -> dict[str, float]:
    """A row of the table: nodes, milliseconds of the whole and of its parts."""
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with v1.Session(graph=v1.Graph(), config=config) as session:
        signatures = v1.saved_model.load(session, ["serve"], str(folder)).signature_def
        signature = signatures["serving_default"]
        feed = {signature.inputs[name].name: texts for name, texts in request.items()}
        outputs = [one.name for one in signature.outputs.values()]
        times, traces = [], []
        for _ in range(requests):
            begin = time.perf_counter()
            session.run(outputs, feed)
            times.append(1000 * (time.perf_counter() - begin))
            traces.append(traced(session, outputs, feed))
    least = min(map(milliseconds, traces), key=lambda parts: sum(parts.values()))
    whole = {**least, "dispatch": min(times) - sum(least.values()), "all": min(times)}
    return {"nodes": len(traces[-1])} | {f"{k}_ms": round(v, 2) for k, v in whole.items()}


def main() -> None:
    """Profiles each task in all ways."""
    arguments_parser = parser("exported_profile", __doc__)
    arguments_parser.add_argument("--requests", type=int, default=60, help="of each row")
    arguments = arguments_parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for work, name in MODELS.items():
            model = kbert.load(name)
            for weights, options in WAYS.items():
                folder = export(model, Path(temporary) / f"of {weights}", work, **options)
                row = measure(folder, REQUESTS[work], arguments.requests)
                rows.append({"work": work, "weights": weights or "variables", **row})
    write(arguments.output, {"rows": rows}, [], {"requests": arguments.requests, "threads": 1})


if __name__ == "__main__":
    main()
