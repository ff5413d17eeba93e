"""Statuses as errors."""

import pytest

from kbert.serving.client.server_errors import (
    BadRequest,
    DeadlineExceeded,
    Overloaded,
    ServerError,
    UnknownModel,
    server_error,
)


@pytest.mark.parametrize(
    "code, kind, name",
    [
        (400, BadRequest, "INVALID_ARGUMENT"),
        (404, UnknownModel, "NOT_FOUND"),
        (429, Overloaded, "RESOURCE_EXHAUSTED"),
        (503, Overloaded, "UNAVAILABLE"),
        (504, DeadlineExceeded, "DEADLINE_EXCEEDED"),
        (500, ServerError, "INTERNAL"),
        (418, ServerError, "UNKNOWN"),
        ("FAILED_PRECONDITION", BadRequest, "FAILED_PRECONDITION"),
        ("CANCELLED", ServerError, "CANCELLED"),
    ],
)
def test_the_error_of_a_status(code, kind, name):
    error = server_error(code, "words", "http://x")
    assert type(error) is kind and error.code == name
    assert str(error) == f"http://x answered {name}: words"


def test_what_may_pass():
    codes = (400, 404, 429, 500, 503, 504)
    assert [code for code in codes if server_error(code, "", "").may_pass] == [429, 503]
