"""All checks of an export as one."""

import random
import shutil
from pathlib import Path

import pytest

import kbert
from kbert.export_check.check import check
from tests.c_compiler import needs_compiler
from tests.small_captioner import small_captioner

NAMES = [
    *("files", "ops", "python", "xla", "paths", "devices", "batch_dimension", "weights", "size"),
    *("metadata", "batching", "warmup", "golden_file"),
]


@needs_compiler
def test_a_classifier(exported_path: Path, programs: Path):
    report = check(exported_path.parent, folder=programs)
    assert list(report.lines()) and report.problems == []
    assert report.passed(strict=True)
    run = ["python_run", "session_run", "same_answers", "golden_answers", "bad_requests"]
    assert [one.name for one in report.checks] == [*NAMES, *run]
    assert report.facts["least_server"] == {"by_ops": "2.16", "promised": "2.20"}
    assert (report.path, report.server) == (exported_path, "2.20")
    assert report.facts["bytes"]["graph"] == (exported_path / "saved_model.pb").stat().st_size


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("kind", ["soft", "image"])
def test_a_captioner(kind: str, tmp_path: Path, programs: Path):
    path = kbert.export(small_captioner(kind, beam_size=2), tmp_path, "captions")
    report = check(path.parent, folder=programs)
    assert list(report.lines()) and report.problems == []
    assert report.passed(strict=True)
    names = {one.name for one in report.checks}
    assert {"session_run", "same_answers", "golden_answers", "bad_requests"} <= names


def test_the_files_alone(meter: Path):
    report = check(meter, run=False)
    assert [one.name for one in report.checks] == NAMES
    assert report.passed(strict=True)


def test_an_older_server(meter: Path):
    report = check(meter, server="2.18", run=False)
    assert report.server == "2.18"
    (told,) = report.problems
    assert "does not promise that the older 2.18 reads it" in told
    with pytest.raises(ValueError, match="`server` must be a version of TF Serving"):
        check(meter, server="new", run=False)


def test_damage_anywhere_is_no_crash(meter_path: Path, tmp_path: Path):
    """One byte of a file is another one, or its end is missing: a report comes all the same."""
    draw = random.Random(3)
    names = sorted(f.relative_to(meter_path) for f in meter_path.rglob("*") if f.is_file())
    found = 0
    for number in range(24):
        folder = shutil.copytree(meter_path, tmp_path / str(number) / "1")
        file = folder / names[number % len(names)]
        content = bytearray(file.read_bytes())
        place = draw.randrange(len(content))
        if draw.random() < 0.3:
            content = content[:place]
        else:
            content[place] = draw.randrange(256)
        file.write_bytes(content)
        found += bool(check(folder, run=False).problems)
        shutil.rmtree(folder)
    # Some bytes say nothing that can be checked without running: a text's letter, a card's word.
    assert found > 10


def test_what_is_no_export(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="`path` must be an export"):
        check(tmp_path)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"\xff")
    report = check(tmp_path / "1")
    assert [one.name for one in report.checks] == ["files"]
    assert "must be a SavedModel" in report.problems[0]
