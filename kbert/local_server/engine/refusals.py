"""What the local server says when it gives no answer: gRPC's code, HTTP's status, and words.

Source of the statuses: tensorflow/serving, `http_server.cc`, ToHTTPStatusCode.
"""

# gRPC's status codes by their names -> HTTP's. All others are 500.
_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
OVERLOADED = 503


class Refusal(Exception):
    """A request that is not answered.

    Args:
        code: The name of gRPC's status code.
        message: Words for the client: no traceback, no path of this machine.
        status: HTTP's status; by default the one that TF Serving gives for the code.
    """

    def __init__(self, code: str, message: str, status: int | None = None) -> None:
        # It may repeat what a client sent: half of a surrogate pair is in no encoding.
        self.message = message.encode("utf-8", "replace").decode("utf-8")
        super().__init__(self.message)
        self.code = code
        self.status = _STATUS.get(code, 500) if status is None else status

    @property
    def may_pass(self) -> bool:
        """Whether the same request may be answered a little later."""
        return self.status in (429, OVERLOADED)
