import numpy as np
import pytest

from kbert.training.resumed_run import (
    at_epoch_begin,
    check_same_data,
    check_same_run,
    goes_on,
    kept_run,
    sha256_of_arrays,
)
from kbert.training.run_directory import write_config, write_json
from kbert.training.run_log import RunLog
from kbert.training.train_state import Position
from kbert.training.translation_config import TranslationConfig

CONFIG = TranslationConfig.from_dict({"train": "a.tsv", "output": "o", "epochs": 5})


def test_the_same_configuration_goes_on_from_anywhere(tmp_path):
    check_same_run(tmp_path, CONFIG)  # nothing was written yet
    write_config(CONFIG, tmp_path)
    check_same_run(tmp_path, CONFIG.with_values(resume=True, output="../o"))
    with pytest.raises(ValueError) as raised:
        check_same_run(tmp_path, CONFIG.with_values(epochs=6, seed=2))
    assert "Received: epochs=6 (it had 5), seed=2 (it had 1). Set allow_" in str(raised.value)


def test_another_configuration_goes_on_where_that_is_allowed(tmp_path, caplog):
    write_config(CONFIG, tmp_path)
    changed = CONFIG.with_values(allow_config_change=True, epochs=6)
    assert check_same_run(tmp_path, changed) == ["epochs"]
    assert "goes on with another configuration: epochs=6 (it had 5)" in caplog.text


def test_when_a_run_goes_on(tmp_path, capsys):
    config = CONFIG.with_values(output=str(tmp_path / "run"))
    assert goes_on(config) and kept_run(config, RunLog()) is None
    (tmp_path / "run.incomplete").mkdir()
    assert kept_run(config, RunLog()) == tmp_path / "run.incomplete"
    assert "goes on with what is in" in capsys.readouterr().err
    for values in ({"resume": False}, {"overwrite": True}):
        other = config.with_values(**values)
        assert not goes_on(other) and kept_run(other, RunLog()) is None


def test_the_same_data(tmp_path):
    assert check_same_data(tmp_path, "aa")
    write_json({"data_sha256": "aa"}, tmp_path / "report.json")
    assert check_same_data(tmp_path, "aa") and not check_same_data(tmp_path, "bb", True)
    with pytest.raises(ValueError, match="the same data as the run in .*others"):
        check_same_data(tmp_path, "bb")
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(ValueError, match="report.json must be JSON"):
        check_same_data(tmp_path, "aa")


def test_a_hash_of_examples():
    one = np.array([1, 2, 3], "int32")
    assert sha256_of_arrays(one, one) == sha256_of_arrays(one[::1], one.copy())
    # The same bytes, cut or named in another way.
    others = [(one,), (np.concatenate([one, one]),), (one, one.view("float32")), (one, one[:2])]
    assert len({sha256_of_arrays(one, one), *(sha256_of_arrays(*some) for some in others)}) == 5


def test_with_other_examples_an_epoch_begins_anew():
    assert at_epoch_begin(Position(7, 2, 1, told={"a": 1})) == Position(7, 2, 0, told={"a": 1})
