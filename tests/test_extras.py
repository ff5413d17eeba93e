"""Installing: the distribution's name, and that each error and page names an extra that exists."""

import ast
import configparser
import re
from importlib.metadata import PackageNotFoundError, requires

import pytest

from kbert.extras import DISTRIBUTION, install_extra


def test_how_an_extra_is_installed():
    told = install_extra("serving")
    assert told.startswith('pip install ".[serving]" in a clone')
    assert 'pip install "kbert-tf[serving] @ git+URL"' in told


def settings(repository):
    found = configparser.ConfigParser()
    found.read(repository / "setup.cfg", encoding="utf-8")
    return found


def test_the_distribution_is_that_of_setup_cfg(repository, in_checkout):
    in_checkout("setup.cfg")
    assert settings(repository)["metadata"]["name"] == DISTRIBUTION


def test_errors_name_extras_that_exist(repository, in_checkout):
    in_checkout("setup.cfg")
    extras = set(settings(repository)["options.extras_require"])
    calls = [
        (path, node.args[0].value)
        for path in sorted(in_checkout("kbert").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "install_extra"
        and node.args[0].value != "NAME"  # of any extra
    ]
    assert len(calls) >= 10
    assert [call for call in calls if call[1] not in extras] == []


def test_nothing_installs_another_projects_kbert(repository, in_checkout):
    in_checkout("README.md")
    folders = ("kbert", "docs", "export", "benchmarks", "tpu")
    files = [path for name in folders for path in (repository / name).rglob("*")]
    files += [*repository.glob("*.md"), repository / "Makefile"]
    foreign = re.compile(r"""pip install (?:-\S+ )*["']?kbert(?![\w-])""")
    assert foreign.search("pip install 'kbert[bpe]'") and foreign.search("pip install kbert")
    assert not foreign.search('pip install "kbert-tf[bpe] @ git+URL"')
    found = [
        f"{path}: {match[0]}"
        for path in files
        if path.suffix in (".py", ".md", ".sh", "") and path.is_file()
        for match in foreign.finditer(path.read_text(encoding="utf-8"))
        if path.name != "extras.py"  # which says so
    ]
    assert found == []


def test_plain_installs_carry_neither_model_garden_nor_data_sets():
    try:
        required = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        pytest.skip("kbert is not installed, only found on the path")
    plain = {re.split(r"[^\w.-]", one)[0] for one in required if "extra ==" not in one}
    assert "tensorflow-text" in plain
    assert not plain & {"tf-models-official", "tensorflow-datasets", "datasets", "torch"}
