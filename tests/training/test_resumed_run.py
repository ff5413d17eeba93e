import pytest

from kbert.training.resumed_run import check_same_data, check_same_run
from kbert.training.run_directory import write_config, write_json
from kbert.training.translation_config import TranslationConfig

CONFIG = TranslationConfig.from_dict({"train": "a.tsv", "output": "o", "epochs": 5})


def test_the_same_configuration_goes_on_from_anywhere(tmp_path):
    check_same_run(tmp_path, CONFIG)  # nothing was written yet
    write_config(CONFIG, tmp_path)
    check_same_run(tmp_path, CONFIG.with_values(resume=True, output="../o"))
    with pytest.raises(ValueError) as raised:
        check_same_run(tmp_path, CONFIG.with_values(epochs=6, seed=2))
    assert "Received: epochs=6 (it had 5), seed=2 (it had 1)" in str(raised.value)


def test_the_same_data(tmp_path):
    check_same_data(tmp_path, "aa")
    write_json({"data_sha256": "aa"}, tmp_path / "report.json")
    check_same_data(tmp_path, "aa")
    with pytest.raises(ValueError, match="the same data as the run in .*others"):
        check_same_data(tmp_path, "bb")
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(ValueError, match="report.json must be JSON"):
        check_same_data(tmp_path, "aa")
