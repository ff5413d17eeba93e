"""The Keras-only rooms compute on JAX what they compute on TensorFlow, and train alike."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.jax_process import jax_command, jax_environment, skip_without_jax
from tests.parity import keras_program

pytestmark = pytest.mark.parity

# Each shape is compiled for one use: the compiler's care would cost more than it saves.
FLAGS = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
PROGRAM = """
import sys
from tests.parity.keras_program import main
main(*sys.argv[1:])
assert "tensorflow" not in sys.modules
"""


def run_on_both(part: str, folder: Path, repository: Path):
    """Backend -> name -> array: this process runs TensorFlow, another one JAX."""
    skip_without_jax()
    with open(folder / "output.txt", "w+") as output:
        with subprocess.Popen(
            jax_command(PROGRAM, str(folder / "jax.npz"), part),
            cwd=repository,
            env=jax_environment(XLA_FLAGS=FLAGS),
            stdout=output,
            stderr=output,
        ) as run:
            try:
                keras_program.main(str(folder / "tensorflow.npz"), part)
                run.wait(timeout=300)
            finally:
                run.kill()
        assert run.returncode == 0, (folder / "output.txt").read_text()[-3000:]
    found = {}
    for backend in ("tensorflow", "jax"):
        with np.load(folder / f"{backend}.npz") as arrays:
            found[backend] = dict(arrays)
        assert str(found[backend]["backend"]) == backend
    assert sorted(found["jax"]) == sorted(found["tensorflow"])
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, repository: Path):
    return run_on_both("outputs", tmp_path_factory.mktemp("outputs"), repository)


@pytest.fixture(scope="module")
def further_losses(tmp_path_factory: pytest.TempPathFactory, repository: Path):
    """Of trainings of several kinds, most of whose time is that of the compilers."""
    return run_on_both("further_losses", tmp_path_factory.mktemp("losses"), repository)


def pairs(results, prefix):
    names = [name for name in results["jax"] if name.startswith(prefix)]
    assert names
    return [(name, results["jax"][name], results["tensorflow"][name]) for name in names]


def test_all_layers_and_models_in_float32(results):
    compared = pairs(results, "float32/")
    assert len(compared) > 30
    for name, jax, tensorflow in compared:
        np.testing.assert_allclose(jax, tensorflow, rtol=1e-5, atol=1e-5, err_msg=name)


def test_bfloat16_is_close(results):
    # The backends round at other places; 8 bits are one part in 256, over two blocks.
    for name, jax, tensorflow in pairs(results, "bfloat16/"):
        room = 0.06 * max(1.0, np.abs(tensorflow).max())
        np.testing.assert_allclose(jax, tensorflow, rtol=0, atol=room, err_msg=name)


def check_numbers(results):
    # The third row of every batch is all padding.
    for backend in results.values():
        for name, array in backend.items():
            assert array.dtype.kind != "f" or np.isfinite(array).all(), name


def test_nothing_is_nan(results):
    check_numbers(results)


@pytest.mark.slow
def test_no_loss_is_nan(further_losses):
    check_numbers(further_losses)


@pytest.mark.slow
def test_training_gives_the_same_losses(tmp_path: Path, repository: Path):
    found = run_on_both("losses", tmp_path, repository)
    jax, tensorflow = (found[backend]["losses"] for backend in ("jax", "tensorflow"))
    assert len(jax) == 6 and jax[-1] < 0.9 * jax[0]
    np.testing.assert_allclose(jax, tensorflow, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_training_to_read_gives_the_same_losses(further_losses):
    jax, tensorflow = (further_losses[b]["losses_of_reading"] for b in ("jax", "tensorflow"))
    assert len(jax) == 4 and jax[-1] < 0.9 * jax[0]
    np.testing.assert_allclose(jax, tensorflow, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_training_to_write_gives_the_same_losses(further_losses):
    compared = pairs(further_losses, "losses_of_")
    assert len(compared) == 9  # with that of reading
    for name, jax, tensorflow in compared:
        assert jax[-1] < 0.99 * jax[0], name
        np.testing.assert_allclose(jax, tensorflow, rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_gradient_checkpointing_changes_no_loss(further_losses):
    for backend in further_losses.values():
        recomputed = backend["losses_with_checkpointing"]
        np.testing.assert_allclose(recomputed, backend["losses"], rtol=0, atol=1e-5)


@pytest.mark.slow
def test_training_in_mixed_precision_is_close(further_losses):
    jax, tensorflow = (further_losses[backend] for backend in ("jax", "tensorflow"))
    name = "losses_in_mixed_precision"
    np.testing.assert_allclose(jax[name], tensorflow[name], atol=0.05)
