"""`kbert serve`: a local server for development and tests, with the APIs of TF Serving.

It is built on uvicorn and Starlette (REST), grpcio with the official messages (gRPC) and
prometheus-client (metrics), all of the extra "serving".
"""

from kbert.extras import install_extra

try:
    import prometheus_client  # noqa: F401
    import starlette  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise ImportError(
        "The local server needs starlette, uvicorn and prometheus-client: "
        f"{install_extra('serving')}"
    ) from error
