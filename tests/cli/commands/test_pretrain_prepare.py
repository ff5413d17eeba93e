import json

from typer.testing import CliRunner

from kbert.cli.main import app
from tests.training.tiny_corpus import TinyCorpus


def invoke(*arguments):
    return CliRunner().invoke(app, ["prepare", *map(str, arguments)])


def test_records_of_files(tmp_path):
    tiny = TinyCorpus(tmp_path)
    part, output = tmp_path / "part0.txt", tmp_path / "records"
    options = ["--vocabulary", tiny.vocabulary, "--output", output, "--max-sequence-length", 20]
    result = invoke(part, *options, "--shards", 2)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["shards"] == 2 and found["examples"] > 8
    assert len(list(output.glob("*.tfrecord"))) == 2
    again = invoke(part, *options)
    assert again.exit_code == 2 and "`--output` must not exist yet" in again.stderr
    both = invoke(part, "--text", part, *options)
    assert both.exit_code == 2 and "`--text` must be left out" in both.stderr
