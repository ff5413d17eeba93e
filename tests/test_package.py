"""The package itself: public names, what `import kbert` loads, and the version."""

import configparser
import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest

import kbert
import kbert.layers
from kbert.extras import DISTRIBUTION

PUBLIC_NAMES = sorted(name for name in kbert.__all__ if name != "__version__")

# Optional or slow packages that `import kbert` must not load.
HEAVY = (
    "torch",
    "transformers",
    "jax",
    "official",
    "matplotlib",
    "sklearn",
    "tensorflow_datasets",
    "tensorflow_hub",
)


# What is imported, one after the other in one process, and what must not be there afterwards.
STEPS = [
    ("kbert", {*HEAVY, "tensorflow", "keras", "numpy"}),
    ("kbert.layers", {*HEAVY, "tensorflow", "keras", "numpy"}),
    # The command line makes its options from these, also for --help.
    ("kbert.training.config.finetuning_config", {"tensorflow", "keras", "numpy"}),
    ("kbert.training.config.translation_config", {"tensorflow", "keras", "numpy"}),
    ("kbert.training.config.pretraining_config", {"tensorflow", "keras", "numpy"}),
    ("kbert.tasks.pretraining.objectives", {"tensorflow", "keras", "numpy"}),
    ("kbert.serving.format.version_folders", {"tensorflow", "keras", "numpy"}),
    ("kbert.serving.format.version_folders", {"tensorflow", "keras", "numpy"}),
    ("kbert.serving.format.servable", {"tensorflow", "keras", "numpy"}),
    ("kbert.checkpoints.read_checkpoint", {"tensorflow", "tf_keras", "keras"}),
]
# Keras itself probes jax where it is installed: only what kbert adds to these counts.
GROUND = ["keras", "tensorflow", "tensorflow_text"]
PROGRAM = """
import importlib, json, sys

found = []
for modules in json.loads(sys.argv[1]):
    for module in modules:
        importlib.import_module(module)
    found.append(sorted({name.split(".")[0] for name in sys.modules}))
import kbert
for name in kbert.__all__:
    getattr(kbert, name)
found.append(sorted({name.split(".")[0] for name in sys.modules}))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def loaded() -> list[set[str]]:
    """The top-level modules of a fresh Python after each step, the ground, and all public names."""
    steps = [[module] for module, _ in STEPS] + [GROUND]
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(steps)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return [set(names) for names in json.loads(run.stdout.splitlines()[-1])]


@pytest.mark.parametrize("step", range(len(STEPS)), ids=[module for module, _ in STEPS])
def test_what_a_module_does_not_load(step, loaded):
    _, heavy = STEPS[step]
    assert not loaded[step] & heavy


def test_every_public_name_loads_nothing_optional(loaded):
    *_, ground, public = loaded
    assert "tensorflow" in ground and "tensorflow_text" in public
    assert not (public - ground) & set(HEAVY)


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_public_name_is_what_its_module_holds(name):
    value = getattr(kbert, name)
    assert value.__name__ == name
    assert value.__module__ == kbert._MODULE_OF[name]
    assert value.__doc__


def test_all_names_stand_in_dir_and_in_the_table():
    assert set(kbert.__all__) == {*kbert._MODULE_OF, "__version__"}
    assert dir(kbert) == sorted(kbert.__all__)


@pytest.mark.parametrize("given, level", [({}, "3"), ({"TF_CPP_MIN_LOG_LEVEL": "0"}, "0")])
def test_log_lines_of_tensorflow_are_off_unless_asked_for(given, level):
    others = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    program = "import kbert, os; print(os.environ['TF_CPP_MIN_LOG_LEVEL'])"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**others, **given}
    )
    assert run.stdout.strip() == level


def test_log_lines_of_a_tensorflow_that_is_loaded_are_left_alone():
    program = (
        "import os, sys; os.environ.pop('TF_CPP_MIN_LOG_LEVEL', None); "
        "sys.modules['tensorflow'] = None; import kbert; "
        "print(os.environ.get('TF_CPP_MIN_LOG_LEVEL'))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "None"


def test_layers_by_their_names():
    """The table is that of the names in Keras, so its names are the registered layers."""
    assert dir(kbert.layers) == kbert.layers.__all__ == sorted(kbert.layers._modules())
    assert {"SelfAttention", "CrossAttention", "EncoderBlock"} < set(kbert.layers.__all__)
    for name in kbert.layers.__all__:
        value = getattr(kbert.layers, name)
        assert (value.__name__, value.__module__) == (name, kbert.layers._modules()[name])
    with pytest.raises(AttributeError, match="module 'kbert.layers' has no attribute 'Atention'"):
        kbert.layers.Atention


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'kbert' has no attribute 'Brt'") as error:
        kbert.Brt
    assert (error.value.name, error.value.obj) == ("Brt", kbert)  # Python names the nearest


def test_installed_version_is_the_version_of_the_source():
    try:
        installed = version(DISTRIBUTION)
    except PackageNotFoundError:
        pytest.skip("kbert is not installed, only found on the path")
    assert installed == kbert.__version__


def test_every_file_is_part_of_the_wheel(repository, in_checkout):
    """What is not Python is packed only where setup.cfg names it, by the package it lies below."""
    root = in_checkout("kbert")  # what was installed is packed already
    settings = configparser.ConfigParser()
    settings.read(repository / "setup.cfg", encoding="utf-8")
    rules = {key: text.split() for key, text in settings["options.package_data"].items()}
    others = [
        file
        for file in root.rglob("*")
        if file.is_file() and file.suffix != ".py" and "__pycache__" not in file.parts
    ]
    assert len(others) > 10
    packed = {
        file
        for package in {start.parent for start in root.rglob("__init__.py")}
        for name in (".".join(package.relative_to(repository).parts), "*")
        for pattern in rules.get(name, [])
        for file in package.glob(pattern)
    }
    assert not sorted(set(others) - packed)
