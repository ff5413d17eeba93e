"""What both interfaces say of a model's versions."""

from typing import Any

from kbert.local_server.engine.refusals import Refusal
from kbert.local_server.engine.served_model import ServedModel

# Source: tensorflow/serving, `get_model_status.proto`.
STATES = {"UNKNOWN": 0, "START": 10, "LOADING": 20, "AVAILABLE": 30, "UNLOADING": 40, "END": 50}


def status_of(
    model: ServedModel, version: int | None = None, label: str | None = None
) -> list[dict[str, Any]]:
    """The states, highest version first, as the REST interface writes them.

    Args:
        model: The model.
        version: This one alone.
        label: That of this label alone.

    Raises:
        Refusal: There is no such version.
    """
    if label is not None:
        version = model.pick(None, label).number
    if version is not None and version not in model.states:
        words = f"Could not find version {version} of model {model.folder.name}"
        raise Refusal("NOT_FOUND", words)
    numbers = [version] if version is not None else sorted(model.states, reverse=True)
    found = []
    for number in numbers:
        one = model.states[number]
        code = "UNKNOWN" if one.error else "OK"
        status = {"error_code": code, "error_message": one.error}
        found.append({"version": str(number), "state": one.state, "status": status})
    return found
