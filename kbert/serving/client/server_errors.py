"""Errors of a server, or of the connection to it."""

# HTTP status -> name of gRPC's status code. Source: tensorflow/serving, `http_server.cc`,
# ToHTTPStatusCode.
_HTTP = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    412: "FAILED_PRECONDITION",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
# Transient errors.
_PASSING = ("UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED")


class ServerError(RuntimeError):
    """A server did not answer a request.

    Args:
        code: The name of gRPC's status code, such as "UNAVAILABLE".
        message: The server's message.
        target: Address of the model.
    """

    def __init__(self, code: str, message: str, target: str) -> None:
        super().__init__(f"{target} answered {code}: {message}")
        self.code = code
        self.message = message
        self.target = target

    @property
    def may_pass(self) -> bool:
        """Returns whether the same request may be answered a little later."""
        return self.code in _PASSING


class UnknownModel(ServerError):
    """The server has no such model, version or signature (NOT_FOUND)."""


class BadRequest(ServerError):
    """The request does not fit the model (INVALID_ARGUMENT, FAILED_PRECONDITION)."""


class Overloaded(ServerError):
    """The server refuses more, or cannot be reached (UNAVAILABLE, RESOURCE_EXHAUSTED)."""


class DeadlineExceeded(ServerError):
    """There was no answer in time."""


_CLASSES: dict[str, type[ServerError]] = {
    "NOT_FOUND": UnknownModel,
    "INVALID_ARGUMENT": BadRequest,
    "FAILED_PRECONDITION": BadRequest,
    "UNAVAILABLE": Overloaded,
    "RESOURCE_EXHAUSTED": Overloaded,
    "DEADLINE_EXCEEDED": DeadlineExceeded,
}


def server_error(code: str | int, message: str, target: str) -> ServerError:
    """Returns the error for a status.

    Args:
        code: The name of gRPC's status code, or the number of HTTP's.
        message: The server's message.
        target: Address of the model.
    """
    name = code if isinstance(code, str) else _HTTP.get(code, "UNKNOWN")
    return _CLASSES.get(name, ServerError)(name, message, target)
