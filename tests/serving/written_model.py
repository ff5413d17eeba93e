"""A SavedModel of two nodes, written byte by byte as the messages of TensorFlow say."""

import json
from pathlib import Path

from kbert.checkpoints.arrays.wire_format import field_bytes as field


def write_model(folder: Path, op: str = "Identity", batch: int = 2**64 - 1) -> Path:
    """Writes it, with a kbert.json beside it.

    Args:
        folder: The version folder to make.
        op: The op of the node in its function.
        batch: The first dimension of its input; by default -1, as 64 bits write it.
    """
    attribute = field(5, field(1, "_XlaMustCompile") + field(2, field(5, 0)))
    node = field(1, "call") + field(2, "PartitionedCall") + field(4, "") + attribute
    inside = field(1, "inside") + field(2, op) + field(4, "/device:GPU:0" if op == "MatMul" else "")
    function = field(1, field(1, "f")) + field(3, inside)
    graph = field(1, node) + field(2, field(1, function))
    shape = field(2, field(1, batch)) + field(2, field(1, 3))
    unknown = field(3, 1)
    inputs = field(1, field(1, "text") + field(2, field(1, "text:0") + field(3, shape)))
    outputs = field(2, field(1, "label") + field(2, field(3, shape)))
    signature = field(1, "serving_default") + field(2, inputs + outputs)
    init = field(1, "__saved_model_init_op") + field(2, field(2, field(1, "x") + unknown))
    about = field(4, "serve") + field(5, "2.20.0")
    meta_graph = field(1, about) + field(2, graph) + field(5, init) + field(5, signature)
    (folder / "assets.extra").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(field(1, 1) + field(2, meta_graph))
    metadata = {
        "class": "Classifier",
        "signatures": {"serving_default": {"inputs": [{"name": "text"}]}},
    }
    (folder / "assets.extra" / "kbert.json").write_text(json.dumps(metadata))
    return folder
