"""`kbert.pipeline`: models by the name of their task, as users of transformers know them."""

import os
from typing import Any

from kbert.checkpoints.pretrained import PretrainedEncoder, find_name
from kbert.hints import nearest
from kbert.images.reading import read_images
from kbert.serving.loading.exported import Exported, ExportedTask, load
from kbert.tasks.registry import FINETUNED, OTHERS, task_named, task_of

# Name of transformers, or the task's own -> the task of kbert.
_ALIASES = {
    "sentiment-analysis": "classification",
    "sentiment": "classification",
    "text-classification": "classification",
    "token-classification": "ner",
    "feature-extraction": "embedding",
    "sentence-similarity": "embedding",
    "fill-mask": "pretraining",
    "image-to-text": "captioning",
}
_DEFAULTS = {
    "question-answering": "minilm-squad",
    "ner": "minilm-ner",
    "sentiment-analysis": "minilm-sentiment",
    "sentiment": "minilm-sentiment",
    "embedding": "all-MiniLM-L6-v2",
}
_SINGLE = str | bytes | os.PathLike


class Pipeline:
    """A model that is called with texts; made by `pipeline`.

    `model` is what `kbert.load` returns: everything else is asked of it.
    """

    def __init__(self, task: str, model: Any) -> None:
        self.task = task
        self.model = model

    def __call__(self, *inputs: Any, **columns: Any) -> Any:
        """Answers texts: `model.answers` of them.

        Args:
            *inputs: A str, or a list of str; of a task on several texts, such as a pair, one for
                each. Or a dict of columns, or a list of dicts with a row each.
            **columns: The same by name: `question` and `context` of question-answering.

        Returns:
            A dict of plain values for each row, as `answers` gives them, or a list of dicts where
            a text has several; of single strings the one answer itself.

        Raises:
            TypeError: There are no texts, or other arguments beside them, or a single text beside
                several.
        """
        if bool(inputs) == bool(columns):
            received = f"texts, and {', '.join(columns)}" if inputs else "nothing"
            raise TypeError(
                "`pipeline` must be called with texts, or with columns by name, and nothing else. "
                f"Received: {received}"
            )
        if len(inputs) == 1:
            inputs, columns = _by_name(inputs[0])
        given: dict[Any, Any] = {**columns} or {i: text for i, text in enumerate(inputs)}
        others = {name: text for name, text in given.items() if not isinstance(text, _SINGLE)}
        is_single = not others
        if len(others) < len(given) and others:
            name, other = next(iter(others.items()))
            raise TypeError(
                f"`{name}` must be one text, as {next(iter(given.keys() - others.keys()))!r} is. "
                f"Received: {name}={other!r:.80}. Lists have one text for each row"
            )
        rows = {name: [text] if is_single else text for name, text in given.items()}
        x: Any = rows if columns else tuple(rows.values())
        if not columns and len(x) == 1:
            (x,) = x
        is_export = isinstance(self.model, Exported | ExportedTask)
        if self.task == "captioning" and is_export:
            (images,) = rows.values()  # an export takes the content of files
            x = read_images(list(images)).tolist()
        answers = self.model.answers(x)
        listed = task_named(self.task).answer_list
        if listed and is_export:
            answers = [answer[listed] for answer in answers]
        return answers[0] if is_single else answers

    def __repr__(self) -> str:
        return f"<Pipeline {self.task}: {self.model!r}>"


def _by_name(given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the one thing that a pipeline was called with, or its columns, if they have names."""
    if isinstance(given, dict):
        return (), given
    if isinstance(given, list) and given and all(isinstance(row, dict) for row in given):
        if all(row.keys() == given[0].keys() for row in given):
            return (), {name: [row[name] for row in given] for name in given[0]}
    return (given,), {}


def pipeline(task: str, model: Any = None, **kwargs: Any) -> Pipeline:
    """Loads a model of a task, to be called with texts.

    Args:
        task: "question-answering", "ner" ("token-classification"), "text-classification"
            ("sentiment-analysis"), "embedding" ("feature-extraction"), "translation", "fill-mask",
            "image-to-text", or another task of kbert by its own name, such as "regression".
        model: What `kbert.load` takes: a run, a folder, an export, a name; or what it returned.
            None means the model that comes with kbert, for question-answering, ner and
            sentiment-analysis, and all-MiniLM-L6-v2 for embedding.
        **kwargs: Arguments of `kbert.load`, such as `dtype`.

    Raises:
        ValueError: There is no such task, none of its models comes with kbert and `model` is None,
            or the model is of another task.
        FileNotFoundError: There is no such model.
    """
    name = _ALIASES.get(task, task)
    if name not in (*FINETUNED, *OTHERS):
        known = (*_ALIASES, *FINETUNED, *OTHERS)
        raise ValueError(
            f"`task` must be one of {', '.join(known)}. Received: task={task!r}."
            f"{nearest(str(task), known)}"
        )
    wanted = task_named(name)
    chosen = _DEFAULTS.get(task, _DEFAULTS.get(name)) if model is None else model
    if chosen is None:
        raise ValueError(
            f"`model` must be given for {task!r}, since none comes with kbert: the folder of a "
            f"{wanted.model_name}, of kbert or Hugging Face, a run or an export. Received: "
            "model=None"
        )
    if not isinstance(chosen, str | os.PathLike):
        if kwargs:
            raise ValueError(
                "`pipeline` must have no further arguments for a model that is loaded. "
                f"Received: {', '.join(kwargs)}"
            )
        return Pipeline(name, _of_task(wanted.model_name, chosen, chosen))
    if name == "embedding" and isinstance(find_name(chosen, "model"), PretrainedEncoder):
        return Pipeline(name, wanted.model_class().from_pretrained(chosen, **kwargs))
    return Pipeline(name, _of_task(wanted.model_name, load(chosen, **kwargs), chosen))


def _of_task(kind: str, loaded: Any, source: Any) -> Any:
    """Returns the loaded model, or the one of its several, that is of a class."""
    models = loaded if isinstance(loaded, dict) else {"": loaded}
    kinds = {name: _kind(model) for name, model in models.items()}
    fitting = [model for name, model in models.items() if kinds[name] == kind]
    if len(fitting) != 1:
        others = {task_named(name).model_name: name for name in (*FINETUNED, *OTHERS)}
        names = [others[one] for one in kinds.values() if one in others]
        hint = f" (of the task {' or '.join(names)})" if names else ""
        raise ValueError(
            f"`model` must be one {kind} for this task. Received: {source!r}, "
            f"{' and '.join(kinds.values())}{hint}"
        )
    return fitting[0]


def _kind(model: Any) -> str:
    if isinstance(model, ExportedTask):
        return str(model.export.metadata["tasks"][model.name]["class"])
    if isinstance(model, Exported):
        return str(model.metadata["class"])
    task = task_of(model)
    return type(model).__name__ if task is None else task.model_name
