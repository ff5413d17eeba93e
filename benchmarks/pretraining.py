"""What does a small BERT learn in an hour on two cores, and is it of use?

    python benchmarks/pretraining.py TEXT_DIRECTORY GLUE_DIRECTORY RUNS_DIRECTORY

A BERT of 4 layers x 256 learns from novels and articles with its own vocabulary: the curve on text
held out. Then it learns SST-2, beside the same from random weights. Last, three objectives with a
third of the steps each, and SST-2 and QNLI from them, as in Devlin et al., table 5. Runs that are
there stay, and one that was stopped goes on. One rate of fine-tuning for all, 1 epoch. Batches are
of 16 x 64, and nothing is dropped: for the first steps all that is learned is how frequent a word
is, until attention gets going. With 16 x 64 that was after some 4,000 steps; with 8 x 128, the same
tokens a step, it had not come after 13,000.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from pretraining_text import write
from side_by_side.results import machine, table
from side_by_side.tuned_encoders import RANDOM, tuned_rows

from kbert.storage.atomic_directory import write_atomically
from kbert.training.pretraining_config import PretrainingConfig
from kbert.training.pretraining_run import pretrain

RESULTS = Path(__file__).parent / "results" / "pretraining.json"
SIZE, TOKENS = "mini", 8000
BATCH = {"batch_size": 16, "max_sequence_length": 64, "dropout": 0.0, "attention_dropout": 0.0}
ARMS = ("mlm_nsp", "mlm", "lm")


def pretrained(data: Path, output: Path, rate: float, **options: Any) -> dict[str, Any]:
    """Pretrains on the corpus, or finds that it is done; returns the metrics of the run."""
    options |= {"text": [str(data / "corpus.txt")], "validation": [str(data / "held-out.txt")]}
    options |= {"size": SIZE, "learning_rate": rate, "precision": "mixed_bfloat16", **BATCH}
    if not output.is_dir():
        pretrain(PretrainingConfig(output=str(output), **options))
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
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    data, settings = arguments.runs / "data", ("steps", "rate", "tuning_rate")
    result: dict[str, Any] = {"machine": machine()}
    result["settings"] = {key: getattr(arguments, key) for key in settings} | BATCH

    def add(name: str, rows: list[dict[str, Any]]) -> None:
        result[name] = [*result.get(name, []), *rows]
        write_atomically(arguments.output, json.dumps(result, indent=1) + "\n")
        print(table(rows), flush=True)

    if not data.is_dir():
        write(arguments.text, arguments.glue, data)
    options = {"steps": arguments.steps, "save_every": arguments.steps // 20}
    hour = arguments.runs / "hour"
    add("curve", curve(pretrained(data, hour, arguments.rate, vocabulary_size=TOKENS, **options)))
    for encoder in ("hour", RANDOM):
        add("tuned", tuned_rows(encoder, arguments, ("sst2",)))
    options = {"steps": arguments.steps // 3, "save_every": arguments.steps // 15}
    options["vocabulary"] = str(hour / "model/vocabulary.txt")
    for arm in ARMS:
        learned = pretrained(data, arguments.runs / arm, arguments.rate, objective=arm, **options)
        add("objectives", [{"objective": arm} | curve(learned)[-1]])
        add("objectives_tuned", tuned_rows(arm, arguments))


if __name__ == "__main__":
    main()
