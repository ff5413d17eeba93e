"""The pages say what is there: options, links and commands."""

import argparse
import dataclasses
import importlib
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import typer

import kbert
from kbert.cli.main import app
from kbert.training.config.captioning_config import CaptioningConfig
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.multi_task_config import MultiTaskConfig
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.config.stages_config import StagesConfig
from kbert.training.config.translation_config import TranslationConfig

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

pytestmark = pytest.mark.skipif(
    not (ROOT / "README.md").exists(), reason="the tests run without the project's pages"
)


@pytest.mark.parametrize(
    "configuration, name",
    [
        (RunConfig, "training.md"),
        (TranslationConfig, "translation.md"),
        (PretrainingConfig, "pretraining.md"),
        (CaptioningConfig, "captioning.md"),
        (MultiTaskConfig, "transfer.md"),
        (StagesConfig, "transfer.md"),
    ],
)
def test_every_training_option_is_documented_with_its_default(configuration, name):
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    for option in dataclasses.fields(configuration):
        default = option.default
        if default is dataclasses.MISSING:
            default = option.default_factory()
        shown = "" if default is None else f"`{default}`".replace("|", "\\|")  # of a table
        assert f"| `{option.name}` | {shown} | {option.metadata['help']} |" in page


def name_of(page: Path) -> str:
    """A page in the names of the tests."""
    return page.relative_to(ROOT).as_posix()


def commands_of(page: Path) -> list[list[str]]:
    """The arguments of each `kbert` command in the code blocks of a page."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").split("\n")
    lines = [line for line in lines if re.match(r"(\S+/bin/)?kbert ", line)]
    words = [shlex.split(line, comments=True) for line in lines]
    ends = [[*some, "<"].index("<") for some in words]
    return [some[1:end] for some, end in zip(words, ends)]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_program_knows_the_words_of_each_command(page):
    """Read, not run: verbs, options and the types of their values."""
    program = typer.main.get_command(app)
    for verb, *arguments in commands_of(page):
        command = program.commands[verb]
        try:
            command.make_context(verb, list(arguments))
        except typer.Exit:
            pass  # --help
        except Exception as error:
            # typer brings click's classes along, or uses those of click, by its version.
            told = hasattr(error, "format_message")
            message = error.format_message() if told else repr(error)
            pytest.fail(f"kbert {verb} {' '.join(arguments)}: {message}")


def test_commands_are_found_and_wrong_ones_told(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\nkbert evaluate runs/a test.tsv \\\n    --split dev  # ours\n```\ntext\n\n"
        "```\n.venv/bin/kbert predict runs/a < in.txt > out.txt\nother\n```\nkbert not this\n"
    )
    assert commands_of(page) == [
        ["evaluate", "runs/a", "test.tsv", "--split", "dev"],
        ["predict", "runs/a"],
    ]
    page.write_text("```\nkbert evaluate runs/a --splitt dev\n```\n")
    with pytest.raises(pytest.fail.Exception, match="No such option"):
        test_the_program_knows_the_words_of_each_command(page)


class Taken(Exception):
    """A program took its arguments."""


def programs_of(page: Path) -> list[list[str]]:
    """The programs of this repository that a page runs, each with its arguments."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(r"python\s+((?:benchmarks|export|tpu)/\w+\.py[^`\n]*)", text)
    words = [shlex.split(line, comments=True) for line in found]
    return [some[: [*some, "<"].index("<")] for some in words]


WITH_PROGRAMS = [
    page for page in [*PAGES, ROOT / "export/README.md"] if page.exists() and programs_of(page)
]


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=name_of)
def test_programs_take_the_arguments_of_each_command(page, monkeypatch):
    """Begun, and ended when the arguments are read: what they do next takes long, or much data."""
    parse = argparse.ArgumentParser.parse_args

    def parse_and_end(parser, *arguments):
        parse(parser, *arguments)
        raise Taken

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_end)
    for name, *arguments in programs_of(page):
        if name.endswith("transfer_summary.py"):  # without a parser
            assert not arguments, name
            continue
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        monkeypatch.syspath_prepend(str((ROOT / name).parent))
        with pytest.raises(Taken):
            runpy.run_path(str(ROOT / name), run_name="__main__")


def test_programs_are_found_and_wrong_arguments_told(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("`python\nexport/export_model.py RUN models`\n```\npython tpu/a.py < b\n```\n")
    assert programs_of(page) == [["export/export_model.py", "RUN", "models"], ["tpu/a.py"]]
    page.write_text("`python export/export_model.py RUN models --nam sentiment --other`")
    with pytest.raises(SystemExit):
        test_programs_take_the_arguments_of_each_command(page, monkeypatch)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def headings_of(page: Path) -> set[str]:
    """The anchors that GitHub and the site give a page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = [title.lower() for title in re.findall(r"^#+ (.+)$", text, re.M)]
    return {re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_headings_that_are_there(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text(encoding="utf-8")):
        assert anchor in headings_of(page.parent / target if target else page), (target, anchor)


def test_headings_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A, `b` and c_d\n```sh\n# no heading\n```\n### Fine-tuning: speed\ntext\n")
    assert headings_of(page) == {"a-b-and-c_d", "fine-tuning-speed"}
    page.write_text("# Ours\n[there](#ours) [not there](page.md#theirs)\n")
    with pytest.raises(AssertionError, match="theirs"):
        test_links_lead_to_headings_that_are_there(page)


def is_there(name: str) -> bool:
    """Whether a dotted name leads to an object; one of an extra that is not installed counts."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        except ImportError as error:
            return "pip install" in str(error)
        for part in parts[end:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_names_of_the_package_are_there(page):
    if page.name == "CHANGELOG.md":
        pytest.skip("it names what there was")
    text = page.read_text(encoding="utf-8")
    names = set(re.findall(r"(?<![\w./-])kbert(?:\.[A-Za-z_]\w*)+", text)) - {"kbert.json"}
    assert [name for name in sorted(names) if not is_there(name)] == []


def test_a_name_that_is_not_there_is_told():
    assert is_there("kbert.serving.Client") and is_there("kbert.Bert.from_pretrained")
    assert not is_there("kbert.Bertha") and not is_there("kbert.Bert.from_nowhere")
    assert not is_there("kbert.text.nothing")


def test_what_others_are_shown_is_there():
    """The methods, verbs and options that docs/coming-from.md names beside those of others."""
    text = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    models = {"classifier": kbert.Classifier, "encoder": kbert.Bert, "translator": kbert.Translator}
    methods = re.findall(r"\b(classifier|encoder|translator)\.(\w+)", text)
    assert len(methods) > 5
    assert [(name, method) for name, method in methods if not hasattr(models[name], method)] == []

    program = typer.main.get_command(app)
    commands = re.findall(r"`kbert (\w+)([^`]*)`", text)
    assert len(commands) > 10
    for verb, rest in commands:
        known = {option for given in program.commands[verb].params for option in given.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known, verb

    table = text.split("here (`kbert train translation`)")[1].split("\n\n")[0]
    ours = {option for line in table.split("\n") for option in line.split("|")[2:3]}
    options = {name[2:].replace("-", "_") for name in re.findall(r"--[a-z][a-z-]+", " ".join(ours))}
    assert len(options) > 10
    assert options <= {field.name for field in dataclasses.fields(TranslationConfig)}


def test_the_readme_names_files_that_exist():
    for name in re.findall(r"`(kbert/[\w/]+\.(?:py|c))`", (ROOT / "README.md").read_text("utf-8")):
        assert (ROOT / name).is_file(), name
