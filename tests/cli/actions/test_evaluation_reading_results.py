import json

import pytest
from typer.testing import CliRunner

from kbert.cli.main import app
from kbert.training.run import train
from tests.small_pipelines import small_entity_recognizer

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def answering(tiny, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "answering"
    return train(tiny.reading(output, "question-answering", tiny.unanswerable, epochs=1))


@pytest.fixture(scope="module")
def tagging(tmp_path_factory):
    labels = ("O", "B-COLOUR", "I-COLOUR", "B-SKY", "I-SKY")
    folder = tmp_path_factory.mktemp("models") / "tagging"
    return small_entity_recognizer(labels).save_pretrained(folder)


def texts_and_places(answer):
    """All of an answer but its scores."""
    nbest = [{k: v for k, v in one.items() if k != "score"} for one in answer["nbest"]]
    return {k: v for k, v in answer.items() if "score" not in k} | {"nbest": nbest}


def scores(answer):
    return [answer["score"], answer["null_score"], *(one["score"] for one in answer["nbest"])]


def run(*arguments):
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


def test_official_metrics_and_predictions(answering, tiny, tmp_path):
    file = tmp_path / "answers.json"
    done = run("evaluate", answering, tiny.unanswerable, "--predictions", file)
    assert done.exit_code == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["examples"] == 12 and {"f1", "exact_match"} <= set(result["metrics"])
    assert set(json.loads(file.read_text())) == {f"q{i}" for i in range(12)}
    stored = json.loads((answering / "metrics.json").read_text())["final"]["validation"]
    assert result["metrics"]["f1"] == stored["f1"]


def test_entities(tagging, tiny):
    done = run("evaluate", tagging, tiny.sentences)
    assert done.exit_code == 0, done.stderr
    assert {"f1", "strict_f1", "per_type"} <= set(json.loads(done.stdout)["metrics"])


def test_predictions_of_another_task_and_several_runs(tagging, finished_run, tiny):
    done = run("evaluate", finished_run, tiny.texts["test"], "--predictions", "x")
    assert done.exit_code == 2 and "for a run of question answering only" in done.stderr
    done = run("evaluate", tagging, tagging, tiny.sentences, "--average")
    assert done.exit_code == 2 and "must have one run where the task is to read" in done.stderr


def test_questions_on_the_command_line(answering, tmp_path):
    context = tmp_path / "context.txt"
    context.write_text("the red film\nwas one")
    one = run("predict", answering, "--question", "red", "--context-file", context)
    assert one.exit_code == 0, one.stderr
    answer = json.loads(one.stdout)
    text = context.read_text()
    assert text[answer["start"] : answer["end"]] == answer["answer"]
    line = json.dumps({"question": "red", "context": text})
    piped = RUNNER.invoke(app, ["predict", str(answering)], input=f"{line}\nred\tthe red film\n")
    beside_another = json.loads(piped.stdout.splitlines()[0])
    # Another batch is another matrix product: the texts and places are the same, scores nearly.
    assert texts_and_places(beside_another) == texts_and_places(answer)
    assert scores(beside_another) == pytest.approx(scores(answer), abs=1e-6)
    # The file as it is: without its byte order mark, with its ends of lines.
    context.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    one = run("predict", answering, "--question", "red", "--context-file", context)
    given, whole = json.loads(one.stdout), text.replace("\n", "\r\n")
    assert whole[given["start"] : given["end"]] == given["answer"]
    context.write_bytes(b"caf\xe9")
    bad = run("predict", answering, "--question", "red", "--context-file", context)
    assert bad.exit_code == 2 and "context.txt, line 1: the file must be UTF-8" in bad.stderr
    shown = run("predict", answering, "--question", "red", "--context", text, "--show")
    assert shown.stdout.startswith("red\n")
    done = run("predict", answering, "--question", "red")
    assert done.exit_code == 2 and "together with either `--context` or" in done.stderr
    bad = RUNNER.invoke(app, ["predict", str(answering)], input='{"question": "red"}\n')
    assert bad.exit_code == 2 and "line 1: the object must have the texts question, " in bad.stderr
