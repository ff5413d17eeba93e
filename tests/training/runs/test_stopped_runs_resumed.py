import dataclasses

import keras
import numpy as np
import pytest

from kbert.data.classification.text_pairs import TextExamples
from kbert.data.questions.question_examples import Answer, QuestionExamples
from kbert.data.translation.parallel_batches import Bucket
from kbert.tasks.classification.model import Classifier
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.runs.run_directory import write_config, write_json
from kbert.training.runs.run_log import RunLog
from kbert.training.runs.stopped_runs import (
    attempt_variables,
    changed_data,
    check_same_run,
    how_to_resume,
    kept_run,
    resumes,
)
from kbert.training.runs.train_state import (
    Position,
    at_epoch_begin,
    order_of,
    position_in,
    save_state,
    sha256_of_arrays,
    sha256_of_columns,
)

CONFIG = TranslationConfig.from_dict({"train": "a.tsv", "output": "o", "epochs": 5})


def test_the_same_configuration_goes_on_from_anywhere(tmp_path):
    check_same_run(tmp_path, CONFIG)  # nothing was written yet
    write_config(CONFIG, tmp_path)
    check_same_run(tmp_path, CONFIG.with_values(resume=True, output="../o"))
    with pytest.raises(ValueError) as raised:
        check_same_run(tmp_path, CONFIG.with_values(epochs=6, seed=2))
    assert "Received: epochs=6 (it had 5), seed=2 (it had 1). Set allow_" in str(raised.value)


def test_a_key_that_an_earlier_version_did_not_have_is_its_default(tmp_path):
    write_config(CONFIG, tmp_path)
    file = tmp_path / "config.yaml"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith("seed:")))
    assert check_same_run(tmp_path, CONFIG) == []
    with pytest.raises(ValueError, match=r"Received: seed=2 \(it had None\)"):
        check_same_run(tmp_path, CONFIG.with_values(seed=2))


def test_another_configuration_goes_on_where_that_is_allowed(tmp_path, caplog):
    write_config(CONFIG, tmp_path)
    changed = CONFIG.with_values(allow_config_change=True, epochs=6)
    assert check_same_run(tmp_path, changed) == ["epochs"]
    assert "goes on with another configuration: epochs=6 (it had 5)" in caplog.text


def test_when_a_run_goes_on(tmp_path, capsys):
    config = CONFIG.with_values(output=str(tmp_path / "run"))
    assert resumes(config) and kept_run(config, RunLog()) is None
    (tmp_path / "run.incomplete").mkdir()
    assert kept_run(config, RunLog()) == tmp_path / "run.incomplete"
    assert "goes on with what is in" in capsys.readouterr().err
    for values in ({"resume": False}, {"overwrite": True}):
        other = config.with_values(**values)
        assert not resumes(other) and kept_run(other, RunLog()) is None


def test_what_a_launcher_starts_again_goes_on_with_its_own_run(tmp_path, monkeypatch):
    anew = CONFIG.with_values(output=str(tmp_path / "run"), overwrite=True)
    (tmp_path / "run.incomplete").mkdir()
    note = tmp_path / "begun"
    for name, value in attempt_variables(note, 0, begun=False).items():
        monkeypatch.setenv(name, value)
    assert not resumes(anew) and kept_run(anew, RunLog()) is None and not note.exists()
    position_in(tmp_path / "run.incomplete", None, "order")  # where the training begins
    assert note.exists() and not resumes(anew)
    for name, value in attempt_variables(note, 0, begun=True).items():
        monkeypatch.setenv(name, value)
    assert resumes(anew) and kept_run(anew, RunLog()) == tmp_path / "run.incomplete"
    # To the user the command still begins anew.
    assert how_to_resume(anew).startswith("To go on from the last state, leave out overwrite")


def test_how_a_stopped_run_goes_on(tmp_path):
    config = CONFIG.with_values(output=str(tmp_path / "run"))
    assert how_to_resume(config) == "The same command goes on from the last state"
    by_hand = config.with_values(resume=False)
    assert how_to_resume(by_hand) == "Set resume to go on from the last state"
    anew = config.with_values(overwrite=True)
    assert how_to_resume(anew) == (
        "To go on from the last state, leave out overwrite, which begins anew"
    )
    (tmp_path / "run").mkdir()
    assert f"move {tmp_path / 'run'} away and leave out overwrite" in how_to_resume(anew)


def test_the_same_data(tmp_path, caplog):
    hashes = {"data_sha256": "aa", "validation_sha256": "bb"}
    assert changed_data(tmp_path, hashes) == []
    write_json({"data_sha256": "aa"}, tmp_path / "report.json")
    assert changed_data(tmp_path, hashes) == []
    write_json(hashes, tmp_path / "report.json")
    others = {**hashes, "validation_sha256": "cc"}
    with pytest.raises(ValueError, match="the same data as the run in .* others to be measured on"):
        changed_data(tmp_path, others)
    with pytest.raises(ValueError, match="others to learn from; the files have changed"):
        changed_data(tmp_path, {"data_sha256": "cc"})
    write_json({"rte_data_sha256": "aa", "data_sha256": "aa"}, tmp_path / "report.json")
    with pytest.raises(ValueError, match=r"others to learn from \(rte\) and to learn from; the"):
        changed_data(tmp_path, {"rte_data_sha256": "cc", "data_sha256": "cc"})
    write_json(hashes, tmp_path / "report.json")
    assert changed_data(tmp_path, others, True) == ["validation_sha256"]
    assert "goes on with other data than before to be measured on" in caplog.text
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(ValueError, match="report.json` must be a JSON file"):
        changed_data(tmp_path, hashes)


def test_a_hash_of_all_columns_but_not_of_the_place():
    texts = TextExamples(["a", "b"], None, ["x", "y"], None, "one.tsv", [1, 2])
    found = sha256_of_columns(texts)
    assert found == sha256_of_columns(dataclasses.replace(texts, source="two.tsv"))
    assert found != sha256_of_columns(dataclasses.replace(texts, labels=["x", "x"]))
    answers = QuestionExamples(
        ["1"], ["q"], ["a text"], [[Answer("text", 2)]], [""], "f.json", ["data[0]"]
    )
    other = dataclasses.replace(answers, answers=[[Answer("a", 0)]])
    assert sha256_of_columns(answers) != sha256_of_columns(other)


def test_a_hash_of_examples():
    one = np.array([1, 2, 3], "int32")
    assert sha256_of_arrays(one, one) == sha256_of_arrays(one[::1], one.copy())
    # The same bytes, cut or named in another way.
    others = [(one,), (np.concatenate([one, one]),), (one, one.view("float32")), (one, one[:2])]
    assert len({sha256_of_arrays(one, one), *(sha256_of_arrays(*some) for some in others)}) == 5


def test_with_other_examples_an_epoch_begins_anew():
    assert at_epoch_begin(Position(7, 2, 1, told={"a": 1})) == Position(7, 2, 0, told={"a": 1})


def test_an_order_is_that_of_all_its_parts():
    orders = [("a", 8, 1), ("a", 8, 2), ("a", 81), ("a", None, 8, 1), ("b", 8, 1)]
    assert len({order_of(*parts) for parts in orders}) == len(orders)
    assert order_of("a", 8, 1) == order_of("a", 8, 1)
    buckets = [[Bucket(8, 24)], [Bucket(8, 16)], None]
    assert len({order_of("a", some) for some in buckets}) == 3


def test_a_state_of_another_order_begins_anew(tiny, tmp_path, caplog):
    model = Classifier.from_pretrained(tiny.encoder, labels=["a", "b"], max_sequence_length=16)
    model.compile(optimizer=keras.optimizers.SGD(0.01))
    assert position_in(tmp_path, model, "new") == Position(order="new")
    model.optimizer.build(model.trainable_variables)
    for order, begun in (("", 3), ("new", 3), ("old", 0)):
        save_state(tmp_path, model, Position(7, 2, 3, {"window": 5}, {"a": 1}, order))
        found = position_in(tmp_path, model, "new")
        assert found == Position(7, 2, begun, {"window": 5}, {"a": 1}, "new")
        assert ("the batches come in another order" in caplog.text) == (begun == 0)
    found = position_in(tmp_path, model, "new", lambda at: dataclasses.replace(at, data={}))
    assert found == Position(7, 2, 3, {}, {"a": 1}, "new")
