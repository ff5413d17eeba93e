"""The words of a status, as TF Serving's documents have them."""

import pytest

from kbert.local_server.limits import Refusal
from kbert.local_server.served_model import ServedFolder, ServedModel, VersionState, status_of


def test_states_and_errors(tmp_path):
    model = ServedModel(ServedFolder("m", tmp_path), None, None)
    model.states = {2: VersionState("AVAILABLE"), 3: VersionState("END", "no such op")}
    good = {
        "version": "2",
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    bad = {
        "version": "3",
        "state": "END",
        "status": {"error_code": "UNKNOWN", "error_message": "no such op"},
    }
    assert status_of(model) == [bad, good]
    assert status_of(model, 2) == [good]
    with pytest.raises(Refusal, match="Could not find version 4 of model m"):
        status_of(model, 4)
    with pytest.raises(Refusal, match="Unrecognized servable version label"):
        status_of(model, None, "stable")
