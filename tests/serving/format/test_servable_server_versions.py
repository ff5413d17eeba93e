"""Which server has which ops.

The facts are those of the published wheels and of serving PR 4057, as the module's text says: here
they are asked for by ops whose history is known.
"""

import pytest
import tensorflow as tf

from kbert.serving.format.servable import (
    NEW_OPS,
    SERVERS,
    TEXT_OPS,
    least_server,
    ops_missing_in,
    server_number,
)


def test_the_least_server():
    assert least_server([]) == "2.16"
    assert least_server(["MatMul", "FastWordpieceTokenizeWithOffsets"]) == "2.16"
    assert least_server(["MatMul", "WeightedFlatMapDataset"]) == "2.17"
    assert least_server(["CheckPinned", "WeightedFlatMapDataset"]) == "2.18"
    assert least_server(["TFText>RoundRobinTrim", "CheckPinned"]) == "2.20"


def test_what_a_server_lacks():
    used = ["MatMul", "CheckPinned", "TFText>RoundRobinTrim", "DecodeWebP"]
    assert ops_missing_in(used, "2.17") == {
        "CheckPinned": "2.18",
        "DecodeWebP": "2.20",
        "TFText>RoundRobinTrim": "2.20",
    }
    assert set(ops_missing_in(used, "2.19.1")) == {"DecodeWebP", "TFText>RoundRobinTrim"}
    assert ops_missing_in(used, "2.20.0") == {}
    assert ops_missing_in(used, "2.21") == {}


def test_every_op_of_the_table_exists():
    assert tuple(NEW_OPS) == SERVERS[1:]
    for ops in NEW_OPS.values():
        assert all(op in TEXT_OPS or hasattr(tf.raw_ops, op) for op in ops)


@pytest.mark.parametrize("version", ["2.15", "1.15.0", "latest", "", "2", "2.x"])
def test_no_version_is_refused(version: str):
    with pytest.raises(ValueError, match="`server` must be a version of TF Serving, at least 2.16"):
        server_number(version)


def test_versions_are_compared_as_numbers():
    assert server_number("2.20.1") == (2, 20)
    assert server_number("2.100") > server_number("2.20")
