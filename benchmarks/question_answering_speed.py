"""How fast answering by spans is learned, beside PyTorch + transformers.

    python benchmarks/question_answering_speed.py SQUAD_DIRECTORY --steps 100

The recipe of question_answering.py: windows of 384 tokens that share 128, batches of 32. Both sort
windows by length, kbert inside pools of 16 batches as `fit` does, PyTorch inside pools of 50. Both
train the same number of steps from the same weights, in turns; the first ones do not count. The
speed is in real tokens a second, padding left out; the time of cutting windows is added to both,
shared out over the steps of one epoch.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from question_answering import chosen_questions
from side_by_side.contender import Contender, play
from side_by_side.results import parser, write
from side_by_side.training_slices import rows_of

from kbert.checkpoints.pretrained import resolve

WORKS = ("warm", "train")
PEERS_POOL = 50
PRECISIONS = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


def contenders(data: Path, precision: str, arguments: argparse.Namespace) -> list[Contender]:
    """kbert and transformers in one precision."""
    settings: dict[str, Any] = {
        "data": str(data),
        "length": 384,
        "stride": 128,
        "encoder": str(resolve("all-MiniLM-L6-v2")),
        "total_steps": arguments.warm_up + arguments.steps,
    }
    own = {**settings, "precision": PRECISIONS[precision]}
    peer = {**settings, "precision": precision, "pool": PEERS_POOL}
    module, python = "peers.torch_question_training", arguments.peer_python
    return [
        Contender("kbert", "contenders.kbert_question_training", WORKS, **own),
        Contender("transformers", module, WORKS, python, **peer),
    ]


def main() -> None:
    """Runs both precisions; writes after each."""
    arguments_parser = parser("question_answering_speed", __doc__)
    arguments_parser.add_argument("directory", type=Path, help="folder with train-v1.1.json.gz")
    arguments_parser.add_argument("--questions", type=int, default=8000)
    arguments_parser.add_argument("--steps", type=int, default=100, help="steps that count")
    arguments_parser.add_argument("--warm-up", type=int, default=20, help="steps before them")
    arguments_parser.set_defaults(rounds=5)
    arguments = arguments_parser.parse_args()
    if arguments.steps % arguments.rounds:
        arguments_parser.error(f"--steps must be a multiple of --rounds. Received: {arguments}")
    examples = chosen_questions(arguments.directory, arguments.questions)
    settings = {key: getattr(arguments, key) for key in ("rounds", "steps", "warm_up")}
    rows: list[dict[str, Any]] = []
    everyone: list[Contender] = []
    first = [answers[0] for answers in examples.answers]
    columns = {
        "questions": examples.questions,
        "contexts": examples.contexts,
        "answers": [(answer.start, answer.start + len(answer.text)) for answer in first],
    }
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "questions.json"
        data.write_text(json.dumps(columns))
        for precision in PRECISIONS:
            played = contenders(data, precision, arguments)
            train = {"work": "train", "steps": arguments.steps // arguments.rounds}
            play(played, [train], arguments.rounds, {"work": "warm", "steps": arguments.warm_up})
            rows += rows_of(played, f"SQuAD 1.1, {precision}", len(examples))
            everyone += played
            write(arguments.output, {"rows": rows}, everyone, settings)


if __name__ == "__main__":
    main()
