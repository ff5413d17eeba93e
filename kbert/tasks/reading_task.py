"""`ReadingTask`: what tasks on texts of any length share."""

from typing import Any

from kbert.tasks.finetuned_task import FinetunedTask


class ReadingTask(FinetunedTask):
    """A task on texts of any length, whose windows a model reads, with metrics of its answers."""

    has_windows = True

    def tuned_metrics(self, model: Any, examples: Any, tune: bool) -> dict[str, Any]:
        """Returns the metrics of a model's answers; `tune` sets its threshold to the best one."""
        raise NotImplementedError(f"{type(self).__name__} must say how answers are measured")

    def prepare(self, model: Any, examples: Any, glue: str | None = None) -> Any:
        from kbert.tasks.inputs import PreparedReading

        return PreparedReading(self.inputs(model, examples), examples, self.tuned_metrics)

    def measure(self, model: Any, examples: Any) -> tuple[dict[str, Any], dict[str, str]]:
        return self.tuned_metrics(model, examples, False), {}
