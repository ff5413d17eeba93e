"""gRPC's health service; watchers get the end of the server, and their calls return.

Source: gRPC Health Checking Protocol (grpc/doc/health-checking.md).
"""

import asyncio
from typing import Any


class Health:
    """Check, List and Watch of the whole server, which is SERVING from its start to its end.

    The Watch of grpcio-health-checking never returns, and a server that ends would wait for it.
    """

    def __init__(self) -> None:
        self._over = asyncio.Event()

    async def Check(self, request: Any, context: Any) -> Any:
        """Answers a HealthCheckRequest."""
        import grpc

        if request.service:  # only the whole server, which has no name, is known
            await context.abort(grpc.StatusCode.NOT_FOUND, "There is no such service")
        return self._state()

    async def List(self, request: Any, context: Any) -> Any:
        """Answers a HealthListRequest."""
        from grpc_health.v1 import health_pb2

        return health_pb2.HealthListResponse(statuses={"": self._state()})

    async def Watch(self, request: Any, context: Any) -> None:
        """Streams the state, and the end."""
        from grpc_health.v1 import health_pb2

        if request.service:
            unknown = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
            await context.write(health_pb2.HealthCheckResponse(status=unknown))
            await self._over.wait()
            return
        if not self._over.is_set():
            await context.write(self._state())
            await self._over.wait()
        await context.write(self._state())

    def end(self) -> None:
        """Notifies all watchers that the server ends."""
        self._over.set()

    def _state(self) -> Any:
        from grpc_health.v1 import health_pb2

        states = health_pb2.HealthCheckResponse
        return states(status=states.NOT_SERVING if self._over.is_set() else states.SERVING)
