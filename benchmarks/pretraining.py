"""What does a small BERT learn in an hour on two cores, and is it of use?

    python benchmarks/pretraining.py TEXT_DIRECTORY GLUE_DIRECTORY RUNS_DIRECTORY

A BERT of 4 layers x 256 learns from novels and articles with its own vocabulary: the curve on text
held out. Then it learns SST-2, beside the same from random weights. Last, three objectives with a
third of the steps each, and SST-2 and QNLI from them, as in Devlin et al., table 5. Runs that are
there stay, one that was stopped goes on, and results of parts that are not asked for stay. One rate
of fine-tuning for all, 1 epoch. Batches are of 16 x 64, and nothing is dropped: for the first steps
all that is learned is how frequent a word is, until attention gets going. With 16 x 64 that was
after some 4,000 steps; with 8 x 128, the same tokens a step, it had not come after 13,000.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from pretraining_text import write
from side_by_side.machine import machine
from side_by_side.results import table
from side_by_side.tuned_encoders import RANDOM, tuned_rows

from kbert.storage.files import write_atomically
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.run import train

RESULTS = Path(__file__).parent / "results" / "pretraining.json"
SIZE, TOKENS = "mini", 8000
BATCH = {"batch_size": 16, "max_sequence_length": 64, "dropout": 0.0, "attention_dropout": 0.0}
ARMS = ("mlm_nsp", "mlm", "lm")
PARTS = {"hour": ("curve", "tuned"), "objectives": ("objectives", "objectives_tuned")}


def pretrained(data: Path, output: Path, rate: float, **options: Any) -> dict[str, Any]:
    """Pretrains on the corpus, or finds that it is done; returns the metrics of the run."""
    options |= {"text": [str(data / "corpus.txt")], "validation": [str(data / "held-out.txt")]}
    options |= {"size": SIZE, "vocabulary_size": TOKENS, "learning_rate": rate, **BATCH}
    if not output.is_dir():
        train(PretrainingConfig(output=str(output), precision="mixed_bfloat16", **options))
    found: dict[str, Any] = json.loads((output / "metrics.json").read_text())
    return found


def curve(found: dict[str, Any]) -> list[dict[str, Any]]:
    """What was measured on the text held out, with the minutes of training up to then."""
    rows, seconds = [], 0.0
    for interval in found["intervals"]:
        seconds += interval["seconds"]
        row = {"step": interval["step"], "minutes": round(seconds / 60, 1)}
        measured = interval["validation"].items()
        rows.append(row | {key: round(value, 4) for key, value in measured if key != "loss"})
    return rows


def kept(arguments: argparse.Namespace) -> dict[str, Any]:
    """What was measured before of other parts, with the same settings on such a machine."""
    settings = {key: getattr(arguments, key) for key in ("steps", "rate", "tuning_rate")} | BATCH
    found = json.loads(arguments.output.read_text()) if arguments.output.is_file() else {}
    new: dict[str, Any] = {"machine": machine(), "settings": settings}
    if found.get("settings") != settings or any(
        found["machine"][key] != new["machine"][key] for key in ("cores", "processor")
    ):
        return new
    asked = {name for part in arguments.parts for name in PARTS[part]}
    return {key: value for key, value in found.items() if key not in asked}


def main() -> None:
    """Makes all runs and the tables; written after each part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("text", type=Path, help="folder with english_novels_19c.txt.gz and so on")
    parser.add_argument("glue", type=Path, help="folder with SST-2 and QNLI-subset")
    parser.add_argument("runs", type=Path, help="folder for data and runs; what is there stays")
    parser.add_argument("--steps", type=int, default=24_000, help="of the long run")
    parser.add_argument("--rate", type=float, default=1e-3, help="peak of pretraining")
    parser.add_argument("--tuning-rate", type=float, default=2e-4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--parts", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    data, result = arguments.runs / "data", kept(arguments)

    def add(name: str, rows: list[dict[str, Any]]) -> None:
        result[name] = [*result.get(name, []), *rows]
        write_atomically(arguments.output, json.dumps(result, indent=1) + "\n")
        print(table(rows), flush=True)

    if not data.is_dir():
        write(arguments.text, arguments.glue, data)
    if "hour" in arguments.parts:
        options = {"steps": arguments.steps, "save_every": arguments.steps // 20}
        add("curve", curve(pretrained(data, arguments.runs / "hour", arguments.rate, **options)))
        for encoder in ("hour", RANDOM):
            add("tuned", tuned_rows(encoder, arguments, ("sst2",)))
    if "objectives" in arguments.parts:
        options = {"steps": arguments.steps // 3, "save_every": arguments.steps // 15}
        for arm in ARMS:
            folder = arguments.runs / arm
            learned = pretrained(data, folder, arguments.rate, objective=arm, **options)
            add("objectives", [{"objective": arm} | curve(learned)[-1]])
            add("objectives_tuned", tuned_rows(arm, arguments))


if __name__ == "__main__":
    main()
