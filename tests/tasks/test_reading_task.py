from kbert.tasks.reading_task import ReadingTask
from kbert.tasks.registry import finetuned_tasks


def test_what_is_measured_by_its_answers_reads_windows_and_has_no_mean():
    reading = [task for task in finetuned_tasks() if isinstance(task, ReadingTask)]
    assert [task.name for task in reading] == ["question-answering", "span-tagging", "ner"]
    assert all(task.has_windows and not task.averages for task in reading)


def test_a_finished_model_is_measured_as_it_is():
    class Task(ReadingTask):
        def tuned_metrics(self, model, examples, tune):
            return {"tuned": tune, "model": model, "examples": examples}

    assert Task().measure("m", "e") == ({"tuned": False, "model": "m", "examples": "e"}, {})
