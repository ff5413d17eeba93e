import json

from typer.testing import CliRunner

from kbert.cli.main import app
from kbert.training.runs.run_directory import load_run
from tests.training.tiny_corpus import TinyCorpus


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_a_run_and_what_can_be_asked_of_it(tmp_path):
    tiny = TinyCorpus(tmp_path)
    values = tiny.values(tmp_path / "run", steps=2)
    files = [tiny.folder / "part0.txt", tiny.folder / "part1.txt"]
    del values["text"]
    values["validation"] = values["validation"][0]
    options = [x for k, v in values.items() for x in (f"--{k.replace('_', '-')}", v)]
    result = invoke("pretrain", *files, *options)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert set(found) == {"run", "model", "final", "seconds"}
    assert "masked_accuracy" in found["final"]["validation"]
    assert load_run(found["run"]).config.text == [str(file) for file in files]
    asked = ["predict", found["run"], "--text", "the film was [MASK].", "--nbest", 3]
    (mask,) = json.loads(invoke(*asked).stdout)["masks"]
    assert len(mask["words"]) == 3
    shown = invoke(*asked, "--show").stdout
    assert shown.startswith("the film was") and f"  1. {mask['words'][0]['word']} " in shown
    about = json.loads(invoke("info", found["run"]).stdout)
    assert about["kind"] == "run" and "intervals" not in about["metrics"]


def test_bad_input_is_told(tmp_path):
    tiny = TinyCorpus(tmp_path)
    (tmp_path / "empty.txt").touch()
    (tmp_path / "binary.txt").write_bytes(b"a\0b")
    part = tiny.folder / "part0.txt"
    new = ["--vocabulary", tiny.vocabulary, "--output", tmp_path / "run"]
    for arguments, message in (
        (["--text", part, "--output", tmp_path / "run"], "One of `encoder`, to go on from"),
        ([part, "--text", part, *new], "`--text` must be left out where files are given"),
        ([tmp_path / "none.txt", *new], "`--text` must be files, or patterns that match some"),
        ([tmp_path / "empty.txt", *new], "`--text` must hold text. Received: "),
        ([part, *new, "--validation", tmp_path / "empty.txt"], "`--validation` must hold text"),
        ([tmp_path / "binary.txt", *new], "the file must be UTF-8 text. Received: a zero byte"),
        ([part, *new, "--objective", "nsp"], "`--objective` must be one of mlm_nsp, mlm"),
    ):
        result = invoke("pretrain", *arguments)
        assert result.exit_code == 2 and message in result.stderr, result.stderr
    assert not (tmp_path / "run").exists() and not (tmp_path / "run.incomplete").exists()
