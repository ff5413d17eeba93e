"""A translator from the command line: measured, asked, exported, told about."""

import json

import pytest
import sacrebleu
from typer.testing import CliRunner

from kbert.cli.main import app
from kbert.training.runs.run_directory import load_run
from tests.training.tiny_translations import PARTS, SOURCES, TARGETS

TEST = PARTS["test"]


def invoke(*arguments, stdin=None):
    return CliRunner().invoke(app, list(map(str, arguments)), input=stdin)


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def test_files_and_tables_give_the_same_numbers(finished_translation, tiny_pairs, tmp_path):
    sides = [tiny_pairs.folder / "test.en", "--target", tiny_pairs.folder / "test.de"]
    file = tmp_path / "translations.txt"
    result = invoke("evaluate", finished_translation, "--source", *sides, "--translations", file)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    translations = file.read_text().splitlines()
    assert len(translations) == 8 and found["examples"] == found["metrics"]["sentences"] == 8
    expected = sacrebleu.corpus_chrf(translations, [TARGETS[TEST]]).score
    assert found["metrics"]["chrf"] == pytest.approx(expected)
    assert {
        *("bleu", "bleu_signature", "chrf_signature", "perplexity", "accuracy"),
        "tokenized_lowercase_bleu",  # the run was told its language
    } < set(found["metrics"])
    model = finished_translation / "model"
    by_table = invoke("evaluate", model, tiny_pairs.folder / "test.tsv")
    metrics = json.loads(by_table.stdout)["metrics"]
    assert {key: found["metrics"][key] for key in metrics} == metrics
    assert "tokenized_lowercase_bleu" not in metrics
    other = tmp_path / "other.tsv"
    lines = (tiny_pairs.folder / "test.tsv").read_text().splitlines(keepends=True)
    other.write_text("".join(["en\tde\n", *lines[1:]]))
    named = ("--source-column", "en", "--target-column", "de")
    by_columns = invoke("evaluate", model, other, *named)
    assert json.loads(by_columns.stdout)["metrics"] == metrics
    refused = invoke("evaluate", model, "--source", *sides, *named)
    assert refused.exit_code == 2 and "a file of both only" in " ".join(refused.stderr.split())


def test_pairs_that_cannot_be_measured_are_told(finished_translation, tmp_path):
    (tmp_path / "a.en").write_text("red dog\n\n" + "red " * 25_000 + "\n")
    (tmp_path / "a.de").write_text("rot hund\nrot\nrot\n")
    sides = ["--source", tmp_path / "a.en", "--target", tmp_path / "a.de"]
    file = tmp_path / "translations.txt"
    result = invoke("evaluate", finished_translation, *sides, "--translations", file)
    metrics = json.loads(result.stdout)["metrics"]
    assert (metrics["sentences"], metrics["truncated"]) == (2, 1)
    assert metrics["left_out"] == {"empty_source": {"count": 1, "lines": [2]}}
    assert file.read_text().split("\n")[1] == ""


def test_lines_are_translated_in_their_order(finished_translation):
    texts = [*SOURCES[TEST][:3], "", "red " * 25_000, "Ωμέγα 漢字"]
    stdin = "".join(f"{text}\n" for text in texts)
    result = invoke("predict", finished_translation, "--batch-size", 4, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    found = rows(result.stdout)
    assert [set(row) for row in found] == [{"translation", "score", "nbest", "truncated"}] * 6
    assert all(row["nbest"][0]["translation"] == row["translation"] for row in found)
    assert (found[3]["translation"], found[3]["score"]) == ("", 0.0)
    assert [row["truncated"] for row in found] == [False] * 4 + [True, False]
    assert invoke("predict", finished_translation, stdin="").stdout == ""  # no line, no answer
    one = rows(invoke("predict", finished_translation, "--text", texts[0]).stdout)
    assert one[0]["translation"] == found[0]["translation"]
    result = invoke("predict", finished_translation, stdin=b"red dog\nbl\xffue\n")
    assert result.exit_code == 2 and "stdin, line 2: the text must be UTF-8" in result.stderr


def test_more_translations_than_the_run_gives(finished_translation, finished_run):
    (found,) = rows(invoke("predict", finished_translation, "--text", "red", "--nbest", 4).stdout)
    assert len(found["nbest"]) == 4  # a live model searches for more
    result = invoke("predict", finished_run, "--text", "a", "--nbest", 3)
    told = "`--nbest` must be given for a translator, a captioner or a model that fills [MASK]"
    assert result.exit_code == 2 and told in result.stderr


@pytest.mark.slow
def test_an_export_translates_as_its_run(finished_translation, tmp_path):
    sizes = ["--max-batch-size", 1]
    result = invoke("export", finished_translation, tmp_path, "--name", "en-de", *sizes)
    assert result.exit_code == 0, result.stderr
    exported = tmp_path / "en-de"
    outputs = json.loads(result.stdout)["signatures"]["serving_default"]["outputs"]
    assert outputs["nbest_translation"]["shape"] == [None, 2]
    asked = ["--text", "red dog", "--text", "", "--nbest", 1]
    of_run = rows(invoke("predict", finished_translation, *asked).stdout)
    of_export = rows(invoke("predict", exported, *asked).stdout)
    for one, other in zip(of_run, of_export):
        assert len(one["nbest"]) == len(other["nbest"]) == 1
        assert one["translation"] == other["translation"]
        assert one["score"] == pytest.approx(other["score"], abs=1e-5)
    result = invoke("predict", exported, "--text", "a", "--nbest", 3)
    told = "`--nbest` must be at most 2, as many as the export gives"
    assert result.exit_code == 2 and told in result.stderr
    found = json.loads(invoke("info", exported).stdout)
    assert (found["class"], found["servable"]) == ("Translator", True)


def test_info_knows_a_run_and_its_model(finished_translation):
    found = json.loads(invoke("info", finished_translation).stdout)
    assert found["kind"] == "run" and found["config"]["task"] == "translation"
    assert found["report"]["examples"]["train"]["count"] == 56
    found = json.loads(invoke("info", finished_translation / "model").stdout)
    assert (found["kind"], found["format"], found["bert"]) == ("checkpoint", "kbert", None)
    assert found["subwords"] == {"source": 46, "target": 46, "joint": True}
    report = json.loads((finished_translation / "report.json").read_text())
    assert found["parameters"] == report["parameters"]
    assert found["task"]["beam_size"] == 2 and found["config"]["hidden_dim"] == 16


def test_bad_input_is_told(finished_translation, finished_run, tiny_pairs, tiny):
    source, target = tiny_pairs.folder / "test.en", tiny_pairs.folder / "train.de"
    table = tiny_pairs.folder / "test.tsv"
    for arguments, message in (
        ([finished_translation, "--source", source], "must be given together"),
        ([finished_translation, "--source", source, "--target", target], "8 lines in "),
        (
            [finished_translation, table, "--source", source, "--target", target],
            f"`FILE` must be left out with `--source` and `--target`. Received: {table}",
        ),
        ([finished_translation, table, "--language", "xx"], "`--language` must be one of"),
        ([finished_run, "--source", source, "--target", source], "for a translator only. Rec"),
        ([finished_run, tiny.texts["test"], "--language", "de"], "for a translator only"),
        (
            [finished_translation, finished_translation, table, "--average"],
            "must have one run where the task is translation",
        ),
        ([finished_translation, "tfds:nothing/of-this"], "nothing"),
    ):
        result = invoke("evaluate", *arguments)
        assert result.exit_code == 2, (arguments, result.stderr)
        assert message in result.stderr and result.stdout == ""
    assert load_run(finished_translation).metrics["task"] == "translation"
