"""What the command line tells before TensorFlow is imported, which takes seconds.

One process runs all commands in turn, and says what of the slow packages it holds after each.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kbert.checkpoints.encoder_folder import write_native
from kbert.checkpoints.huggingface_files import read_huggingface
from kbert.options.kinds import config_text
from tests.checkpoints.synthetic_bert import hf_tensors, write_hf, write_vocabulary
from tests.checkpoints.synthetic_marian import write_marian
from tests.serving.written_model import write_model

SLOW = (
    *("tensorflow", "tensorflow_text", "keras", "scipy", "sklearn", "sacrebleu", "matplotlib"),
    *("jax", "huggingface_hub"),
)
PROGRAM = f"""
import json, sys
from typer.testing import CliRunner
from kbert.cli.main import app

told = []
for arguments in json.load(sys.stdin):
    result = CliRunner().invoke(app, arguments)
    loaded = [name for name in {SLOW!r} if name in sys.modules]
    told.append([result.exit_code, result.stdout, result.stderr, loaded])
print(json.dumps(told))
"""
NEW = "--vocabulary v.txt --encoder scratch:tiny --output new"
TRAIN = f"train classification {NEW}"
FOLDER = (
    "`{}` must be an export, BASE/<model> or BASE/<model>/<version> with a saved_model.pb. "
    "Received: 'exports', a folder of the models ['topics']: name one"
)
PAIRS = "train translation --output new"
RECORDS = "prepare --vocabulary v.txt --output new"

# The command, run where `folder` below put its files; and a part of its message on stderr.
WRONG = {
    # A task, a key, options that contradict each other.
    "train clasification": "Received: task='clasification'. Did you mean `classification`?",
    "train translaton": "stages. Received: task='translaton'. Did you mean `translation`",
    "train --config wrong.yaml": "Received: 'batchsize'. Did you mean `batch_size`?",
    "train --config non.yaml": "`--config` must be a file. Received: 'non.yaml', which does not ex",
    "pretrain --config wrong.yaml": "wrong.yaml: the key must be an option. Received: 'batchs",
    f"{TRAIN} --train t.tsv --validation t.tsv --early-stopping 2 --keep last": (
        "`--keep` must be best with early_stop"
    ),
    # Files.
    f"{TRAIN} --train tt.tsv": "`--train` must be a file. Received: 'tt.tsv', which does not exist."
    " Did you mean `t.tsv`?",
    f"{TRAIN} --train t.tsv --validation exports": "`--validation` must be a file. Received: 'exp",
    "train ner --train t.conll --vocabulary no.txt --encoder scratch:tiny --output new": (
        "`--vocabulary` must be a file"
    ),
    f"{TRAIN} --glue sst2 --data nowhere": "`--data` must be the folder of GLUE",
    f"{PAIRS} --train-source t.tsv --train-target none.de": "`--train-target` must be a file",
    f"pretrain none*.txt {NEW}": "One of `encoder`",
    "pretrain none*.txt --vocabulary v.txt --output new": "`--text` must be files, or patterns",
    f"{RECORDS} none.txt": "`--text` must be files, or patterns that match some",
    "evaluate run tfds:glue/rte": "`FILE` must be a file. Received: 'tfds:glue/rte'",
    "evaluate run none.tsv": "`FILE` must be a file. Received: 'none.tsv'",
    "evaluate marian --source none.en --target t.tsv": "`--source` must be a file",
    "predict model --question a --context-file none": "`--context-file` must be a file",
    "export run out --measure none.tsv": "`--measure` must be a file",
    # Columns.
    f"{TRAIN} --train t.tsv --text-a txt": "have a column `txt`. Received: columns `text`",
    f"{TRAIN} --train big.tsv --label lable": "`lable`. Received: columns `text`, `label`. Did you",
    f"{TRAIN} --train bare.tsv": (
        "bare.tsv, line 1: `--label` must be given where no column is called label, gold_label, "
        "labels, category, class, as by --label COLUMN (the number of one, from 0, where line 1 is "
        "no header). Received: columns `text`, `topic`"
    ),
    f"{TRAIN} --train films.csv": "by --text-a COLUMN; `--label` must be given where no column is",
    f"train multiple-choice --train t.tsv {NEW}": "must have a column `sent1`",
    f"train embedding --train t.tsv {NEW}": "`--text-a` and `--text-b` must be given where no col",
    f"train question-answering --train t.tsv {NEW}": "must have a column `question`",
    f"{PAIRS} --train t.tsv": "must have a column `source`",
    "evaluate run t.tsv --label topic": "must have a column `topic`",
    # Names.
    "train --train t.tsv --encoder all-minilm-l6 --output new": "`--encoder` must be a path that",
    "train --train t.tsv --encoder all-minilm-l7 --output new": "Did you mean `all-MiniLM-L6-v2` o",
    "train --train t.tsv --encoder all-minilm-l6-v2 --output new": (
        "`--encoder` must be `all-MiniLM-L6-v2`, with its capital letters. Received: 'all-minilm-l"
    ),
    "predict minilm-squat --question a --context b": "Did you mean `minilm-squad`",
    "info minilm-sqaud": "Did you mean `minilm-squad`",
    "export minilm-squat out": "Did you mean `minilm-squad`",
    "convert minilm-squat out --format kbert": "Did you mean `minilm-squad`",
    "plot minilm-squat --text a --output a.png": "Did you mean `minilm-squad`",
    "evaluate minilm-squat t.tsv": "Did you mean `minilm-squad`",
    "predict minilm-squat --text a": "`RUN` must be a path that exists, a known name or",
    "evaluate run/modle t.tsv": "`RUN` must be there. Received: 'run/modle', which does not exist",
    # The head of a saved model of the same task, which the run would go on with.
    "train classification --train t.tsv --encoder two --head two_layer --output new": (
        "`--head` must be 'pooler', as that of two. Received: head='two_layer'"
    ),
    "train classification --train t.tsv --encoder model --output new.incomplete": (
        "`--output` must be one of a run, which is stopped while .incomplete stands behind it. Rec"
    ),
    "evaluate run t.tsv --submission new": "`--submission` must be given together with `--glue`",
    "evaluate run t.tsv --data new": "`--data` must be given together with `--glue`",
    "evaluate run --source t.tsv --glue sst2": "`--glue` must be left out with `--source`",
    "export run new --measure bare.tsv": "bare.tsv",
    # Exports where one is meant, none, or no such task.
    "predict exports --text a": FOLDER.format("RUN"),
    "check exports": FOLDER.format("EXPORT"),
    "info exports": FOLDER.format("RUN"),
    "predict exports/topics --text a --task ner": "`--task` must be left out: there is but one",
    "predict run --text a --task ner": "`--task` must be given for an export of several tasks only",
    "evaluate exports/topics t.tsv": "Received: 'exports/topics', which is an export",
    # What is there already.
    f"{TRAIN} --train t.tsv --output run": "`--output` must not exist yet, unless overwrite is",
    f"{RECORDS} t.tsv --output run": "`--output` must not exist yet, unless overwrite is true",
    "export run exports --name topics --version 1": "`--version` must not be there yet",
    "export run others --version 1": "`--version` must not be there yet",
    "export run exports/topics": "`base` must be a folder of models, such as exports. Received",
    "convert model run --format kbert": "`DST` must not exist yet, unless --overwrite is given",
    # Answers to a file.
    "predict model --input none.tsv --output new.tsv": "`--input` must be a file",
    "predict model --input t.tsv --output new.xls": "`--output` must end in .jsonl, .tsv or .csv",
    "predict model --input t.tsv --output no/new.tsv": "`--output` must be in a folder that exists",
    "predict model --input t.tsv --output t.tsv": "`--output` must not exist yet",
    "predict exports/topics --input films.csv --output new.tsv": (
        "films.csv, line 1: the file must have the column `text`, which the model reads; --text-a "
        "COLUMN names another. Received: columns `review`, `verdict`"
    ),
    "predict run --input films.csv --output new.tsv --text-a reviews": "Did you mean `review`?",
    # Texts of another number than the model reads.
    "predict run --question x --context y": (
        "Error: `--question` with `--context`: the model reads one text (--text). Received: 2 texts"
    ),
    "predict exports/topics --text-a x --text-b y": "the model reads one text (--text). Rec",
    # A server, and workers.
    "serve nowhere": "`BASE` must be there. Received: 'nowhere'",
    "serve exports --rest-port 65536": "`--rest-port` must be from 0 to 65535. Received: rest_p",
    "serve exports --timeout 0": "`--timeout` must be positive and finite. Received: timeout=0.0",
    "launch predict model": "`COMMAND` must begin with train or pretrain. Received: 'predict'",
    # Values of options.
    "export run out --precision int4": "Received: 'int4'. Did you mean `int8`?",
    "export run out --version 0": "`--version` must be an integer of at least 1, below",
    "export run out --keep 0": "'--keep': Input should be greater than or equal to 1",
    "export run out --max-batch-size -1": "'--max-batch-size': Input should be greater than or",
    "export run out --with model --frozen": "`--frozen` must not be given for several tasks",
    "export run out --with model --measure t.tsv": "`--measure` must not be given together",
    "convert marian out --format tf1": "`--format` must be one of kbert, ctranslate2 for a transl",
    "plot model --text a --output a.gif": "`--output` must end in one of .png, .svg, .pdf",
    "plot model --output a.png": "or `--image` must be given, or `--input` for",
    "evaluate run t.tsv --language de": "must be given for a translator only",
    "check exports/topics --server x": "Received",
}
RIGHT = {
    "info run": "run",
    "info model": "checkpoint",
    "info marian": "checkpoint",
    "info exports/topics": "export",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> dict[str, Any]:
    """What one process says to all commands."""
    folder = tmp_path_factory.mktemp("cold")
    write_vocabulary(folder)
    (folder / "vocab.txt").rename(folder / "v.txt")
    (folder / "t.tsv").write_text("text\tlabel\nred\tup\nblue\tdown\n")
    (folder / "big.tsv").write_text("text\tlabel\n" + "red\tup\n" * 30_000)
    (folder / "bare.tsv").write_text("text\ttopic\nred\tsun\n")
    (folder / "films.csv").write_text("review,verdict\ngood,up\n")
    (folder / "t.conll").write_text("red O\n")
    (folder / "wrong.yaml").write_text("batchsize: 3\n")
    checkpoint = read_huggingface(write_hf(folder / "model", hf_tensors()))
    checkpoint.pipeline = {"class": "Classifier", "head": "pooler"}
    write_native(checkpoint, folder / "two")
    checkpoint.pipeline = {"class": "Classifier", "pair": False}
    write_native(checkpoint, folder / "run" / "model")
    run = {"train": "t.tsv", "encoder": "model", "output": "run"}
    (folder / "run" / "config.yaml").write_text(config_text(run))
    for name in ("metrics", "report"):
        (folder / "run" / f"{name}.json").write_text("{}")
    write_marian(folder / "marian")
    write_model(folder / "exports" / "topics" / "1")
    write_model(folder / "others" / "run" / "1")
    commands = [line.split() for line in (*WRONG, *RIGHT)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env={"PYTHONPATH": str(repository), "PATH": "/usr/bin:/bin"},
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return dict(zip((*WRONG, *RIGHT), json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("command", WRONG)
def test_an_error_is_told_without_tensorflow(told: dict[str, Any], command: str):
    code, stdout, stderr, loaded = told[command]
    assert (code, stdout) == (2, ""), stderr
    assert WRONG[command] in stderr
    assert loaded == []


@pytest.mark.parametrize("command", RIGHT)
def test_info_needs_no_tensorflow(told: dict[str, Any], command: str):
    code, stdout, stderr, loaded = told[command]
    assert (code, stderr) == (0, "")
    assert json.loads(stdout)["kind"] == RIGHT[command]
    assert loaded == []
