import numpy as np
import pytest

from kbert.checkpoints.arrays.weight_table import (
    WeightEntry,
    assemble,
    check_arrays,
    check_tensors,
    disassemble,
    without_absent_pooler,
)
from tests.checkpoints.synthetic_bert import CONFIG, same_bytes

QKV = WeightEntry("x/kernel", (2, 6), ("q", "k", "v"), (2, 2), transposed=True)
SPLIT = WeightEntry("y", (4, 2), ("y",), (2, 2, 2))


def test_assembling_by_hand() -> None:
    tensors = {
        "q": np.float32([[1, 2], [3, 4]]),
        "k": np.float32([[5, 6], [7, 8]]),
        "v": np.float32([[9, 10], [11, 12]]),
        "y": np.arange(8, dtype=np.float32).reshape(2, 2, 2),
    }
    arrays = assemble([QKV, SPLIT], tensors.__getitem__)
    assert arrays["x/kernel"].tolist() == [[1, 3, 5, 7, 9, 11], [2, 4, 6, 8, 10, 12]]
    assert arrays["y"].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    back = disassemble([QKV, SPLIT], arrays)
    assert back.keys() == tensors.keys()
    assert all(same_bytes(back[name], tensors[name]) for name in tensors)


def test_every_problem_is_named() -> None:
    found = {"q": (2, 2), "k": (2, 3), "y": (2, 2, 2)}
    with pytest.raises(ValueError) as error:
        check_tensors([QKV, SPLIT], found, ["b", "a"], "`file`")
    assert str(error.value) == (
        "`file`: the weights must be those of a BERT encoder of this configuration. Received: "
        "missing: v; not known: a, b; of another shape than the configuration says: "
        "k (expected (2, 2), found (2, 3))."
    )
    check_tensors([QKV, SPLIT], found | {"k": (2, 2), "v": (2, 2)}, [], "`file`")


def test_the_pooler_may_be_absent_but_not_by_half() -> None:
    table = [WeightEntry(f"pooler/{name}", (1,), (name,), (1,)) for name in ("kernel", "bias")]
    report: list[str] = []
    assert without_absent_pooler([SPLIT, *table], ["y"], report) == [SPLIT]
    assert "has no pooler" in report[0]
    assert len(without_absent_pooler([SPLIT, *table], ["y", "bias"], [])) == 3


def test_canonical_arrays() -> None:
    with pytest.raises(ValueError, match="x: .*missing: embeddings/token_embedding.*not known: z"):
        check_arrays(CONFIG, {"z": np.zeros(1)}, "x")
