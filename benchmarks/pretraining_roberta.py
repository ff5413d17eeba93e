"""What does a small RoBERTa learn in as many steps as the BERT of pretraining.py, and is it of use?

    python benchmarks/pretraining_roberta.py TEXT_DIRECTORY GLUE_DIRECTORY RUNS_DIRECTORY

The same text, size, steps and rate; what differs is RoBERTa's: tokens of bytes with capitals, full
sentences over the ends of documents, no next sentences. Tokens of two vocabularies are not alike,
so the perplexity is also that of a character: e to the loss of all masked tokens over the number of
their characters, without the spaces before words. BERT's words are lower-cased, which are easier.
BERT's numbers are those of results/pretraining.json, its vocabulary is learned again.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from pretraining import BATCH, RESULTS, TOKENS, curve, pretrained
from pretraining_text import write
from side_by_side.machine import machine
from side_by_side.results import parser, table
from side_by_side.tuned_encoders import tuned_rows

from kbert.storage.files import write_atomically
from kbert.tasks.load import load
from kbert.text.tokenizer import Tokenizer
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.pretraining.model import run_tokenizer
from kbert.training.pretraining.sources import read_text, validation_batches

RUN = "roberta-hour"
OWN = {"architecture": "roberta", "objective": "mlm", "packing": "full_sentences"}


def characters(data: Path, tokenizer: Tokenizer | None, **options: Any) -> float:
    """The mean number of characters of a masked token of the text held out."""
    files = {"text": [str(data / "corpus.txt")], "validation": [str(data / "held-out.txt")]}
    config = PretrainingConfig(output="-", vocabulary_size=TOKENS, **files, **BATCH, **options)
    text = read_text(config)
    tokenizer = tokenizer or run_tokenizer(config, text.train)
    vocabulary = tokenizer.vocabulary
    sizes = np.array([len(vocabulary.text_of(token).strip()) for token in vocabulary.tokens])
    found = [
        sizes[targets[targets >= 0]]
        for _, batch in validation_batches(
            config, text.validation, tokenizer, config.validation_steps
        ).as_numpy_iterator()
        for targets in [batch["masked_tokens"]]
    ]
    return float(np.concatenate(found).mean())


def row(encoder: str, last: dict[str, Any], of_a_token: float) -> dict[str, Any]:
    """The last measurement on the text held out."""
    return {
        "encoder": encoder,
        **{key: last[key] for key in ("step", "minutes", "masked_accuracy", "perplexity")},
        "characters of a token": round(of_a_token, 3),
        "perplexity of a character": round(math.exp(last["masked_loss"] / of_a_token), 3),
    }


def main() -> None:
    """Pretrains, measures and fine-tunes; a run that is there stays, a stopped one is resumed."""
    arguments_parser = parser("pretraining_roberta", __doc__)
    arguments_parser.add_argument("text", type=Path, help="with english_novels_19c.txt.gz etc.")
    arguments_parser.add_argument("glue", type=Path, help="folder with SST-2")
    arguments_parser.add_argument("runs", type=Path, help="folder for data and runs")
    arguments_parser.add_argument("--seeds", type=int, default=3)
    arguments: argparse.Namespace = arguments_parser.parse_args()
    bert = json.loads(RESULTS.read_text())
    steps, rate = bert["settings"]["steps"], bert["settings"]["rate"]
    arguments.tuning_rate = bert["settings"]["tuning_rate"]
    data = arguments.runs / "data"
    if not data.is_dir():
        write(arguments.text, arguments.glue, data)
    folder = arguments.runs / RUN
    points = curve(pretrained(data, folder, rate, steps=steps, save_every=steps // 20, **OWN))
    model: Any = load(folder / "model")
    rows = [
        row("bert", bert["curve"][-1], characters(data, None)),
        row("roberta", points[-1], characters(data, model.tokenizer, **OWN)),
    ]
    (learned,) = tuned_rows(RUN, arguments, ("sst2",))
    for one, tuned in zip(rows, (bert["tuned"][0], learned)):
        one |= {"sst2": tuned["mean"], "error": tuned["error"]}
    result = {"machine": machine(), "settings": bert["settings"], "last": rows, "curve": points}
    write_atomically(arguments.output, json.dumps(result, indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
