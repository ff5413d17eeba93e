import json

from typer.testing import CliRunner

from kbert.cli.main import app
from kbert.training.pretraining.model import (
    build_pretrained,
    config_of_model,
    measure_pretrained,
    run_tokenizer,
)
from kbert.training.pretraining.sources import read_text
from tests.training.tiny_corpus import TinyCorpus


def evaluate(*arguments):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def test_a_model_on_text(tmp_path):
    tiny = TinyCorpus(tmp_path)
    config = tiny.config(tmp_path / "run", objective="mlm")
    model = build_pretrained(config, run_tokenizer(config, None))
    folder = model.save_pretrained(tmp_path / "model")
    file = tiny.folder / "held-out.txt"
    result = evaluate(folder, file)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["models"], found["source"]) == ([str(folder)], str(file))
    corpus = read_text(config).validation
    assert found["metrics"] == measure_pretrained(folder, corpus, config_of_model(folder))
    assert set(found["metrics"]) == {"loss", "masked_loss", "masked_accuracy", "perplexity"}
    (empty := tmp_path / "empty.txt").touch()
    for arguments, message in (
        ([folder, empty], f"`FILE` must hold text. Received: {empty}"),
        ([folder, folder, file, "--average"], "must have one run where the task is pretraining"),
        ([folder, tmp_path / "none.txt"], "`FILE` must be a file. Received"),
        ([folder, file, "--predictions", tmp_path / "p.json"], "for a run of question answering"),
    ):
        result = evaluate(*arguments)
        assert result.exit_code == 2 and message in result.stderr, result.stderr
