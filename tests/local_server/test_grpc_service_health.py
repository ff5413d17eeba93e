"""Health over gRPC, without a server; with one in test_server."""

import asyncio

import pytest

from kbert.local_server.grpc_service import Health

pytest.importorskip("grpc_health", reason='pip install ".[serving]"')

from grpc_health.v1 import health_pb2  # noqa: E402

STATES = health_pb2.HealthCheckResponse


class Context:
    def __init__(self):
        self.told = []

    async def write(self, response):
        self.told.append(response.status)


@pytest.mark.parametrize(
    "service, first, last",
    [("", [STATES.SERVING], [STATES.NOT_SERVING]), ("other", [STATES.SERVICE_UNKNOWN], [])],
)
def test_who_watches_is_told_state_and_end(service, first, last):
    async def watch():
        health, context = Health(), Context()
        request = health_pb2.HealthCheckRequest(service=service)
        watching = asyncio.ensure_future(health.Watch(request, context))
        await asyncio.sleep(0.01)
        assert context.told == first and not watching.done()
        health.end()
        await asyncio.wait_for(watching, 5)
        assert context.told == first + last
        late = Context()
        await asyncio.wait_for(health.Watch(request, late), 5)
        return late.told

    assert asyncio.run(watch())[-1:] == (last or first)


def test_check_and_list_tell_the_end_too():
    async def told(health):
        one = await health.Check(health_pb2.HealthCheckRequest(), Context())
        every = await health.List(health_pb2.HealthListRequest(), Context())
        assert {name: state.status for name, state in every.statuses.items()} == {"": one.status}
        return one.status

    health = Health()
    assert asyncio.run(told(health)) == STATES.SERVING
    health.end()
    assert asyncio.run(told(health)) == STATES.NOT_SERVING
