import json

import yaml
from typer.testing import CliRunner

from kbert.cli.main import app
from kbert.training.runs.run_directory import load_run


def invoke(*arguments):
    return CliRunner().invoke(app, ["train", *map(str, arguments)])


def test_a_run_from_file_and_options(tiny_pairs, tmp_path):
    values = tiny_pairs.values(tmp_path / "from_file", epochs=9, train=None)
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(values))
    sides = {"--train-source": "train.en", "--train-target": "train.de"}
    files = [word for key, name in sides.items() for word in (key, tiny_pairs.folder / name)]
    output = tmp_path / "run"
    options = ["--epochs", 1, "--output", output, "--average", 1, *files]
    result = invoke("--config", file, *options)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)  # and nothing else is on stdout
    assert found["run"] == str(output) and found["averaged_epochs"] == [1]
    run = load_run(output)
    assert (run.config.epochs, run.config.vocabulary_size) == (1, 46)
    assert found["final"] == run.metrics["final"]
    assert {"bleu", "chrf", "bleu_signature"} < set(found["final"]["validation"])
    assert "56 of 56 sentence pairs kept" in result.stderr and "epoch 1/1: loss" in result.stderr


def test_bad_input_is_told_without_a_traceback(tiny_pairs, tmp_path):
    (tmp_path / "broken.tsv").write_bytes(b"source\ttarget\nred\trot\nbl\xffue\tblau\n")
    (tmp_path / "short.de").write_text("rot\n")
    (tmp_path / "wrong.yaml").write_text("task: translation\nbeamsize: 3\n")
    given = ["translation", "--output", tmp_path / "run"]
    sides = ["--train-source", tiny_pairs.folder / "train.en", "--train-target"]
    for arguments, message in (
        ([*given, "--train", tmp_path / "broken.tsv"], "broken.tsv, line 3: "),
        ([*given, *sides, tmp_path / "short.de"], "56 lines in "),
        ([*given, *sides, tmp_path / "none.de"], "which does not exist"),
        (["--config", tmp_path / "wrong.yaml"], "Received: 'beamsize'. Did you mean `beam_size`"),
        ([*given, "--batch-tokens", 0], "`--batch-tokens` must be a whole number, at least 1"),
        ([*given, "--train", "a.tsv", "--monitor", "bleu"], "`--monitor` must be left out where"),
    ):
        result = invoke(*arguments)
        assert result.exit_code == 2 and result.stdout == "", result.stderr
        assert message in result.stderr and "Traceback" not in result.stderr
    assert not (tmp_path / "run.incomplete").exists()
