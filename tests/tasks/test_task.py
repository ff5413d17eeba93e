from kbert.tasks.registry import all_tasks
from kbert.tasks.task import Task


def test_long_texts_of_sample_requests():
    words = {task.name: task.request_words(100) for task in all_tasks()}
    assert words["classification"] == 100 and words["question-answering"] == 150
    assert words["translation"] == 40


def test_no_picture_is_drawn_of_what_is_not_there():
    assert Task.pictures == ("attention",)
