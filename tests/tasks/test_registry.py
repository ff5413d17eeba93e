from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.tasks.registry import (
    FINETUNED,
    OTHERS,
    all_tasks,
    finetuned_task,
    task_of,
    task_of_checkpoint,
    task_of_class,
)
from tests.small_pipelines import small_classifier, small_embedder, small_encoder, small_regressor


def test_every_task_names_the_class_of_its_models():
    tasks = all_tasks()
    assert [task.name for task in tasks] == [*FINETUNED, *OTHERS]
    for task in tasks:
        assert task.model_class().__name__ == task.model_name
    assert len({task.page for task in tasks}) == len({task.does for task in tasks}) == len(tasks)


def test_tasks_by_name_and_by_class():
    assert finetuned_task("ner").model_name == "EntityRecognizer"
    assert task_of_class("Translator").name == "translation"
    assert task_of_class("Nobody") is None and task_of(object()) is None


def test_a_class_that_derives_from_one_of_a_task_is_of_that_task():
    model = small_classifier()
    assert task_of(model) is finetuned_task("classification")

    class Own(type(model)):
        pass

    assert task_of(Own.from_config(model.get_config())) is finetuned_task("classification")


def test_the_task_of_a_folder(tmp_path):
    written = {
        "regression": small_regressor().save_pretrained(tmp_path / "a", format="huggingface"),
        "classification": small_classifier().save_pretrained(tmp_path / "b"),
        "embedding": small_embedder().save_pretrained(tmp_path / "c", "sentence-transformers"),
    }
    for name, folder in written.items():
        assert task_of_checkpoint(read_checkpoint(folder)).name == name
    encoder = small_encoder().save_pretrained(tmp_path / "d", format="huggingface")
    assert task_of_checkpoint(read_checkpoint(encoder)) is None
