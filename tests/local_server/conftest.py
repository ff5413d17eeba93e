"""Folders of models that the local server serves in these tests."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbert.local_server.limits import Limits
from kbert.local_server.server import LocalServer, ServerOptions
from kbert.serving.export.export import export
from tests.local_server.page_browser import browser, page  # noqa: F401  (fixtures)
from tests.local_server.page_models import Teller
from tests.serving.conftest import meter, meter_path, texts  # noqa: F401
from tests.serving.tiny_models import Chooser

FREE = {"rest_port": 0, "grpc_port": 0, "poll_seconds": 0.05}


@pytest.fixture(scope="session")
def chooser_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The version folder of a model that a server must not batch. Only to be read."""
    return export(Chooser(), tmp_path_factory.mktemp("choosers"))


@pytest.fixture(scope="session")
def tellers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of one model, which captions images. Only to be read."""
    folder = tmp_path_factory.mktemp("tellers")
    export(Teller(), folder)
    return folder


@pytest.fixture(scope="session")
def teller_server(tellers: Path) -> Iterator[LocalServer]:
    """A server of the model of images, without the page."""
    with LocalServer(tellers, ServerOptions(**FREE)) as running:
        yield running


@pytest.fixture(scope="module")
def base(
    meter_path: Path,  # noqa: F811
    chooser_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A folder of two models, one of them batched."""
    base = tmp_path_factory.mktemp("base")
    shutil.copytree(meter_path, base / "meter" / "1")
    shutil.copytree(chooser_path, base / "chooser" / "1")
    return base


@pytest.fixture(scope="module")
def server(base: Path) -> Iterator[LocalServer]:
    """A server of both, with the page, and with limits that tests can reach."""
    limits = Limits(max_request_bytes=100_000, max_concurrency=16, timeout=10.0)
    with LocalServer(base, ServerOptions(**FREE, web=True, limits=limits)) as running:
        yield running
