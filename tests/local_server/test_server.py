"""A server begins, answers over both protocols, and ends in order."""

import asyncio
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from kbert.local_server.limits import Limits
from kbert.local_server.model_store import ModelStore
from kbert.local_server.server import LocalServer, ServerOptions, listening
from kbert.serving.client.client import Client
from kbert.serving.client.server_errors import Overloaded, Retries
from kbert.serving.export.export import export
from tests.local_server.conftest import FREE
from tests.local_server.page_models import Sorter


@pytest.mark.parametrize("protocol", ["rest", "grpc"])
def test_the_client_gets_answers(server: LocalServer, protocol: str):
    url = server.rest_url if protocol == "rest" else server.grpc_url
    with Client(url, "meter", max_batch_size=4) as client:
        assert client.status() == {1: "AVAILABLE"} and client.is_ready()
        found = client.predict({"text": ["a", b"\xff\0", "größer", "x" * 30]})
        assert found["length"].tolist() == [1, 2, 8, 30]
        assert found["label"].tolist() == [b"short", b"short", b"short", b"long"]


def test_it_listens_on_loopback_unless_told_otherwise(server: LocalServer):
    assert ServerOptions().host == "127.0.0.1"
    assert server.rest_url.startswith("http://127.0.0.1:")
    assert server.grpc_url.startswith("grpc://127.0.0.1:")


def test_options():
    with pytest.raises(ValueError, match="`poll_seconds` must be positive"):
        ServerOptions(poll_seconds=0)
    with pytest.raises(ValueError, match="`rest_port` must be from 0 to 65535"):
        ServerOptions(rest_port=-1)


def test_a_port_that_is_taken(base: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for name, protocol in (("rest", "REST"), ("grpc", "gRPC")):
            options = {**FREE, f"{name}_port": taken.getsockname()[1]}
            message = (
                rf"The {protocol} port [0-9]+ of 127.0.0.1 cannot be used: .*\. Choose another "
                rf"`{name}_port` \(--{name}-port\); 0 picks a free one"
            )
            with pytest.raises(OSError, match=message):
                LocalServer(base, ServerOptions(**options)).__enter__()


def test_ports_and_hosts_that_cannot_be(base: Path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    both = {"rest_port": port, "grpc_port": port}
    with pytest.raises(ValueError, match=f"`grpc_port` .*must be another .*: {port} for both"):
        LocalServer(base, ServerOptions(**both)).__enter__()
    with pytest.raises(OSError, match=r"The host nowhere.invalid \(--host\) cannot be used: "):
        LocalServer(base, ServerOptions(host="nowhere.invalid", **FREE)).__enter__()


def test_answers_do_not_wait_to_be_acknowledged():
    seen: list[int] = []

    class Asked(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted = transport.get_extra_info("socket")
            seen.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            transport.close()

    async def served() -> None:
        with listening("127.0.0.1", 0) as listener:
            loop = asyncio.get_running_loop()
            async with await loop.create_server(Asked, sock=listener):
                reader, writer = await asyncio.open_connection(*listener.getsockname())
                await reader.read()  # to the end
                writer.close()

    asyncio.run(served())
    assert seen and seen[0] != 0


def test_no_model_that_can_be_loaded(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="`base` must be the folder of a model"):
        LocalServer(tmp_path, ServerOptions(**FREE)).__enter__()
    folder = tmp_path / "model" / "1"
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"broken")
    with pytest.raises(ValueError, match="a model that can be loaded. Received: model, version 1"):
        LocalServer(tmp_path, ServerOptions(**FREE)).__enter__()


def test_it_ends_in_order(meter: Path):
    answers: list[int] = []
    url = ""
    with LocalServer(meter.parent, ServerOptions(**FREE)) as server:
        url = f"{server.rest_url}/v1/models/meter:predict"
        version = server.store.models["meter"].pick()
        run = version.run

        def slowly(*arguments):
            time.sleep(0.5)
            return run(*arguments)

        version.queue._run = slowly
        body = {"inputs": ["a"]}
        ask = threading.Thread(
            target=lambda: answers.append(requests.post(url, json=body, timeout=9).status_code)
        )
        ask.start()
        time.sleep(0.2)
    ask.join()
    assert answers == [200] and not server.alive
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=1)
    quick = Retries(most=0)
    with Client(server.grpc_url, "meter", retries=quick) as client, pytest.raises(Overloaded):
        client.signatures()


@pytest.mark.parametrize("most", [0, 4])
def test_a_graph_that_fails_is_answered_at_once(tmp_path: Path, most: int):
    export(Sorter(), tmp_path, max_batch_size=most)
    with LocalServer(tmp_path, ServerOptions(**FREE)) as server:
        url = f"{server.rest_url}/v1/models/sorter:predict"
        for text, status in (("well", 200), ("fail", 400), ("well", 200)):
            assert requests.post(url, json={"inputs": [text]}, timeout=10).status_code == status


def test_a_server_that_fails_says_so_at_its_end(meter: Path, monkeypatch: pytest.MonkeyPatch):
    async def broken(self):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        with LocalServer(meter.parent, ServerOptions(**FREE)):
            monkeypatch.setattr(ModelStore, "close", broken)


def test_who_watches_its_health_is_told_the_end(meter: Path):
    """And is not waited for: what watches never ends by itself."""
    grpc = pytest.importorskip("grpc", reason='pip install ".[serving]"')
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    limits = Limits(timeout=60.0)
    with LocalServer(meter.parent, ServerOptions(**FREE, limits=limits)) as server:
        channel = grpc.insecure_channel(server.grpc_url.removeprefix("grpc://"))
        watched = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        states = [next(watched).status]
        begin = time.monotonic()
    assert time.monotonic() - begin < 30.0
    states += [one.status for one in watched]
    channel.close()
    serving = health_pb2.HealthCheckResponse
    assert states[0] == serving.SERVING and states[-1] == serving.NOT_SERVING


@pytest.mark.slow
def test_no_request_is_lost_while_versions_change(meter: Path):
    wrong: list[str] = []
    with LocalServer(meter.parent, ServerOptions(**FREE)) as server, Client(
        server.rest_url, "meter", retries=Retries(most=0)
    ) as client:
        done = threading.Event()

        def ask(text: str) -> None:
            while not done.is_set():
                found = client.predict({"text": [text]})["length"].tolist()
                if found != [len(text)]:
                    wrong.append(f"{text}: {found}")

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask, "x" * length) for length in range(4)]
            for number in (2, 3):
                partial = meter.parent / "partial"
                shutil.copytree(meter, partial)
                partial.rename(meter.parent / str(number))
                while client.status().get(number) != "AVAILABLE":
                    time.sleep(0.05)
            done.set()
        assert not wrong and [one.exception() for one in asking] == [None] * 4
