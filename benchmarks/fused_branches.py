"""What the branches of fused translators are worth: BLEU on Multi30k by the weight of BERT's.

    python benchmarks/fused_branches.py MULTI30K_DIRECTORY runs/mt/fused-1 runs/mt/random-1

A weight of the attention to BERT is forced on all layers, and what is left of 1 on that to
the own states. The best one of the validation pairs is then measured on the test sets.
"""

import argparse
from pathlib import Path
from typing import Any

from side_by_side.multi30k_data import TESTS, Split, read_split
from side_by_side.results import keep_row
from side_by_side.translation_scores import tokenized_bleu

from kbert.tasks.translation.model import Translator

RESULTS = Path(__file__).parent / "results" / "fused_branches.json"
KEY = ("run", "weight_of_bert")
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0)


def weighted(run: Path, weight: float) -> Translator:
    """The translator of a run; a traced graph keeps its weights, so each has its own model."""
    model = Translator.from_pretrained(run / "model", dtype="float32")
    model.transformer.force_branches((1 - weight, weight))
    return model


def bleu(model: Translator, split: Split) -> float:
    """Of its translations, tokenised and lower-cased."""
    found = tokenized_bleu(model.predict(split.sources), split.targets)
    return float(found["tokenized_lowercase_bleu"])


def main() -> None:
    """Translates with each weight, and scores."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with val.en.gz and so on")
    parser.add_argument("runs", type=Path, nargs="+", help="folders of benchmarks/multi30k.py")
    parser.add_argument("--weights", type=float, nargs="+", default=WEIGHTS, help="of BERT")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    validation = read_split(arguments.data, "val")
    tests = {name: read_split(arguments.data, name) for name in TESTS}
    for run in arguments.runs:
        rows: list[dict[str, Any]] = []
        for weight in arguments.weights:
            found = bleu(weighted(run, weight), validation)
            rows.append({"run": run.name, "weight_of_bert": weight, "validation": found})
            print(rows[-1], flush=True)
        best = max(rows, key=lambda row: row["validation"])
        model = weighted(run, best["weight_of_bert"])
        best |= {name: bleu(model, split) for name, split in tests.items()}
        for row in rows:
            keep_row(arguments.output, row, KEY)


if __name__ == "__main__":
    main()
