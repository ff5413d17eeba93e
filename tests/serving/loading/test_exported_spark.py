"""Spark runs the example of docs/batch-inference.md; pyspark is not among the test requirements."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kbert.serving.loading.exported import Exported


@pytest.mark.slow
def test_the_example_answers_each_row(exported: Exported, repository: Path, tmp_path: Path):
    pytest.importorskip("pyspark", reason="no Spark: pip install pyspark")
    pandas = pytest.importorskip("pandas")
    if shutil.which("java") is None:
        pytest.skip("no Java, which Spark runs in")
    page = (repository / "docs" / "batch-inference.md").read_text(encoding="utf-8")
    program = page.partition("## In Spark")[2].partition("```python\n")[2].partition("```")[0]
    assert "mapInPandas" in program and '"exports/topics"' in program
    texts = ["a good film", "bad", "the very best é"]
    (tmp_path / "mails1.txt").write_text("\n".join(texts[:2]), encoding="utf-8")
    (tmp_path / "mails2.txt").write_text(texts[2], encoding="utf-8")
    subprocess.run(
        [sys.executable, "-c", program.replace("exports/topics", str(exported.path))],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(repository), "PYSPARK_PYTHON": sys.executable},
        check=True,
        timeout=600,
    )
    found = pandas.read_parquet(tmp_path / "answers").set_index("text")
    for text, answer in zip(texts, exported.answers(texts)):
        assert found.loc[text, "label"] == answer["label"]
        assert found.loc[text, "score"] == pytest.approx(answer["score"], abs=1e-5)
    assert len(found) == len(texts)
