import numpy as np

from kbert.checkpoints.huggingface_files import BIAS, WEIGHT, without_copies

TABLE = np.arange(6, dtype="float32").reshape(3, 2)
OWN = np.array([1.0, 2.0, 3.0], "float32")
OTHERS = {"cls.seq_relationship.bias": np.zeros(2, "float32")}


def test_copies_are_dropped() -> None:
    report: list[str] = []
    heads = {"cls.predictions.bias": OWN, WEIGHT: TABLE.copy(), BIAS: OWN.copy(), **OTHERS}
    assert without_copies(heads, TABLE, report).keys() == {"cls.predictions.bias", *OTHERS}
    assert report == [f"Left out, as they are copies of other weights: {WEIGHT}, {BIAS}."]
    assert WEIGHT in heads  # what was given stays as it was


def test_a_bias_under_the_layers_name_alone() -> None:
    report: list[str] = []
    assert without_copies({BIAS: OWN}, TABLE, report) == {"cls.predictions.bias": OWN}
    assert report == []


def test_an_output_layer_of_its_own_stays() -> None:
    report: list[str] = []
    heads = {"cls.predictions.bias": OWN, WEIGHT: TABLE + 1, BIAS: OWN + 1}
    assert without_copies(heads, TABLE, report) == heads
    assert report == [f"The output layer is one of its own, not tied: {WEIGHT}, {BIAS}."]


def test_other_heads_are_not_touched() -> None:
    report: list[str] = []
    assert without_copies(OTHERS, TABLE, report) == OTHERS and report == []


def test_what_is_not_tied_stays_though_it_is_equal() -> None:
    report: list[str] = []
    heads = {"cls.predictions.bias": OWN, WEIGHT: TABLE.copy(), BIAS: OWN.copy()}
    assert without_copies(heads, TABLE, report, tied=False) == heads
    assert report == [f"The output layer is one of its own, not tied: {WEIGHT}, {BIAS}."]


def test_the_usual_bias_is_that_of_an_output_layer_with_none() -> None:
    heads = {"cls.predictions.bias": OWN, WEIGHT: TABLE + 1}
    assert without_copies(heads, TABLE, []) == {**heads, BIAS: OWN}
