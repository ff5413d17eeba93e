"""Exports beside ONNX Runtime, from raw strings to answers: one text at a time, and batches of 32.

    python benchmarks/exported_tasks.py DATA_DIRECTORY

The shipped models of sentiment, questions and entities: sentences of SST-2's dev set, questions of
SQuAD's dev set on paragraphs of about 150 words, and posts of WNUT-17. kbert runs SavedModels in
Python; ONNX Runtime the same networks, written by `kbert export --format onnx`, with `tokenizers`
and the lines of docs/export.md in NumPy. Its int8 files are those of `quantize_dynamic` with scales
for each channel. A process uses all cores; "1 thread" is one for each of TensorFlow's operations,
of which several run side by side, and one for all of ONNX Runtime's, whose faster way counts.
"""

import json
import random
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

from onnxruntime.quantization import quantize_dynamic
from side_by_side.contender import Contender, play, ratio
from side_by_side.results import parser, write

import kbert
from kbert.data.classification.glue_tasks import read_glue
from kbert.data.entities.tagged_sentences import read_conll
from kbert.data.questions.squad import read_squad
from kbert.serving.export.export import export

MODELS = {"class": "minilm-sentiment", "answer": "minilm-squad", "entities": "minilm-ner"}
WAYS: dict[str, dict[str, Any]] = {  # contender -> arguments of `export`
    "kbert": {},
    "kbert frozen": {"frozen": True},
    "kbert int8": {"precision": "int8"},
    "kbert frozen int8": {"precision": "int8", "frozen": True},
}
FILES, WORKS = ("ONNX Runtime", "ONNX Runtime int8"), (*MODELS, "classes of batches")
WORDS = range(130, 171)  # of a paragraph
BATCH, ALONE = 32, ", 1 thread"
OWN, PEER = "contenders.kbert_exports", "peers.onnxruntime_tasks"


def texts(data: Path, singles: int, batches: int) -> dict[str, list[Any]]:
    """What each work is given."""
    sentences = list(read_glue("sst2", data / "glue", "dev").text_a)
    squad = read_squad(data / "squad" / "dev-v1.1.json.gz")
    pairs = zip(squad.questions, squad.contexts, strict=True)
    questions = [pair for pair in pairs if len(pair[1].split()) in WORDS]
    posts = read_conll(data / "ner" / "wnut17" / "emerging.test.annotated").texts
    draw = random.Random(0)
    given = {"class": sentences, "answer": questions, "entities": posts}
    chosen = {work: draw.sample(rows, singles) for work, rows in given.items()}
    return chosen | {"classes of batches": sentences[: batches * BATCH]}


def write_models(folder: Path) -> None:
    """Writes each model as SavedModels and as files of ONNX Runtime."""
    for work, name in MODELS.items():
        model = kbert.load(name)
        for way, options in WAYS.items():
            export(model, folder / way, work, **options)
        for files in FILES:
            kbert.export_onnx(model, folder / files, work)
        whole, file = (str(folder / files / work / "model.onnx") for files in FILES)
        quantize_dynamic(whole, file, per_channel=True)


def contenders(folder: Path, peer_python: str) -> list[Contender]:
    """kbert's exports and ONNX Runtime's files, each with all threads and with one."""
    own, peer = (OWN, sys.executable), (PEER, peer_python)
    made = []
    for (words, intra), name in product((("", 0), (ALONE, 1)), (*WAYS, *FILES)):
        module, python = own if name in WAYS else peer
        given = {"data": str(folder / "texts.json"), "folder": str(folder / name), "intra": intra}
        made.append(Contender(name + words, module, WORKS, python, batch=BATCH, **given))
    return made


def main() -> None:
    """Runs all contenders."""
    arguments_parser = parser("exported_tasks", __doc__)
    arguments_parser.add_argument("directory", type=Path, help="folder with glue/, squad/ and ner/")
    arguments_parser.add_argument("--singles", type=int, default=20, help="single texts a turn")
    arguments_parser.add_argument("--batches", type=int, default=8, help="batches a turn")
    arguments = arguments_parser.parse_args()
    given = texts(arguments.directory, arguments.singles, arguments.batches)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_models(folder)
        (folder / "texts.json").write_text(json.dumps(given))
        played = contenders(folder, arguments.peer_python)
        play(played, [{"work": work, "repeats": 1} for work in WORKS], arguments.rounds)
    tables = {"rows": [row for work in WORKS for row in rows(work, played, len(given[work]))]}
    facts = {key: getattr(arguments, key) for key in ("rounds", "singles", "batches")}
    write(arguments.output, tables, played, facts)


def rows(work: str, played: list[Contender], count: int) -> list[dict[str, Any]]:
    """Milliseconds a text of each contender, and how many times ONNX Runtime's they are."""
    run = {one.name: one for one in played if one.median(work)}
    known = run.get(FILES[0])
    found = []
    for name, one in run.items():
        milliseconds = round((one.median(work) or 0.0) / count, 2)
        row = {"work": work, "contender": name, "ms_a_text": milliseconds}
        way = FILES["int8" in name]
        peers = [run[key] for key in (way, way + ALONE) if key in run]
        if peers:
            fastest = min(peers, key=lambda peer: peer.median(work) or 0.0)
            row["times_onnx_runtime"] = ratio(one, fastest, work)
        if known is not None:
            same = [a == b for a, b in zip(one.facts[work], known.facts[work], strict=True)]
            row["same_answers"] = round(sum(same) / len(same), 3)
        found.append(row)
    return found


if __name__ == "__main__":
    main()
