import shutil
from pathlib import Path

import pytest

from kbert.cli.actions.model_kinds import (
    check_model,
    check_task_of_export,
    check_texts,
    columns_of,
    columns_to_read,
    inputs_of,
    is_export,
    task_of,
)
from kbert.options.kinds import config_text
from kbert.training.config.stages_config import StagesConfig
from kbert.training.runs.run_directory import write_config
from tests.serving.written_model import write_model


def test_what_may_be_asked(finished_run, tiny, tmp_path):
    export = write_model(tmp_path / "exports" / "topics" / "1")
    for path in (finished_run, finished_run / "model", tiny.encoder, "minilm-ner", "org/name"):
        check_model(path, exports=False)
    for path in (export, export.parent):
        check_model(path)
        assert is_export(path)
        with pytest.raises(ValueError, match="`RUN` must be a run .* which is an export"):
            check_model(path, exports=False)
    assert not is_export(tmp_path / "exports")
    with pytest.raises(FileNotFoundError, match=r"a folder of the models \['topics'\]: name one"):
        check_model(tmp_path / "exports")
    with pytest.raises(ValueError, match="`RUN` must be a checkpoint"):
        check_model(tmp_path / "exports", exports=False)


def test_the_address_of_a_server_is_no_model(tmp_path, monkeypatch):
    for address in ("grpc://127.0.0.1:8500", "http://localhost:8501/v1"):
        for path in (address, Path(address)):
            with pytest.raises(ValueError, match=f"Received: '{address}', an address; a server is"):
                check_model(path)
    monkeypatch.chdir(tmp_path)
    export = write_model(tmp_path / "odd:" / "topics" / "1")
    check_model(export.relative_to(tmp_path))


def test_the_task_of_an_export(finished_run, tmp_path):
    export = write_model(tmp_path / "1")
    (export / "assets.extra" / "kbert.json").write_text(
        '{"signatures": {}, "tasks": {"names": {}, "answers": {}}}'
    )
    check_task_of_export(export, "names")
    with pytest.raises(ValueError, match=r"one of \['names', 'answers'\].*Did you mean `answers`"):
        check_task_of_export(export, "answer")
    with pytest.raises(ValueError, match="`--task` must be given for an export of several"):
        check_task_of_export(finished_run, "names")


def test_the_inputs_of_a_model_before_it_is_loaded(finished_run, tiny, tmp_path):
    for model in (finished_run, finished_run / "model"):
        assert inputs_of(model) == ("text",)
    for model in (tiny.encoder, "minilm-ner", tmp_path / "model.keras"):
        assert inputs_of(model) is None
    export = write_model(tmp_path / "1")
    assert inputs_of(export) == ("text",)
    (export / "assets.extra" / "kbert.json").write_text(
        '{"signatures": {"pairs": {"inputs": [{"name": "text_a"}, {"name": "text_b"}]}}}'
    )
    assert inputs_of(export, "pairs") == ("text_a", "text_b")
    assert inputs_of(export) is None


def test_as_many_texts_as_a_model_reads():
    check_texts(("text",), [("a",), ("b",)], "`--text`")
    check_texts(("context", "choices"), [("a", "b", "c")], "stdin, line 1")
    for inputs, row, told in (
        (("text",), ("a", "b"), r"^`x`: the model reads one text \(--text\)\. Received: 2 texts"),
        (("text_a", "text_b"), ("a",), r"text_b \(--text-a with --text-b\)\. Received: 1 text:"),
        (("context", "choices"), ("a", "b"), r"two choices or more \(one row a line of stdin"),
    ):
        with pytest.raises(ValueError, match=told):
            check_texts(inputs, [row], "`x`")


def test_a_chain_is_of_the_task_of_its_last_stage(finished_run, tmp_path):
    chain = tmp_path / "chain"
    shutil.copytree(finished_run, chain / "topics")
    shutil.copytree(finished_run / "model", chain / "model")
    one = {"train": "a.tsv", "encoder": "e"}
    stages = {"papers": {"task": "pretraining", "text": ["*.txt"], "encoder": "e"}, "topics": one}
    write_config(StagesConfig.from_dict({"stages": stages, "output": "o"}), chain)
    (chain / "metrics.json").write_text("{}")
    check_model(chain, exports=False)
    assert task_of(chain) == task_of(finished_run) == "classification"
    assert columns_to_read(chain, ["text"]) == columns_to_read(finished_run, ["text"])
    given = {"text_a": None, "text_b": None, "label": None}
    assert columns_of(chain, given) == columns_of(finished_run, given) != {}


def test_columns_of_a_run_s_training(tmp_path):
    run = tmp_path / "run"
    (run / "model").mkdir(parents=True)
    config = {"train": "t.tsv", "encoder": "e", "output": "o", "text_a": "body", "label": "topic"}
    (run / "config.yaml").write_text(config_text(config))
    (run / "metrics.json").write_text("{}")
    assert columns_of(run) == {"text_a": "body", "text_b": None, "label": "topic"}
    assert columns_of(run, {"label": "3"}) == {"label": 3}
    labels = {"task": "multi-label", "label_separator": ";"}
    (run / "config.yaml").write_text(config_text({**config, **labels}))
    assert columns_of(run)["label_separator"] == ";"
    assert columns_of(tmp_path) == {}
