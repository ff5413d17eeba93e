from types import SimpleNamespace

import pytest

from kbert.training.config.translation_config import TranslationConfig
from kbert.training.runs.run_directory import REPORT, write_config, write_json
from kbert.training.runs.run_log import RunLog
from kbert.training.several_runs import begin_parts, changed_examples

CONFIG = TranslationConfig.from_dict({"train": "a.tsv", "output": "o", "seeds": 3})
DATA = SimpleNamespace(hashes={"data_sha256": "aa", "test_sha256": "bb"})


def part(number, **values):
    return CONFIG.with_values(seed=number, seeds=1, output=f"elsewhere/{number}", **values)


PARTS = {f"seed-{number}": part(number) for number in (1, 2, 3)}


@pytest.fixture
def folder(tmp_path):
    """Parts 1 and 2 are finished, the third is not."""
    for name, wanted in PARTS.items():
        path = tmp_path / (name + ".incomplete" * (name == "seed-3"))
        path.mkdir()
        write_config(wanted, path)
    (tmp_path / "model").mkdir()
    return tmp_path


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def begin(folder, parts, **how):
    begin_parts(folder, CONFIG, DATA, parts, RunLog(), **{"changed": False, **how})
    return names(folder)


def test_what_is_of_the_same_stays(folder):
    assert begin(folder, PARTS) == ["model", "seed-1", "seed-2", "seed-3.incomplete"]
    begin(folder, {**PARTS, "seed-4": part(4)}, together=True)  # more of them change nothing
    assert names(folder) == ["model", "seed-1", "seed-2", "seed-3.incomplete"]


def test_what_is_of_other_options_goes(folder, capsys):
    parts = {**PARTS, "seed-2": part(2, epochs=7), "seed-3": part(3, epochs=7)}
    assert begin(folder, parts) == ["model", "seed-1"]
    told = capsys.readouterr().err
    assert "seed-2 is of other options or data: it does not count" in told
    assert "seed-1 is" not in told


@pytest.mark.parametrize("together", [False, True])
def test_runs_do_not_depend_on_their_curves_and_states(folder, together):
    """Neither does the one that is not finished: it goes on, with a warning."""
    way = {"tensorboard": True, "save_every": 9}
    parts = {name: part(number, **way) for number, name in enumerate(PARTS, start=1)}
    whole = ["model", "seed-1", "seed-2", "seed-3.incomplete"]
    assert begin(folder, parts, together=together) == whole


def test_of_parts_that_lost_their_models_one_that_is_not_finished_goes_alone(folder):
    parts = {**PARTS, "seed-3": part(3, epochs=7)}
    assert begin(folder, parts, together=True) == ["model", "seed-1", "seed-2"]


def test_where_the_point_under_way_is_left_out_the_finished_ones_stay(folder):
    parts = {name: PARTS[name] for name in ("seed-1", "seed-2")}
    assert begin(folder, parts, together=True) == ["model", "seed-1", "seed-2"]


def test_what_has_no_part_any_more_goes(folder):
    assert begin(folder, {"seed-1": PARTS["seed-1"]}) == ["model", "seed-1"]


def test_of_parts_that_lost_their_models_none_stays_where_one_has_to_go(folder):
    parts = {**PARTS, "seed-1": part(1, epochs=7)}
    assert begin(folder, parts, together=True) == []


def test_with_other_examples_all_go(folder):
    assert begin(folder, PARTS, changed=True) == ["model"]


def test_other_examples_are_told(tmp_path):
    assert not changed_examples(None, CONFIG, DATA)
    write_json(DATA.hashes, tmp_path / REPORT)
    assert not changed_examples(tmp_path, CONFIG, DATA)
    others = SimpleNamespace(hashes={**DATA.hashes, "test_sha256": "cc"})
    with pytest.raises(ValueError, match="others to be tested on; the files have changed since"):
        changed_examples(tmp_path, CONFIG, others)
    assert changed_examples(tmp_path, CONFIG.with_values(allow_config_change=True), others)
