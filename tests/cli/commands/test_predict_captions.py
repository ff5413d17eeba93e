"""The verbs on captioners: predict, plot, info, evaluate, convert."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf
from typer.testing import CliRunner

from kbert.cli.actions import answering, evaluation
from kbert.cli.actions.answering import Answering, live_answering
from kbert.cli.main import app
from kbert.tasks.captioning import attention_maps
from kbert.tasks.captioning.attention_maps import WordMaps
from kbert.training.runs import load_model as loading
from tests.small_captioner import shapes, small_captioner
from tests.training.eager_steps import eager_functions


@pytest.fixture(scope="module")
def model():
    """One for all tests: each graph of a captioner takes seconds to make."""
    made = small_captioner(beam_size=1)
    with eager_functions(False):
        made.predict(shapes()[0][:1])
    return made


@pytest.fixture(scope="module")
def live(model):
    made = live_answering(model)
    with eager_functions(False):
        made.answer([b""])
    return made


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    return model.save_pretrained(tmp_path_factory.mktemp("models") / "captioner")


@pytest.fixture
def captioner(saved, model, live, graphs, monkeypatch):
    """A folder, of which each verb gets the model that is there."""
    for module in (answering, evaluation, loading):
        monkeypatch.setattr(module, "load_model", lambda folder: model)
    monkeypatch.setattr(answering, "live_answering", lambda model: live)
    return saved


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    pixels, captions = shapes()
    rows = ["image,caption"]
    for number in range(3):
        (folder / f"{number}.png").write_bytes(tf.io.encode_png(pixels[number]).numpy())
        rows += [f"{number}.png,{text}" for text in captions[number]]
    (folder / "none.png").write_text("no image")
    (folder / "captions.csv").write_text("\n".join(rows) + "\n")
    return folder


def invoke(*arguments, stdin=None):
    return CliRunner().invoke(app, [*map(str, arguments)], input=stdin)


def test_predict_files_and_lines_of_names(captioner, model, photos):
    names = [photos / "0.png", photos / "none.png", photos / "1.png"]
    done = invoke("predict", captioner, *names)
    assert done.exit_code == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [bool(row["problem"]) for row in rows] == [False, True, False]
    assert rows[1]["caption"] == "" and len(rows[0]["nbest"]) == 1
    wanted = model.predict(list(shapes()[0][:2]))
    assert [rows[0]["caption"], rows[2]["caption"]] == wanted
    stdin = "".join(f"{name}\n" for name in names)
    lines = invoke("predict", captioner, stdin=stdin).stdout.splitlines()
    assert [json.loads(line)["caption"] for line in lines] == [row["caption"] for row in rows]


def test_predict_a_table_of_names(captioner, model, photos, tmp_path):
    (tmp_path / "some.csv").write_text(f"image\n{photos / '2.png'}\n")
    arguments = ("--input", tmp_path / "some.csv", "--output", tmp_path / "found.jsonl")
    done = invoke("predict", captioner, *arguments)
    assert done.exit_code == 0, done.stderr
    (row,) = map(json.loads, (tmp_path / "found.jsonl").read_text().splitlines())
    assert row["caption"] == model.predict([shapes()[0][2]])[0]


def test_images_are_for_captioners(captioner, photos, tmp_path):
    done = invoke("predict", captioner, "--text", "a dog")
    told = "`IMAGE` must be given for a captioner, and for no other model. Received: `--text`"
    assert done.exit_code == 2 and told in done.stderr
    done = invoke("predict", captioner, photos / "9.png")
    assert done.exit_code == 2 and "`IMAGE` must be a file. Received" in done.stderr
    done = invoke("predict", captioner, photos / "0.png", "--text", "a dog")
    assert done.exit_code == 2 and "must not be given together with texts" in done.stderr
    done = invoke("predict", captioner, stdin=f"{photos / '0.png'}\nnowhere.png\n")
    told = "line 2: the image must be a file that can be read. Received: 'nowhere.png'"
    assert done.exit_code == 2 and told in " ".join(done.stderr.split())
    (tmp_path / "some.csv").write_text(f"image\n{photos / '0.png'}\nnowhere.png\n")
    arguments = ("--input", tmp_path / "some.csv", "--output", tmp_path / "found.jsonl")
    done = invoke("predict", captioner, *arguments)
    told = "some.csv, line 3: the image must be a file that can be read"
    assert done.exit_code == 2 and told in " ".join(done.stderr.split())


def test_other_models_have_no_images(finished_run, photos, tmp_path):
    done = invoke("predict", finished_run, photos / "0.png")
    assert done.exit_code == 2 and "`IMAGE` must be given for a captioner" in done.stderr
    file = tmp_path / "caption.svg"
    done = invoke("plot", finished_run, "--image", photos / "0.png", "--output", file)
    assert done.exit_code == 2 and "`--image` must be given for a captioner" in done.stderr
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("text\tlabel\nthe red film\tup\n")
    done = invoke("evaluate", finished_run, pairs, "--images", photos)
    assert done.exit_code == 2 and "must be given for a captioner only" in done.stderr


def test_plot(captioner, model, photos, tmp_path, monkeypatch):
    """The picture; what it shows is tested with `word_maps`."""
    asked = []
    found = WordMaps("two words", ["two", "words"], np.ones((2, 4, 4)), shapes()[0][0])
    monkeypatch.setattr(attention_maps, "word_maps", lambda *given: asked.append(given) or found)
    file = tmp_path / "caption.svg"
    done = invoke("plot", captioner, "--image", photos / "0.png", "--output", file)
    assert done.exit_code == 0, done.stderr
    assert asked == [(model, photos / "0.png")]
    assert {"two", "words", "two words"} <= set(re.findall("<!-- (.*?) -->", file.read_text()))
    done = invoke("plot", captioner, "--text", "a", "--output", file)
    told = "`--image` must be given for a captioner. Received: --text"
    assert done.exit_code == 2 and told in done.stderr
    done = invoke("plot", captioner, "--text", "a", "--picture", "caption", "--output", file)
    assert done.exit_code == 2 and "`--text` must be given for " in done.stderr


def test_evaluate(captioner, model, photos, tmp_path):
    written = tmp_path / "found.jsonl"
    table = photos / "captions.csv"
    done = invoke("evaluate", captioner, table, "--images", photos, "--captions", written)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["examples"] == found["metrics"]["images"] == 3
    names = {"bleu_1", "bleu_4", "chrf", "rouge_l", "perplexity"}
    assert names <= set(found["metrics"])
    captions = model.predict(list(shapes()[0][:3]))
    rows = [json.loads(line) for line in written.read_text().splitlines()]
    wanted = [{"image": f"{n}.png", "caption": text} for n, text in enumerate(captions)]
    assert rows == wanted
    done = invoke("evaluate", captioner, table)
    assert done.exit_code == 2 and "`--images` must be given for a model's folder" in done.stderr


def test_info_and_convert(captioner, model, tmp_path):
    found = json.loads(invoke("info", captioner).stdout)
    assert (found["format"], found["architecture"]) == ("kbert", "show-attend-tell")
    assert found["subwords"] == len(model.subwords)
    assert found["network_parameters"] == model.extractor.count_params()
    assert found["task"]["class"] == "Captioner" and found["config"]["attention"] == "soft"
    done = invoke("convert", captioner, tmp_path / "other", "--format", "huggingface")
    assert done.exit_code == 2 and "`SRC` must be no captioner" in done.stderr
    done = invoke("train", "classification", "--encoder", captioner, "--train", "x.tsv")
    assert done.exit_code == 2


def test_images_are_read_some_at_a_time(monkeypatch, photos):
    """A block of a table has thousands of names, whose files would fill the memory."""
    asked = []

    def answer(images):
        asked.append([len(one) for one in images])
        return [{"caption": "a", "nbest": []} for _ in images]

    files = [photos / f"{number}.png" for number in (0, 1, 2)]
    sizes = [file.stat().st_size for file in files]
    monkeypatch.setattr(answering, "_IMAGE_BYTES", sizes[0] + 1)
    found = Answering(("image",), answer).answers([(str(file),) for file in files])
    assert asked == [sizes[:2], sizes[2:]] and len(found) == 3
