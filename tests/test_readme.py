"""The README's blocks, run as they stand: what is copied from there works."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kbert.cli.main import app

README = Path(__file__).parent.parent / "README.md"
TOPICS = ("account", "billing", "delivery", "praise", "product_question", "returns")
ARTICLE = "Ann wrote the book in 1901, in York."

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not README.exists(), reason="the tests run without the project's pages"),
]


def blocks(title: str) -> list[str]:
    """The code blocks under a heading."""
    text = README.read_text(encoding="utf-8")
    section = text.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^```\w*\n(.*?)^```", section, re.M | re.S)


@pytest.fixture
def folder(minilm_directory, tmp_path, monkeypatch):
    """The working directory, with those of the project's files that the commands name."""
    (tmp_path / "kbert" / "data").mkdir(parents=True)
    for name in ("README.md", "kbert/data/samples"):
        (tmp_path / name).symlink_to(README.parent / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str) -> str:
    """What a command writes to stdout."""
    arguments = shlex.split(line, comments=True)[1:]
    if arguments[0] == "serve":  # others may serve on this machine
        arguments += ["--rest-port", "0", "--grpc-port", "0"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, f"{line}\n{result.stderr}"
    # Relative names are told as they were given.
    assert str(Path.cwd()) not in result.stdout + result.stderr
    return result.stdout


def test_the_commands_in_their_order(folder, served):
    block, request = blocks("On the command line")
    first, *lines = block.replace("\\\n", "").splitlines()
    (name, value) = shlex.split(first, comments=True)[0].split("=")
    lines = [line.replace(f"${name}", value) for line in lines]
    written = {line: run(line) for line in lines}
    verbs = {line.split()[1]: text for line, text in written.items()}
    assert verbs.keys() == set("train evaluate predict export check serve convert info".split())
    assert json.loads(verbs["train"])["run"] == "runs/topics"
    assert json.loads(verbs["evaluate"])["metrics"]["accuracy"] > 0.8
    assert json.loads(verbs["export"])["export"] == "exports/topics/1"
    assert json.loads(verbs["check"])["ok"]
    assert json.loads(verbs["serve"])["models"] == ["topics"]
    assert request.startswith("curl ") and "/models/topics:predict" in request
    assert json.loads(verbs["info"])["kind"] == "export"
    assert (folder / "topics-hf" / "model.safetensors").is_file()
    texts = [text for line, text in written.items() if line.split()[1] == "predict"]
    assert json.loads(texts[0])["label"] == "delivery"
    assert "\n  1. Apache-2.0 " in texts[1] and "{" not in texts[1]
    answers = (folder / "runs" / "answers.jsonl").read_text().splitlines()
    assert len(answers) == 90 and all(json.loads(row)["label"] in TOPICS for row in answers)


def test_the_lines_of_python(folder):
    readers, own = blocks("In Python")
    names: dict = {}
    exec(readers, names)
    reader, kbert = names["reader"], names["kbert"]
    (answer,) = reader.answers({"question": ["Who wrote it?"], "context": [ARTICLE]})
    assert (answer["answer"], answer["start"], answer["end"]) == ("Ann", 0, 3)
    (found,) = kbert.load("minilm-ner").answers(["Ann came from York."])
    assert [(one["entity"], one["label"]) for one in found] == [("Ann", "PER"), ("York", "LOC")]
    exec(own, names)
    assert names["model"].predict(["surprisingly tender"]).shape == (1, 2)
    for made in ("model.keras", "model-dir", "exports/sentiment/1"):
        assert (folder / made).exists(), made
