"""What exports and answers look like to those who read them; runs are pinned where they are made.

Numbers are tested elsewhere. See tests/goldens/README.md.
"""

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from kbert.serving.export.export import export
from kbert.serving.export.multi_task_export import Together
from kbert.serving.format.signatures import read_meta_graph, signatures_of
from kbert.tasks.registry import json_answer
from tests import pinned
from tests import small_pipelines as small
from tests.pinned import check_pinned, files_in, structure
from tests.small_translator import small_translator

TEXT = "the very bad film was good"
# What makes a small model of each task, and a row of its inputs.
TASKS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "classification": (small.small_classifier, (TEXT,)),
    "classification of pairs": (
        functools.partial(small.small_classifier, pair=True),
        (TEXT, "a film"),
    ),
    "regression": (small.small_regressor, (TEXT,)),
    "several labels": (small.small_multi_label_classifier, (TEXT,)),
    "multiple choice": (small.small_multiple_choice, (TEXT, ["good", "bad"])),
    "embedding": (small.small_embedder, (TEXT,)),
    "question answering": (small.small_question_answerer, ("a film", TEXT)),
    "span tagging": (small.small_span_tagger, ("a film", TEXT)),
    "named entities": (small.small_entity_recognizer, (TEXT,)),
    "masked language model": (small.small_masked_language_model, ("the very [MASK] film",)),
    "translation": (small_translator, (TEXT,)),
    "translation with BERT": (functools.partial(small_translator, fused=True), (TEXT,)),
}


@functools.cache
def model_of(task: str) -> Any:
    """The small model of a task, made once."""
    return TASKS[task][0]()


def shown(tensor: Any) -> str:
    """A dtype with a shape, as "string [?]"."""
    sizes = ("?" if size is None else str(size) for size in tensor.shape)
    return f"{tensor.dtype.name} [{', '.join(sizes)}]"


@functools.cache
def described(function: Any, *specs: tf.TensorSpec) -> dict[str, Any]:
    """Inputs, in the order of the arguments, and outputs of a function of an export."""
    # Autograph would find nothing to convert, and take as long again.
    traced = tf.function(function, input_signature=specs, autograph=False).get_concrete_function()
    outputs = traced.structured_outputs
    return {
        "inputs": [f"{spec.name}: {shown(spec)}" for spec in specs],
        "outputs": {name: shown(tensor) for name, tensor in outputs.items()},
    }


def signatures(model: Any) -> dict[str, Any]:
    """The signatures of what can be exported."""
    every = model.signatures().items()
    return {name: described(function, *specs) for name, (function, specs) in every}


@pytest.fixture
def eager() -> Iterator[None]:
    """Functions run without being traced first."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


# A translator with a BERT has the signatures of one without; its answers are below.
@pytest.mark.parametrize("task", [task for task in TASKS if task != "translation with BERT"])
def test_the_signatures_of_an_export(task: str):
    check_pinned("export_signatures", task, signatures(model_of(task)))


def test_the_signatures_of_several_tasks_in_one_export():
    tasks = {"topics": "classification", "names": "named entities"}
    together = Together("tasks", {name: model_of(task) for name, task in tasks.items()})
    check_pinned("export_signatures", "several tasks together", signatures(together))
    check_pinned("export_folder", "tasks of kbert.json, of several", structure(together.tasks))


@pytest.mark.filterwarnings("ignore:Even though the `tf.config.experimental_run_functions_eagerly`")
@pytest.mark.parametrize("task", TASKS)
def test_the_answers(task: str, eager: None):
    model, row = model_of(task), TASKS[task][1]
    function, _ = model.signatures()["serving_default"]
    outputs = function(*(tf.constant([value]) for value in row))
    predicted = json_answer({name: value[0].numpy() for name, value in outputs.items()})
    columns = tuple([value] for value in row)
    (answer,) = model.answers(columns if len(row) > 1 else columns[0])
    found = {"kbert predict": structure(predicted), "model.answers": structure(answer)}
    check_pinned("answers", task, found)


def test_the_folder_of_an_export(tmp_path: Path):
    path = export(model_of("classification"), tmp_path / "models", "topics", max_batch_size=2)
    written = signatures_of(read_meta_graph(path))
    expected = signatures(model_of("classification"))
    for name, one in written.items():
        assert {k: shown(tensor) for k, tensor in one.outputs.items()} == expected[name]["outputs"]
        inputs = {f"{k}: {shown(tensor)}" for k, tensor in one.inputs.items()}
        assert inputs == set(expected[name]["inputs"])
    extra = {
        file.name: structure(json.loads(file.read_text("utf-8")))
        for file in sorted(path.glob("assets.extra/*.json"))
    }
    found = {"files": files_in(tmp_path / "models"), **extra}
    check_pinned("export_folder", "classification", found)


def test_a_change_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pinned, "GOLDENS", tmp_path)
    monkeypatch.setenv(pinned.WRITE, "1")
    check_pinned("formats", "a run", structure({"seed": 1, "files": [{"name": "x"}, None, None]}))
    assert (tmp_path / "formats.yaml").read_text() == (
        "a run:\n  files:\n  - name: str\n  - none\n  seed: int\n"
    )
    monkeypatch.delenv(pinned.WRITE)
    check_pinned("formats", "a run", {"seed": "int", "files": [{"name": "str"}, "none"]})
    told = r"no longer that of formats.yaml:\n(.|\n)*\n-seed: int\n\+seed: float"
    with pytest.raises(AssertionError, match=told):
        check_pinned("formats", "a run", {"seed": "float", "files": [{"name": "str"}, "none"]})
