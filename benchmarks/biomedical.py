"""Does pretraining on a domain's text help to read in it?

    python benchmarks/biomedical.py BIOMED_DIRECTORY RUNS_DIRECTORY --seeds 3

all-MiniLM-L6-v2 learns on from biomedical text. It, and the encoder as it was, get the adapters of
minilm-squad, which know what an answer is from general questions (as in Wiese et al. 2017); then
these learn to mark the answers to COVID-QA's questions, with the same seeds. Measured are whole
articles that neither text nor questions of the training have seen. Runs that are there stay, and a
stopped one goes on.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from biomedical_data import write
from biomedical_reader import READER, put_on
from side_by_side.results import machine, table

from kbert.storage.atomic_directory import write_atomically
from kbert.training.pretraining_config import PretrainingConfig
from kbert.training.pretraining_run import pretrain
from kbert.training.run import train
from kbert.training.run_config import RunConfig

RESULTS = Path(__file__).parent / "results" / "biomedical.json"
ENCODER = "all-MiniLM-L6-v2"
WINDOWS = {"max_sequence_length": 192, "stride": 32}
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
        **{"batch_size": 16, "learning_rate": arguments.rate, **WINDOWS},
    )
    return metrics(config, output)


def metrics(config: Any, output: Path) -> dict[str, Any]:
    """Those of a finished run, which is made where it is missing."""
    if not output.is_dir():
        (pretrain if isinstance(config, PretrainingConfig) else train)(config)
    found: dict[str, Any] = json.loads((output / "metrics.json").read_text())
    return found


def main() -> None:
    """Makes all runs and the table; written after each run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="folder with covid-qa.json and pubmedqa.json")
    parser.add_argument("runs", type=Path, help="folder for data and runs; what is there stays")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300, help="of pretraining")
    parser.add_argument("--epochs", type=int, default=1, help="of learning to mark answers")
    parser.add_argument("--rate", type=float, default=1e-3, help="of the same")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    data, domain = arguments.runs / "data", arguments.runs / "pretrained"
    reader = arguments.runs / "reader"
    if not data.is_dir():
        write(arguments.source, data)
    learned = pretrained(data, domain, arguments.steps)["final"]
    if not reader.is_dir():
        put_on(domain / "model", reader)
    readers = {"pretrained on": str(reader), "as it was": READER}
    rows: list[dict[str, Any]] = []
    for seed in range(1, arguments.seeds + 1):
        for name, encoder in readers.items():
            run = arguments.runs / f"{name.replace(' ', '-')}-{seed}"
            found = tagged(data, encoder, run, seed, arguments)["final"]["test"]
            rows.append({"encoder": name, "seed": seed} | {k: round(found[k], 4) for k in SHOWN})
            means = [
                {"encoder": of, "seeds": len(those)}
                | {key: round(statistics.fmean(row[key] for row in those), 4) for key in SHOWN}
                for of in dict.fromkeys(row["encoder"] for row in rows)
                if (those := [row for row in rows if row["encoder"] == of])
            ]
            result = {"machine": machine(), "pretraining": learned, "runs": rows, "means": means}
            write_atomically(arguments.output, json.dumps(result, indent=1) + "\n")
    print(table(rows), table(means), sep="\n\n")


if __name__ == "__main__":
    main()
