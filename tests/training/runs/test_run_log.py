import logging
import re
import warnings

import pytest

from kbert.training.runs.run_log import RunLog


def test_lines_go_to_stderr_and_to_the_file(tmp_path, capsys):
    log = RunLog()
    log.line("before")
    with log.writing(tmp_path / "log.txt"):
        log.line("one\ntwo")
    log.line("after")
    written = capsys.readouterr()
    assert written.err == "before\none\ntwo\nafter\n" and written.out == ""
    lines = (tmp_path / "log.txt").read_text().splitlines()
    assert [line.split("  ")[1] for line in lines] == ["before", "one", "two"]
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  ", line) for line in lines)


def test_warnings_become_lines(capsys):
    log = RunLog()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with log.listening():
            warnings.warn("a label occurs once", stacklevel=1)
    assert log.warnings == ["a label occurs once"]
    assert capsys.readouterr().err == "UserWarning: a label occurs once\n"


def test_what_kbert_logs_as_a_warning_becomes_a_line(capsys):
    log, logger = RunLog(), logging.getLogger("kbert.pipelines.saved_pipeline")
    with log.listening():
        logger.warning("%s has no %s", "it", "head")
        logger.info("not this")
        logging.getLogger("other.package").error("nor this")
    logger.warning("nor this, which comes later")
    assert log.warnings == ["it has no head"]
    assert capsys.readouterr().err.startswith("Warning: it has no head\n")


def test_a_run_within_another_logs_a_warning_once(capsys):
    """As those of seeds, grids and stages: each has a log of its own."""
    outer, inner, logger = RunLog(), RunLog(), logging.getLogger("kbert.training.seeds")
    with outer.listening():
        logger.warning("before")
        with inner.listening(), inner.listening():
            logger.warning("within")
        logger.warning("behind")
        with pytest.raises(KeyError), inner.listening():
            raise KeyError
        logger.warning("at the end")
    logger.warning("not this")
    assert inner.warnings == ["within"] and outer.warnings == ["before", "behind", "at the end"]
    told = capsys.readouterr().err
    assert [told.count(one) for one in ("Warning: within", "Warning: behind")] == [1, 1]
