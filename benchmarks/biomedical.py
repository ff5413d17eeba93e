"""Does pretraining on a domain's text help to read in it?

    python benchmarks/biomedical.py BIOMED_DIRECTORY SQUAD_DIRECTORY RUNS_DIRECTORY --seeds 3

all-MiniLM-L6-v2 learns on from biomedical text. It, and the encoder as it was, get the adapters of
minilm-squad, which learn from general questions of SQuAD what an answer is (as in Wiese et al.
2017); then these learn to mark the answers to COVID-QA's questions, with the same seeds. Measured
are whole articles of which the training saw nothing. Runs that are there stay; a stopped goes on.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from biomedical_data import write
from biomedical_reader import READER, WINDOWS, made
from side_by_side.machine import machine
from side_by_side.results import table

from kbert.storage.files import write_atomically
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.run import train

RESULTS = Path(__file__).parent / "results" / "biomedical.json"
ENCODER = "all-MiniLM-L6-v2"
SHOWN = ("span_exact_f1", "span_overlap_f1")


def pretrained(data: Path, output: Path, steps: int) -> dict[str, Any]:
    """Pretrains on the corpus; returns the metrics of the run."""
    config = PretrainingConfig(
        text=[str(data / "corpus.txt")],
        validation=[str(data / "held-out.txt")],
        encoder=ENCODER,
        objective="mlm",
        steps=steps,
        save_every=100,
        output=str(output),
    )
    return metrics(config, output)


def tagged(
    data: Path, encoder: str, output: Path, seed: int, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Learns to mark answers; returns the metrics of the run."""
    config = RunConfig(
        task="span-tagging",
        train=str(data / "train.json"),
        validation=str(data / "validation.json"),
        test=str(data / "test.json"),
        other_windows=2,
        **{"encoder": encoder, "epochs": arguments.epochs, "seed": seed, "output": str(output)},
        **{"batch_size": arguments.batch, "learning_rate": arguments.rate, **WINDOWS},
    )
    return metrics(config, output)


def metrics(config: Any, output: Path) -> dict[str, Any]:
    """Those of a finished run, which is made where it is missing."""
    if not output.is_dir():
        train(config)
    found: dict[str, Any] = json.loads((output / "metrics.json").read_text())
    return found


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and standard deviation over the seeds of each encoder."""
    found = []
    for encoder in dict.fromkeys(row["encoder"] for row in rows):
        those = [row for row in rows if row["encoder"] == encoder]
        found.append({"encoder": encoder, "seeds": len(those)})
        for key in SHOWN:
            values = [row[key] for row in those]
            found[-1][key] = round(statistics.fmean(values), 4)
            if len(values) > 1:
                found[-1][f"{key}_deviation"] = round(statistics.stdev(values), 4)
    return found


def main() -> None:
    """Makes all runs and the table; written after each run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="folder with covid-qa.json and pubmedqa.json")
    parser.add_argument("squad", type=Path, help="folder with train-v1.1.json.gz and so on")
    parser.add_argument("runs", type=Path, help="folder for data and runs; what is there stays")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300, help="of pretraining")
    parser.add_argument("--epochs", type=int, default=1, help="of learning to mark answers")
    parser.add_argument("--batch", type=int, default=8, help="windows a step of the same")
    parser.add_argument("--rate", type=float, default=1e-3, help="of the same")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    data, domain = arguments.runs / "data", arguments.runs / "pretrained"
    if not data.is_dir():
        write(arguments.source, arguments.squad, data)
    learned = pretrained(data, domain, arguments.steps)["final"]
    readers = {
        name: made(encoder, data / "general.json", arguments.runs / f"reader-{name}")
        for name, encoder in (("pretrained-on", str(domain / "model")), ("as-it-was", READER))
    }
    settings = {name: getattr(arguments, name) for name in ("steps", "epochs", "batch", "rate")}
    rows: list[dict[str, Any]] = []
    for seed in range(1, arguments.seeds + 1):
        for name, encoder in readers.items():
            run = arguments.runs / f"{name}-{seed}"
            found = tagged(data, encoder, run, seed, arguments)["final"]["test"]
            rows.append({"encoder": name, "seed": seed} | {k: round(found[k], 4) for k in SHOWN})
            result = {"machine": machine(), "settings": settings | WINDOWS, "pretraining": learned}
            result |= {"runs": rows, "means": means(rows)}
            write_atomically(arguments.output, json.dumps(result, indent=1) + "\n")
    print(table(rows), table(means(rows)), sep="\n\n")


if __name__ == "__main__":
    main()
