"""The site of docs/: every page has a place in it, and every public name a page."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
import yaml

import kbert
import kbert.keras_names
from kbert.cli.main import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"

pytestmark = pytest.mark.skipif(
    not (ROOT / ".mkdocs.yml").exists(), reason="the tests run without the project's pages"
)


class Settings(yaml.SafeLoader):
    """Reads settings whose Python objects do not matter here."""


Settings.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """docs/site_pages.py, which MkDocs loads by its path too."""
    spec = importlib.util.spec_from_file_location("site_pages", DOCS / "site_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def navigation(pages: ModuleType) -> list[str]:
    """The pages of the site, in the order of its navigation."""
    nav = yaml.load((ROOT / ".mkdocs.yml").read_text(encoding="utf-8"), Settings)["nav"]
    pages.complete(nav)
    return list(paths_of(nav))


def paths_of(nav: Any) -> Iterator[str]:
    """The pages of a navigation, in their order."""
    if isinstance(nav, str):
        yield nav
    else:
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from paths_of(item)


def test_the_navigation_names_each_page_once(pages):
    files = [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]
    there = {path.relative_to(DOCS).with_suffix(".md").as_posix() for path in files}
    named = [path for path in navigation(pages) if not path.startswith("reference/")]
    assert sorted(named) == sorted(there | set(pages.OTHER_PAGES.values()))
    assert [source for source in pages.OTHER_PAGES if not (ROOT / source).is_file()] == []


def test_the_reference_has_a_page_for_each_public_name(pages):
    texts = dict(pages.reference_pages())
    for name in set(kbert.__all__) - {"__version__"}:
        assert f"::: kbert.{name}\n" in texts[f"reference/{name}.md"]
        assert f"[kbert.{name}]({name}.md) | " in texts["reference/index.md"]


def test_the_reference_shows_all_layers_and_losses(pages):
    shown = {module for names in pages.PARTS.values() for module in pages.modules_of(names)}
    rooms = ("layers.", "optimization.")
    registered = [module for module in kbert.keras_names.NAMES if module.startswith(rooms)]
    assert len(registered) > 10
    assert [module for module in registered if f"kbert.{module}" not in shown] == []


def test_the_methods_that_pages_show_are_there(pages):
    shown = [name for name in pages.INHERITED if hasattr(kbert.Classifier, name)]
    shown += [name for name in pages.INHERITED if hasattr(kbert.Bert, name)]
    assert set(shown) == set(pages.INHERITED)


def test_the_reference_has_each_verb_and_option(pages):
    text = dict(pages.reference_pages())["reference/program.md"]
    for verb, command in typer.main.get_command(app).commands.items():
        section = text.split(f"\n## kbert {verb}\n")[1].split("\n## ")[0]
        assert command.help.split("\n")[0] in section
        for option in command.params:
            assert option.param_type_name == "argument" or f"`{option.opts[0]}`" in section
    assert "| `--rest-port` | `8501` | REST's port; 0 picks a free one. |" in text
    assert "\n    kbert serve exports/topics --web\n" in text


def test_each_part_of_the_reference_has_modules(pages):
    for title, patterns in pages.PARTS.items():
        for pattern in patterns:
            assert pages.modules_of((pattern,)), (title, pattern)


def test_the_navigation_leads_to_each_page_of_the_reference(pages):
    named = [path for path in navigation(pages) if path.startswith("reference/")]
    assert sorted(named) == sorted(path for path, _ in pages.reference_pages())


def test_links_within_the_project_become_links_within_the_site(pages):
    text = "[docs/ner.md](docs/ner.md) [more](docs/benchmarks/index.md#import) [x](https://a.b/c)"
    assert pages.relinked(text, "README.md") == (
        "[Named entities](ner.md) [more](benchmarks/index.md#import) [x](https://a.b/c)"
    )
    text = "[Install](../README.md#install), [export/README.md](../export/README.md)"
    title = (ROOT / "export" / "README.md").read_text(encoding="utf-8").split("\n")[0][2:]
    assert pages.relinked(text, "docs/export.md") == (
        f"[Install](index.md#install), [{title}](deployment.md)"
    )
    assert pages.relinked("[x](../ner.md)", "docs/benchmarks/index.md") == "[x](../ner.md)"
    assert pages.relinked("[x](docs/notebooks/a.ipynb)", "README.md") == "[x](notebooks/a.md)"
    assert pages.relinked("[x](setup.cfg)", "README.md") == "[x](setup.cfg)"


def test_what_github_reads_is_written_for_markdown(pages):
    text = "Words:\n- a\n- b\n\n| `x\\|y` | z \\| |\n```\ncode\n- no list\n```\n- c\n  d\n- e"
    assert pages.as_on_github(text) == (
        "Words:\n\n- a\n- b\n\n| `x|y` | z \\| |\n```\ncode\n- no list\n```\n\n- c\n  d\n- e"
    )


def test_a_notebook_is_a_page_with_what_it_printed(pages, tmp_path):
    code = {"cell_type": "code", "source": ["1 + 1"], "outputs": []}
    code["outputs"] = [{"text": ["two\n"]}, {"data": {"text/plain": ["2"]}}]
    cells = [{"cell_type": "markdown", "source": ["# Title\n", "text"]}, code]
    (tmp_path / "sum.ipynb").write_text(json.dumps({"cells": cells}))
    assert pages.notebook_page(tmp_path / "sum.ipynb") == (
        "# Title\ntext\n\n```python\n1 + 1\n```\n\n``` { .text .output .no-copy }\ntwo\n```\n\n"
        "``` { .text .output .no-copy }\n2\n```\n\n[This page as a notebook](sum.ipynb)\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_as_it_stands(path, minilm_directory, tmp_path):
    """Its cells one after the other in a fresh process; each of them shows what it did."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (tmp_path / "cells.py").write_text("\n".join(code))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "cells.py"]
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    right, asked = re.search(r"^(\d+) of (\d+) (?:right|word for word)", done.stdout, re.M).groups()
    assert int(right) / int(asked) > 0.7
    stored = [output for cell in cells for output in cell.get("outputs", ())]
    assert stored and all(output["output_type"] != "error" for output in stored)


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    program = ROOT / ".venv" / "docs" / "bin" / "mkdocs"
    if not program.exists():
        program = shutil.which("mkdocs")
    if program is None:
        pytest.skip("needs mkdocs; `make docs` installs it")
    settings = ["--config-file", ".mkdocs.yml", "--site-dir", str(tmp_path)]
    subprocess.run([program, "build", "--strict", *settings], cwd=ROOT, check=True)
    assert "Classifier" in (tmp_path / "reference" / "Classifier.html").read_text(encoding="utf-8")
    assert (tmp_path / "search" / "search_index.json").stat().st_size > 100_000
    for page in ("index.html", "404.html"):  # a screen reader says a dialog's name
        assert 'role="dialog" aria-label="Search"' in (tmp_path / page).read_text("utf-8")
