"""Forms of contexts with choices."""

import numpy as np
import pytest

from kbert.tasks.multiple_choice.inputs import ChoiceInputs, check_indices, read_choice_inputs

CONTEXTS = ["one", "two"]
CHOICES = [["a", "b", "c"], ["d", "e", "f"]]


@pytest.mark.parametrize(
    "x",
    [
        (CONTEXTS, CHOICES),
        (tuple(CONTEXTS), tuple(map(tuple, CHOICES))),
        (np.array(CONTEXTS), np.array(CHOICES)),
        (np.array(CONTEXTS, object), np.array(CHOICES, object)),
        {"choices": CHOICES, "context": CONTEXTS},
    ],
)
def test_forms(x):
    found = read_choice_inputs(x)
    assert list(found.contexts) == CONTEXTS and list(map(list, found.choices)) == CHOICES
    assert len(found) == 2


@pytest.mark.parametrize("x", [{"token_ids": CONTEXTS}, None, 3])
def test_something_else(x):
    assert read_choice_inputs(x) is None


def test_rows():
    assert ChoiceInputs(CONTEXTS, CHOICES)[1:] == ChoiceInputs(["two"], CHOICES[1:])
    assert len(read_choice_inputs(([], []))) == 0


@pytest.mark.parametrize(
    "x, message",
    [
        (
            (CONTEXTS, CHOICES[:1]),
            "`x` must hold one list of choices a context. Received: 2 contexts and 1 lists",
        ),
        (
            (CONTEXTS, [["a", "b"], ["c"]]),
            r"all rows must have the same number of choices. Received: \[1, 2\]",
        ),
        (CONTEXTS, "must be a tuple of n contexts and of n lists of choices. Received: a list of"),
        ((CONTEXTS, CONTEXTS), "`x` must be a tuple .* Received: a tuple of texts"),
        ((CONTEXTS, [[], []]), r"all rows must have the same number of choices. Received: \[0\]"),
    ],
)
def test_wrong_rows(x, message):
    with pytest.raises(ValueError, match=message):
        read_choice_inputs(x)


def test_indices():
    inputs = ChoiceInputs(CONTEXTS, CHOICES)
    found = check_indices([2, 0], inputs)
    assert found.dtype == "int32" and found.tolist() == [2, 0]
    assert check_indices(np.zeros(0, int), ChoiceInputs([], [])).shape == (0,)


@pytest.mark.parametrize(
    "y, message",
    [
        ([0], r"`y` must have 2 indices. Received: an array of shape \(1,\)"),
        ([[0], [1]], r"`y` must have 2 indices. Received: an array of shape \(2, 1\)"),
        ([0, 3], r"`y` must hold indices in \[0, 3\). Received: \[0, 3\]"),
        ([-1, 0], r"`y` must hold indices in \[0, 3\). Received: \[-1, 0\]"),
        ([0.5, 0.0], r"`y` must hold indices in \[0, 3\). Received: \[0.0, 0.5\]"),
        (["a", "b"], r"`y` must hold indices in \[0, 3\). Received: \['a', 'b'\]"),
    ],
)
def test_wrong_indices(y, message):
    with pytest.raises(ValueError, match=message):
        check_indices(y, ChoiceInputs(CONTEXTS, CHOICES))
