"""The pages say what is there: options, links and commands."""

import dataclasses
import re
from pathlib import Path

import pytest

from kbert.training.run_config import RunConfig

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

pytestmark = pytest.mark.skipif(
    not (ROOT / "README.md").exists(), reason="the tests run without the project's pages"
)


def test_every_training_option_is_documented_with_its_default():
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    for option in dataclasses.fields(RunConfig):
        default = option.default
        if default is dataclasses.MISSING:
            default = option.default_factory()
        shown = "" if default is None else f"`{default}`"
        assert f"| `{option.name}` | {shown} | {option.metadata['help']} |" in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_readme_names_files_that_exist():
    for name in re.findall(r"`(kbert/[\w/]+\.(?:py|c))`", (ROOT / "README.md").read_text("utf-8")):
        assert (ROOT / name).is_file(), name
