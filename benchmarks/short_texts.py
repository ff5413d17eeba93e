"""One short text, and batches of 32, classified beside ONNX Runtime: milliseconds from raw strings.

    python benchmarks/short_texts.py GLUE_DIRECTORY --onnx MODEL.onnx --classifier DIRECTORY

Sentences of SST-2's dev set. kbert runs its SavedModels, with weights as variables and frozen; ONNX
Runtime a file of the same classifier, with `tokenizers` in Python. Every process uses all cores.
"""

from pathlib import Path
from typing import Any

from inference import prepare, share_of_same
from side_by_side.contender import Contender, play, ratio
from side_by_side.results import parser, write

from kbert.data.classification.glue_tasks import GLUE_TASKS, read_glue

WORKS = ("one text", "batches of 32")
PEER = "ONNX Runtime"


def main() -> None:
    """Runs all contenders."""
    arguments_parser = parser("short_texts", __doc__)
    arguments_parser.add_argument("directory", type=Path, help="folder with SST-2/")
    arguments_parser.add_argument("--onnx", required=True, help="the classifier as an ONNX file")
    arguments_parser.add_argument("--classifier", type=Path, required=True, help="saved by kbert")
    arguments_parser.add_argument("--folder", type=Path, required=True, help="for files to make")
    arguments_parser.add_argument("--sentences", type=int, default=256, help="of batches")
    arguments_parser.add_argument("--singles", type=int, default=25, help="single texts a turn")
    arguments = arguments_parser.parse_args()
    texts = list(read_glue("sst2", arguments.directory, "dev").text_a)[: arguments.sentences]
    arguments.folder.mkdir(parents=True)
    settings = prepare(arguments.folder, arguments.classifier, texts)
    settings["singles"] = arguments.singles
    settings["model"] = str(arguments.folder / "kbert")
    settings["vocabulary"] = str(arguments.folder / "huggingface" / "vocab.txt")
    labels = GLUE_TASKS["sst2"].labels
    played = [
        Contender(f"kbert{name}", "contenders.kbert_export", WORKS, **settings, frozen=frozen)
        for name, frozen in (("", False), (" frozen", True))
    ]
    given: dict[str, Any] = {**settings, "onnx": arguments.onnx, "labels": list(labels or ())}
    module = "peers.onnxruntime_classifier"
    played.append(Contender(PEER, module, WORKS, arguments.peer_python, **given))
    play(played, [{"work": work, "repeats": 1} for work in WORKS], arguments.rounds)
    peer, rows = played[-1], []
    for one in played:
        alone, batches = (one.median(work) or float("nan") for work in WORKS)
        rows.append(
            {
                "contender": one.name,
                "one_text_ms": round(alone / arguments.singles, 2),
                "times_onnx": ratio(one, peer, WORKS[0]),
                "texts_per_second": round(1e3 * len(texts) / batches, 1),
                "speed_by_onnx": ratio(peer, one, WORKS[1]),
                "same_labels": share_of_same(one.facts["labels"], peer.facts["labels"]),
                "peak_mib": max(answer["peak_mib"] for answer in one.answers[WORKS[1]]),
            }
        )
    facts = {key: getattr(arguments, key) for key in ("rounds", "sentences", "singles")}
    write(arguments.output, {"rows": rows}, played, facts)


if __name__ == "__main__":
    main()
