"""Facts of an installation, from fixed files and a made-up distribution."""

import pwd
from importlib import metadata
from pathlib import Path

import pytest

import kbert
from kbert.cli.actions import installation

CPUS = """processor\t: 0
model name\t: A processor
flags\t\t: fpu sse2 avx2 avx512f avx_vnni
processor\t: 1
model name\t: A processor
flags\t\t: fpu sse2 avx2 avx512f avx_vnni
"""


def test_versions_are_those_of_the_distributions():
    found = installation.versions()
    assert found["kbert"] == kbert.__version__
    assert found["keras"] == metadata.version("keras")


def test_nobody_has_a_home(monkeypatch):
    def unknown(user):
        raise KeyError(user)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for variable in ("HOME", "KERAS_HOME", "KERAS_BACKEND"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(RuntimeError):
        Path.home()
    assert installation.keras_backend() == "tensorflow"


@pytest.mark.parametrize(
    "variable, file, backend",
    [
        (None, None, "tensorflow"),
        (None, '{"backend": "jax"}', "jax"),
        ("tensorflow", '{"backend": "jax"}', "tensorflow"),
        (None, "no JSON", "tensorflow"),
    ],
)
def test_the_backend_is_chosen_as_keras_does(tmp_path, monkeypatch, variable, file, backend):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    if variable:
        monkeypatch.setenv("KERAS_BACKEND", variable)
    if file:
        (tmp_path / "keras.json").write_text(file)
    assert installation.keras_backend() == backend


def test_flags_and_memory_of_linux(tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text(CPUS)
    (tmp_path / "meminfo").write_text("MemTotal:  2048 kB\nMemAvailable:   1024 kB\n")
    monkeypatch.setattr(installation, "_CPUS", tmp_path / "cpuinfo")
    monkeypatch.setattr(installation, "_MEMORY", tmp_path / "meminfo")
    found = installation.machine()
    assert found["cpu"]["name"] == "A processor"
    there = {name for name, flag in found["cpu"]["flags"].items() if flag}
    assert there == {"AVX2", "AVX-512", "VNNI"}
    assert found["memory"] == {"free": 1024**2, "total": 2 * 1024**2}


def test_where_the_files_of_linux_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(installation, "_CPUS", tmp_path / "none")
    monkeypatch.setattr(installation, "_MEMORY", tmp_path / "none")
    found = installation.machine()
    assert found["cpu"]["flags"] is None and found["memory"] == {"free": None, "total": None}
    assert found["disk"]["free"] > 0


def distribution(folder, monkeypatch, required):
    """Puts a distribution of kbert's name first on the path, which requires other packages."""
    place = folder / "kbert_tf-9.dist-info"
    place.mkdir()
    lines = ["Metadata-Version: 2.1", "Name: kbert-tf", "Version: 9", "Provides-Extra: more"]
    lines += [f"Requires-Dist: {one}" for one in required]
    (place / "METADATA").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(folder))


def test_packages_that_fit(tmp_path, monkeypatch):
    more = 'no-such-package>=1; extra == "more"'
    distribution(tmp_path, monkeypatch, ["numpy>=2", "typer", more])
    found, extras, wrong = installation.packages()
    assert found == {"numpy": metadata.version("numpy"), "typer": metadata.version("typer")}
    assert (extras, wrong) == ({"more": ["no-such-package"]}, [])


def test_packages_that_do_not_fit(tmp_path, monkeypatch):
    distribution(tmp_path, monkeypatch, ["numpy>=99", "no-such-package", "typer"])
    found, _, wrong = installation.packages()
    assert found["no-such-package"] is None
    assert wrong == [
        f"numpy>=99 must be installed. Received: {metadata.version('numpy')}",
        "no-such-package must be installed. Received: none",
    ]


def test_without_a_distribution(monkeypatch):
    monkeypatch.setattr(installation, "DISTRIBUTION", "kbert-that-is-not-installed")
    assert installation.packages() == ({}, {}, [])
