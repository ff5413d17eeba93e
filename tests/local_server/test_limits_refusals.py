"""Statuses of refusals."""

import pytest

from kbert.local_server.limits import Refusal


@pytest.mark.parametrize(
    "code, status, may_pass",
    [
        # As ToHTTPStatusCode of TF Serving's http_server.cc has them.
        ("INVALID_ARGUMENT", 400, False),
        ("FAILED_PRECONDITION", 400, False),
        ("NOT_FOUND", 404, False),
        ("RESOURCE_EXHAUSTED", 429, True),
        ("INTERNAL", 500, False),
        ("UNIMPLEMENTED", 501, False),
        ("UNAVAILABLE", 503, True),
        ("DEADLINE_EXCEEDED", 504, False),
    ],
)
def test_the_status_of_a_code(code: str, status: int, may_pass: bool):
    refusal = Refusal(code, "words")
    assert (refusal.status, refusal.may_pass, str(refusal)) == (status, may_pass, "words")


def test_words_of_a_client_can_be_sent_back():
    assert Refusal("NOT_FOUND", "no \ud800").message.encode("utf-8") == b"no ?"


def test_a_status_of_its_own():
    assert Refusal("INVALID_ARGUMENT", "too large", 413).status == 413
    assert Refusal("RESOURCE_EXHAUSTED", "full", 503).may_pass
