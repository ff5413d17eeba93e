"""What `import kbert` and the first use of a class cost beside `import tensorflow`.

    python benchmarks/import_time.py

Each is a fresh interpreter, timed from its start to its end; they take turns, and a first round,
which fills the disk cache, does not count.
"""

import statistics
import subprocess
import sys
import time
from typing import Any

from side_by_side.results import parser, write

PROGRAMS = {
    "nothing": "pass",
    "tensorflow": "import tensorflow",
    "tensorflow, keras and tensorflow_text": "import tensorflow, keras, tensorflow_text",
    "kbert": "import kbert",
    "kbert.Classifier": "import kbert; kbert.Classifier",
}


def seconds(program: str) -> float:
    """How long a fresh interpreter takes to run a program."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Runs all programs, round after round."""
    arguments = parser("import_time", __doc__).parse_args()
    found: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for number in range(arguments.rounds + 1):
        for name, program in PROGRAMS.items():
            elapsed = seconds(program)
            if number:
                found[name].append(elapsed)
    rows: list[dict[str, Any]] = []
    for name, times in found.items():
        ratios = [mine / theirs for mine, theirs in zip(times, found["tensorflow"])]
        rows.append(
            {
                "import": name,
                "seconds": round(statistics.median(times), 2),
                "times_tensorflow": round(statistics.median(ratios), 2),
            }
        )
    write(arguments.output, {"rows": rows}, [], {"rounds": arguments.rounds})


if __name__ == "__main__":
    main()
