from pathlib import Path

import pytest

from kbert.checkpoints.captioning_folder import CONFIG
from kbert.cli.actions.portable_formats import check_portable


def check(format="onnx", runs=("minilm-ner",), base="networks", name=None, **options):
    given = {f"--{key}": value for key, value in options.items()}
    return check_portable(format, [Path(run) for run in runs], (Path(base), name), given)


def test_the_folder_to_write(tmp_path, finished_translation):
    assert check(base=tmp_path) == tmp_path / "minilm-ner"
    assert check(runs=(finished_translation,), base=tmp_path) == tmp_path / "finished"
    assert check("litert", base=tmp_path, name="names", precision="float32", keep=None) == (
        tmp_path / "names"
    )


def test_what_is_wrong_is_named(tmp_path, finished_translation):
    with pytest.raises(ValueError, match="savedmodel, onnx, litert. .*'onx'. Did you mean `onnx`"):
        check("onx")
    with pytest.raises(ValueError, match="`--precision` must be left out .*: int8"):
        check(precision="int8")
    with pytest.raises(ValueError, match="`--keep` must be left out with `--format onnx`.*: 3"):
        check(keep=3)
    with pytest.raises(ValueError, match="must be one model .* a run on the tasks a, b"):
        check(runs=("runs/a", "runs/b"))
    with pytest.raises(ValueError, match="of translation, which searches word by word"):
        check("litert", runs=(finished_translation,))
    (tmp_path / CONFIG).write_text("{}")
    with pytest.raises(ValueError, match="another task .* of captioning, which searches word by"):
        check(runs=(tmp_path,))
    (tmp_path / "minilm-ner").mkdir()
    with pytest.raises(FileExistsError, match="`BASE/NAME` must not be there yet"):
        check(base=tmp_path)
