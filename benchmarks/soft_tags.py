"""Reading by tags: several people's answers as shares of opinion, against the first answer alone.

    python benchmarks/soft_tags.py SQUAD_DIRECTORY --seeds 1

The questions of SQuAD 1.1's dev set have three or more answers each, of different people. Split by
article, 70 % to learn from and 30 % to measure. The encoder is that of minilm-squad, which has
learned to answer by spans from other articles; its adapters and a new head learn. (An epoch from
the bare all-MiniLM-L6-v2, all weights, finds no answer yet: of a hundred tokens two are in one.)
The answer with the highest score of a question is also measured by SQuAD's exact match and F1.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import keras
from side_by_side.question_splits import split_by_title
from side_by_side.results import keep_row

from kbert.data.batches.plans import batch_plan
from kbert.data.questions.question_examples import QuestionExamples
from kbert.data.questions.squad import read_squad
from kbert.metrics.answers import exact_and_overlap_f1, squad_metrics
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.question_answering.model import QuestionAnswerer
from kbert.tasks.span_tagging.model import SpanTagger

RESULTS = Path(__file__).parent / "results" / "soft_tags.json"
KEY = ("gold", "seed", "epochs", "rate")
SPLIT_SEED = 1


def measured(model: SpanTagger, examples: QuestionExamples) -> dict[str, float]:
    """Spans against all different answers, and the best span as the one answer."""
    answers = model.answers(examples)
    true = [[(a.start, a.start + len(a.text)) for a in several] for several in examples.answers]
    found = exact_and_overlap_f1(true, [[(a["start"], a["end"]) for a in s] for s in answers])
    best = {
        name: max(several, key=lambda a: a["score"])["answer"] if several else ""
        for name, several in zip(examples.ids, answers)
    }
    shown = {k: round(v, 4) for k, v in found.items() if k.endswith("_f1")}
    scores = {k: round(v, 2) for k, v in squad_metrics(examples.answer_texts, best).items()}
    counts = [len(several) for several in answers]
    return {
        **shown,
        **scores,
        "without_answer": counts.count(0),
        "answers_a_question": round(sum(counts) / len(counts), 3),
    }


def train(arguments: argparse.Namespace, soft: bool, seed: int) -> dict[str, Any]:
    """Trains once and returns the scores."""
    keras.utils.set_random_seed(seed)
    dev = read_squad(arguments.directory / "dev-v1.1.json.gz")
    learned, held_out = split_by_title(dev, (0.7, 0.3), SPLIT_SEED)
    reader = QuestionAnswerer.from_pretrained("minilm-squad", dtype="mixed_bfloat16")
    model = SpanTagger(reader.encoder, reader.tokenizer, soft=soft, dtype="mixed_bfloat16")
    windows, targets = model.examples(model.read_inputs(learned), learned.answers)
    steps = arguments.epochs * len(batch_plan(windows.packed.lengths, 32, shuffle=True))
    model.compile(optimizer=AdamW(WarmupLinearDecay(arguments.rate, steps, steps // 10)))
    dataset = model.dataset(windows, targets, batch_size=32, shuffle=True, seed=seed)
    start = time.perf_counter()
    model.fit(dataset, epochs=arguments.epochs, verbose=2)
    seconds = time.perf_counter() - start
    return {
        "questions": len(learned),
        "measured_questions": len(held_out),
        **measured(model, held_out),
        "training_seconds": round(seconds),
    }


def main() -> None:
    """Trains with both golds and each seed; each result is written at once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path, help="folder with dev-v1.1.json.gz")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    for seed in range(1, arguments.seeds + 1):
        for soft in (True, False):
            row: dict[str, Any] = {"gold": "soft" if soft else "first answer", "seed": seed}
            row |= {"epochs": arguments.epochs, "rate": arguments.rate}
            keep_row(arguments.output, row | train(arguments, soft, seed), KEY)


if __name__ == "__main__":
    main()
