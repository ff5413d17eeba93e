"""What precisions cost and gain on a file."""

import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
from typer.testing import CliRunner

from kbert.cli.actions import precision_measures
from kbert.cli.actions.precision_measures import measure_precisions
from kbert.cli.main import app
from kbert.serving.precision.substitutes import WeightSubstitutes
from tests.small_pipelines import (
    small_classifier,
    small_entity_recognizer,
    small_multiple_choice,
    small_question_answerer,
)


def test_an_export_with_measures(finished_run, tiny, tmp_path):
    file = Path(tiny.texts["test"])
    arguments = ["export", str(finished_run), str(tmp_path), "--name", "m", "--max-batch-size", "2"]
    arguments += ["--precision", "bfloat16", "--measure", str(file)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    measured = json.loads(result.stdout)["measured"]
    assert set(measured["of"]) == {"float32", "bfloat16"}
    # What the run itself found on that file.
    final = json.loads((finished_run / "metrics.json").read_text())["final"]["test"]
    one, other = measured["of"]["float32"], measured["of"]["bfloat16"]
    assert one["metrics"]["accuracy"] == pytest.approx(final["accuracy"])
    assert one["weight_bytes"] == 2 * other["weight_bytes"]
    assert min(one["rows_per_second"], other["rows_per_second"]) > 0
    card = (tmp_path / "m" / "1" / "assets.extra" / "README.md").read_text("utf-8")
    assert f"| bfloat16 | {other['weight_bytes']:,} | accuracy |" in card
    assert str(file.parent) not in card and file.name in card


def test_several_runs_in_one_export(finished_run, tmp_path):
    arguments = ["export", str(finished_run), str(tmp_path), "--with", str(finished_run)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2 and "whose folders have different names" in result.stderr
    result = CliRunner().invoke(app, [*arguments, "--measure", "x.tsv"])
    assert result.exit_code == 2 and "`--measure` must not be given together" in result.stderr
    other = tmp_path / "copy" / "other"
    shutil.copytree(finished_run / "model", other)
    arguments = ["export", str(finished_run), str(tmp_path / "base"), "--with", str(other)]
    result = CliRunner().invoke(app, [*arguments, "--max-batch-size", "2"])
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert set(found["signatures"]) == {"serving_default", finished_run.name, "other"}
    texts = ["--text", "the film was good"]
    answers = [
        CliRunner().invoke(app, ["predict", str(tmp_path / "base" / "tasks"), *texts, *task]).stdout
        for task in ([], ["--task", "other"], ["--task", finished_run.name])
    ]
    assert len(set(answers)) == 1 and json.loads(answers[0])["label"] in ("down", "up")
    wrong = CliRunner().invoke(
        app, ["predict", str(tmp_path / "base" / "tasks"), *texts, "--task", "none"]
    )
    assert wrong.exit_code == 2 and "`--task` must be one of" in wrong.stderr


def test_what_cannot_be_measured(tmp_path):
    model = type("Translator", (), {"transformer": None})()
    with pytest.raises(ValueError, match="must be given for a model that .*Received: a Translator"):
        measure_precisions(model, tmp_path, tmp_path / "x.tsv", ["float32"])


def test_models_that_read_and_choose(tmp_path):
    questions = {
        "data": [
            {
                "title": "t",
                "paragraphs": [
                    {
                        "context": "a good film",
                        "qas": [
                            {
                                "id": "1",
                                "question": "what",
                                "answers": [{"text": "good", "answer_start": 2}],
                            }
                        ],
                    }
                ],
            }
        ]
    }
    (tmp_path / "questions.json").write_text(json.dumps(questions))
    (tmp_path / "tags.conll").write_text("a O\nfilm B-PER\n\ngood O\n")
    (tmp_path / "choices.jsonl").write_text('{"context": "a", "choices": ["b", "c"], "label": 1}\n')
    for model, file, metric in (
        (small_question_answerer(), "questions.json", "exact_match"),
        (small_entity_recognizer(), "tags.conll", "f1"),
        (small_multiple_choice(), "choices.jsonl", "accuracy"),
    ):
        run = tmp_path / type(model).__name__
        model.save_pretrained(run)
        found = measure_precisions(model, run, tmp_path / file, ["float32"])
        assert metric in found["of"]["float32"]["metrics"], found


def _saved_with_file(model, folder):
    model.save_pretrained(folder / "run")
    (folder / "x.tsv").write_text("text\tlabel\na good film\tup\nvery bad\tdown\n")
    return folder / "run", folder / "x.tsv"


def test_a_lora_is_measured_as_part_of_the_weights(tmp_path, monkeypatch):
    model = small_classifier(("down", "up"))
    run, file = _saved_with_file(model, tmp_path)
    encoder, seen = model.encoder, []
    encoder.add_adapter("a", "lora")
    for part in encoder.adapters.parts["a"].blocks:
        for weight in part.weights:
            weight.assign(keras.random.normal(weight.shape, seed=3))
    encoder.set_active_adapters("a")
    kernel = encoder.layer_blocks[0].attention.qkv.kernel
    before = keras.ops.convert_to_numpy(kernel)

    def speed(measured, *_):
        of_copy = measured.encoder.layer_blocks[0].attention.qkv.kernel
        seen.append((measured.encoder.active_adapters, np.abs(of_copy - before).max()))
        return 1.0

    monkeypatch.setattr(precision_measures, "_rows_per_second", speed)
    measure_precisions(model, run, file, ["float32", "int8"])
    # As in the export, whose integers are those of the sum.
    assert [active for active, _ in seen] == [[], []]
    assert min(change for _, change in seen) > 0.1
    assert encoder.active_adapters == ["a"]
    np.testing.assert_array_equal(kernel, before)


def test_a_model_is_measured_once_and_frozen_where_its_export_is(tmp_path, monkeypatch, graphs):
    model = small_classifier(("down", "up"))
    run, file = _saved_with_file(model, tmp_path)
    freeze, frozen = WeightSubstitutes.freeze, []

    def counted(substitutes):
        frozen.append(substitutes)
        freeze(substitutes)

    monkeypatch.setattr(WeightSubstitutes, "freeze", counted)
    # None is the model's own precision: float32 once more.
    found = measure_precisions(model, run, file, ["float32", None], frozen=True)
    assert len(frozen) == 1 and list(found["of"]) == ["float32"]
    assert found["of"]["float32"]["rows_per_second"] > 0
    measure_precisions(model, run, file, [None])
    assert len(frozen) == 1


def test_what_is_frozen_is_measured_so(finished_run, tiny, tmp_path, monkeypatch):
    def measured(model, run, file, precisions, frozen):
        raise ValueError(f"measured {precisions}, frozen={frozen}")

    monkeypatch.setattr(precision_measures, "measure_precisions", measured)
    arguments = [str(finished_run), str(tmp_path), "--frozen", "--measure", tiny.texts["test"]]
    result = CliRunner().invoke(app, ["export", *map(str, arguments)])
    assert result.exit_code == 2 and "measured ['float32', None], frozen=True" in result.stderr
