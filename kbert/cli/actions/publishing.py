"""`kbert push`: the folder of a model, with a card, as a repository of the Hugging Face hub."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from kbert import __version__
from kbert.cli.actions.model_kinds import task_of
from kbert.tasks.registry import task_named
from kbert.training.config.multi_task_config import TASK as MULTI_TASK
from kbert.training.runs.run_directory import is_run, load_run

CARD = "README.md"
# Task -> its name on the hub, where it has one.
_ON_THE_HUB = {
    "classification": "text-classification",
    "multi-label": "text-classification",
    "multiple-choice": "multiple-choice",
    "question-answering": "question-answering",
    "ner": "token-classification",
    "embedding": "sentence-similarity",
    "translation": "translation",
    "captioning": "image-to-text",
    "pretraining": "fill-mask",
}


def push_model(model: Path, repository: str, private: bool, message: str) -> dict[str, Any]:
    """Uploads a run's model, or a model's folder, and returns the repository and its files.

    A card is written where the folder has none. The repository is made where it is not there.

    Raises:
        ValueError: It holds no model on texts, or several.
        OSError: The hub cannot be reached, or refuses.
    """
    from huggingface_hub import HfApi

    folder = Path(load_run(model).model_directory) if is_run(model) else model
    name = task_of(model)
    if name == MULTI_TASK:
        models = ", ".join(str(one) for one in sorted(folder.iterdir()) if one.is_dir())
        raise ValueError(
            "`MODEL` must be the model of one task. Received: a run on several tasks, whose models "
            f"are {models}"
        )
    if any(folder.glob("*.index")):
        raise ValueError(
            "`MODEL` must have its weights in safetensors, as `kbert convert` writes them. "
            f"Received: {folder}, a checkpoint of TensorFlow"
        )
    task = task_named(name)
    api = HfApi(library_name="kbert", library_version=__version__)
    with tempfile.TemporaryDirectory() as place:
        staged = Path(place, "model")
        shutil.copytree(folder, staged)
        if not (staged / CARD).exists():
            (staged / CARD).write_text(hub_card(task, repository), encoding="utf-8")
        files = [one for one in staged.rglob("*") if one.is_file()]
        names = [one.relative_to(staged).as_posix() for one in files]
        try:
            api.create_repo(repository, private=private, exist_ok=True)
            done = api.upload_folder(
                repo_id=repository, folder_path=staged, commit_message=message
            )
        # The client propagates whatever its HTTP library raises.
        except Exception as error:
            said = str(error).strip().partition("\n")[0]
            raise OSError(
                f"{repository!r} could not be written on the Hugging Face hub "
                f"({type(error).__name__}: {said[:200]}). It needs a token that may write: "
                "`hf auth login`, or the variable HF_TOKEN"
            ) from error
    return {"repository": repository, "commit": str(done.commit_url), "files": sorted(names)}


def hub_card(task: Any, repository: str) -> str:
    """Returns a card in Markdown, whose first lines the hub reads, for a model of a task."""
    tag = _ON_THE_HUB.get(task.name)
    return "\n".join(
        [
            "---",
            "library_name: kbert",
            *([f"pipeline_tag: {tag}"] if tag else []),
            "tags: [keras, tensorflow, kbert]",
            "---",
            f"# {repository.partition('/')[2]}",
            "",
            f"A {task.model_name} of kbert {__version__}: it {task.does}.",
            "",
            "```python",
            "import kbert",
            "",
            f'model = kbert.{task.model_name}.from_pretrained("{repository}")',
            "```",
            "",
        ]
    )
