"""How fast the recipe of finetuning.py trains, beside the same recipe in PyTorch + transformers.

    python benchmarks/finetuning_speed.py GLUE_DIRECTORY sst2 rte:256:100 cola stsb

A task is name[:length[:steps]]. Both train the same number of steps of 32 examples from the same
weights, in turns; the first steps do not count. The speed is in real tokens a second, padding left
out.
kbert's batches are of like length, as `fit` makes them; PyTorch's are random, as is usual there,
and with --like-length a third contender is PyTorch with batches of like length. kbert tokenizes
before `fit`: that time is added, shared out over the steps of one epoch.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from side_by_side.contender import Contender, play
from side_by_side.results import parser, write
from side_by_side.training_slices import rows_of

from kbert.checkpoints.pretrained import resolve
from kbert.data.batches.plans import BATCHES_PER_POOL
from kbert.data.classification.glue_tasks import GLUE_TASKS, read_glue

WORKS = ("warm", "train")
TASKS = ["sst2", "rte:256", "cola", "stsb"]


def contenders(
    data: Path, length: int, steps: int, arguments: argparse.Namespace
) -> list[Contender]:
    """kbert and its peers for one task."""
    settings: dict[str, Any] = {
        "data": str(data),
        "length": length,
        "encoder": str(resolve("all-MiniLM-L6-v2")),
        "total_steps": arguments.warm_up + steps,
    }
    made = [Contender("kbert", "contenders.kbert_finetuning", WORKS, **settings)]
    for pool in (1, BATCHES_PER_POOL) if arguments.like_length else (1,):
        name = "transformers" + ", like lengths" * (pool > 1)
        settings["pool"] = pool
        module = "peers.torch_finetuning"
        made.append(Contender(name, module, WORKS, arguments.peer_python, **settings))
    return made


def main() -> None:
    """Runs the tasks; writes after each."""
    arguments_parser = parser("finetuning_speed", __doc__)
    arguments_parser.add_argument("directory", type=Path, help="folder with SST-2/, RTE/, ...")
    arguments_parser.add_argument("tasks", nargs="*", default=TASKS, help="name[:length[:steps]]")
    arguments_parser.add_argument("--steps", type=int, default=200, help="steps that count")
    arguments_parser.add_argument("--warm-up", type=int, default=20, help="steps before them")
    arguments_parser.add_argument("--like-length", action="store_true")
    arguments_parser.set_defaults(rounds=10)
    arguments = arguments_parser.parse_args()
    rows: list[dict[str, Any]] = []
    everyone: list[Contender] = []
    settings = {key: getattr(arguments, key) for key in ("rounds", "steps", "warm_up")}
    for name in arguments.tasks or TASKS:
        task, length, count = [*name.split(":"), "", ""][:3]
        steps = int(count or arguments.steps)
        if steps % arguments.rounds:
            arguments_parser.error(f"steps must be a multiple of --rounds. Received: {name}")
        examples = read_glue(task, arguments.directory)
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "examples.json"
            columns = {key: getattr(examples, key) for key in ("text_a", "text_b")}
            targets = {"targets": examples.labels, "labels": list(GLUE_TASKS[task].labels)}
            data.write_text(json.dumps({**columns, **targets}))
            played = contenders(data, int(length or 128), steps, arguments)
            train = {"work": "train", "steps": steps // arguments.rounds}
            play(played, [train], arguments.rounds, {"work": "warm", "steps": arguments.warm_up})
        rows += rows_of(played, task, len(examples))
        everyone += played
        write(arguments.output, {"rows": rows}, everyone, settings)


if __name__ == "__main__":
    main()
