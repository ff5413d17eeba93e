import importlib
import importlib.util

import pytest

from kbert.tasks.options import TaskOptions
from kbert.tasks.registry import FINETUNED, finetuned_tasks

KEYS = {field.name for field in TaskOptions.options()}


def test_the_keys_of_heads_and_their_kinds():
    assert {"dropout", "head"} <= KEYS
    assert TaskOptions(head="two_layer", dropout=0.0)
    told = "`dropout` must be a number in .0, 1.. Received: dropout=1.0"
    with pytest.raises(ValueError, match=told):
        TaskOptions(dropout=1.0)


def test_the_keys_of_classes_and_their_kinds():
    assert {"labels", "text_a"} <= KEYS
    assert TaskOptions(class_weights={"a": 1, "b": 2.5})
    with pytest.raises(ValueError, match="`labels` must be a list of two different names or more"):
        TaskOptions(labels=["a", "a"])


def test_the_keys_of_texts_in_windows_and_their_kinds():
    assert {"label", "other_windows", "stride"} <= KEYS
    assert TaskOptions(stride=0, other_windows=0, label=3)
    message = "`stride` must be a whole number, at least 0"
    with pytest.raises(ValueError, match=message):
        TaskOptions(stride=-1)


def test_a_task_sees_no_option_of_another_alone():
    """Each key of one task's own options is among those that the task accepts, and no other's."""
    for name in FINETUNED:
        folder = importlib.import_module(f"kbert.tasks.{name.replace('-', '_')}")
        module = f"{folder.__name__}.options"
        if importlib.util.find_spec(module) is None:
            continue
        (own,) = (
            value
            for value in vars(importlib.import_module(module)).values()
            if isinstance(value, type) and value.__module__ == module
        )
        keys = {field.name for field in own.options()}
        assert keys and not keys & KEYS
        seen = {task.name for task in finetuned_tasks() if keys & {*task.options, *task.settings}}
        assert seen <= {name}, keys
