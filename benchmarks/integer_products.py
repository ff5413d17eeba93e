"""Dense layers of MiniLM with integers and in float32: microseconds of processor time of a layer.

    python benchmarks/integer_products.py [--seconds 1.0] [--threads 1 2]

Contenders take turns on the same rows; the least time counts, with the call of a graph. "float32"
is a layer with a variable as its kernel, "frozen" with a constant; "int8" is what `kbert export
--precision int8` makes of it; the others are the other products of int8 that TensorFlow has, the
product alone. oneDNN is also held to the instructions of processors before VNNI.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side.results import parser, write

# Inputs, outputs, activation.
LAYERS = {"qkv": (384, 1152, None), "output": (384, 384, None)}
LAYERS |= {"intermediate": (384, 1536, "gelu"), "feed-forward output": (1536, 384, None)}
ROWS = (8, 32, 128, 512, 1024)  # tokens of a batch
PROCESSORS = {"this": None, "AVX-512": "AVX512_CORE", "AVX2": "AVX2"}
SLOW = ("BatchMatMulV3", "UniformQuantizedDotHybrid")  # measured up to 128 rows


def contenders(inputs: int, outputs: int, activation: str | None) -> dict[str, Callable[..., Any]]:
    """Functions of rows (R, inputs), none less than zero."""
    import tensorflow as tf

    from kbert.layers.linear import Linear
    from kbert.pipelines.inference import CapturedWeights
    from kbert.serving.precision.integer_products import integer_products
    from kbert.serving.precision.rounding import Rounding
    from kbert.serving.precision.small_weights import Int8Weight

    layer = Linear(outputs, activation)
    layer.build((None, inputs))
    factors = np.ones((inputs, 1), "float32") if inputs < outputs else None
    stored = Int8Weight(layer.kernel, Rounding(factors, -0.17 if inputs > outputs else None))
    arrays = {id(v): v.numpy() for v in layer.weights}
    codes, scales = tf.constant(stored.codes), tf.constant(stored.scales)

    def frozen(rows: Any) -> Any:
        with CapturedWeights(lambda v: None, lambda v: arrays[id(v)]):
            return layer(rows)

    def integers(rows: Any) -> Any:
        with integer_products([layer], lambda kernel: stored):
            return layer(rows)

    def hybrid(rows: Any) -> Any:
        bounds = {"rhs_quantization_min_val": -127, "rhs_quantization_max_val": 127}
        kept = {"rhs": tf.bitcast(codes, tf.qint8), "rhs_scales": scales[0], **bounds}
        kept |= {"rhs_zero_points": tf.zeros((outputs,), tf.int32), "rhs_quantization_axis": 1}
        return tf.raw_ops.UniformQuantizedDotHybrid(lhs=rows, **kept, Tout=tf.float32)

    def eigen(rows: Any) -> Any:
        return tf.raw_ops.BatchMatMulV3(x=tf.cast(rows, tf.int8), y=codes, Tout=tf.int32)

    made = {"float32": layer, "frozen": frozen, "int8": integers, SLOW[0]: eigen, SLOW[1]: hybrid}
    spec = [tf.TensorSpec((None, inputs))]
    return {name: tf.function(made[name], spec, autograph=False) for name in made}


def measure(threads: int, seconds: float, processor: str) -> list[dict[str, Any]]:
    """A row for each layer and number of rows."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    found = []
    for name, sizes in LAYERS.items():
        run = contenders(*sizes)
        for count in ROWS:
            x, best = tf.random.uniform((count, sizes[0])), dict.fromkeys(run, float("inf"))
            chosen = [key for key in run if key not in SLOW or count <= 128]
            end, calls = time.time() + seconds, max(2, 256 // count)
            while time.time() < end or min(best[key] for key in chosen) == float("inf"):
                for key in chosen:
                    run[key](x)
                    start = time.process_time()
                    for _ in range(calls):
                        run[key](x)
                    best[key] = min(best[key], (time.process_time() - start) / calls)
            row = {"processor": processor, "threads": threads, "layer": name, "rows": count}
            row |= {key: round(1e6 * best[key]) for key in chosen}
            found.append(row | {"speed_up": round(best["frozen"] / best["int8"], 2)})
    return found


def main() -> None:
    """Runs a process for each processor and number of threads."""
    arguments_parser = parser("integer_products", __doc__)
    arguments_parser.add_argument("--seconds", type=float, default=1.0, help="of each row")
    arguments_parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments_parser.add_argument("--run", nargs=2, metavar="", help=argparse.SUPPRESS)
    arguments = arguments_parser.parse_args()
    if arguments.run:
        print(json.dumps(measure(int(arguments.run[0]), arguments.seconds, arguments.run[1])))
        return
    rows = []
    for processor, isa in PROCESSORS.items():
        environment = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ}
        environment |= {"ONEDNN_MAX_CPU_ISA": isa} if isa else {}
        for threads in arguments.threads if isa is None else arguments.threads[:1]:
            command = [sys.executable, str(Path(__file__)), "--seconds", str(arguments.seconds)]
            command += ["--run", str(threads), processor]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
            rows += json.loads(done.stdout.splitlines()[-1])
    write(arguments.output, {"rows": rows}, [], {"seconds": arguments.seconds})


if __name__ == "__main__":
    main()
