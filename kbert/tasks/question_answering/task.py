"""The task question answering: answer spans in texts of any length."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from kbert.data.questions.answer_alignment import align_answers, all_occurrences
from kbert.data.questions.question_examples import QuestionExamples, required_answers
from kbert.data.questions.squad import read_questions
from kbert.data.tables.table import check_columns
from kbert.tasks.base.finetuned_task import FinetunedTask

logger = logging.getLogger(__name__)


class QuestionTask(FinetunedTask):
    """Base class of tasks on questions about long texts."""

    has_windows = True
    # Whether answers are compared by their offsets, not by their texts.
    by_places = False

    def check_columns(self, path: str, columns: Mapping[str, str | int | None]) -> None:
        if not path.lower().removesuffix(".gz").endswith(".json"):
            check_columns(path, ("question", "context"))

    def read_file(self, path: str, config: Any, part: str) -> QuestionExamples:
        return self._aligned(read_questions(path), config, part)

    def read_tfds(self, name: str, split: str, config: Any, part: str) -> QuestionExamples:
        from kbert.data.tfds.reading import read_tfds_questions

        return self._aligned(read_tfds_questions(name, split, config.data), config, part)

    def _aligned(self, examples: QuestionExamples, config: Any, part: str) -> QuestionExamples:
        if part != "train" and not self.by_places:
            return examples
        examples = aligned_questions(examples)
        return all_occurrences(examples) if config.all_occurrences else examples

    def inputs(self, model: Any, examples: Any) -> Any:
        from kbert.tasks.question_answering.run_inputs import WindowInput

        if not isinstance(examples, QuestionExamples):
            raise ValueError(
                f"{examples.source}: the examples must be questions for a {type(model).__name__}. "
                "Received: sentences"
            )
        # Only answers with an offset can be learned; metrics compare texts.
        answers = [
            [a for a in several if context.startswith(a.text, a.start)]
            for several, context in zip(required_answers(examples), examples.contexts)
        ]
        return WindowInput(*model.examples(model.read_inputs(examples), answers))

    def prepare(self, model: Any, examples: Any, glue: str | None = None) -> Any:
        from kbert.tasks.base.prepared import PreparedReading

        return PreparedReading(self.inputs(model, examples), examples, self.tuned_metrics)

    def tuned_metrics(self, model: Any, examples: Any, tune: bool) -> dict[str, Any]:
        """Returns the metrics of a model's answers.

        Args:
            model: The model.
            examples: Questions.
            tune: Whether to set the model's threshold to the best one for them.
        """
        raise NotImplementedError

    def measure(self, model: Any, examples: Any) -> tuple[dict[str, Any], dict[str, str]]:
        return self.tuned_metrics(model, examples, False), {}

    def measured_examples(self, path: Any, columns: Mapping[str, Any], model: Any = None) -> Any:
        examples = read_questions(path)
        return aligned_questions(examples) if self.by_places else examples

    def rows(self, examples: Any) -> list[tuple[Any, ...]]:
        return list(zip(examples.questions, examples.contexts))


class QuestionAnsweringTask(QuestionTask):
    """The task of answering with one span, or none."""

    name = "question-answering"
    model_name = "QuestionAnswerer"
    module = "kbert.tasks.question_answering.model"
    does = "finds the answer to a question in a context"
    page = "question_answering"
    outputs = ("nbest_answer",)
    answer_keys = ("answer",)
    fixed_length = 384
    pictures = ("attention", "span")
    has_answer_file = True
    settings = ("stride", "max_question_length", "max_answer_length")
    options = (*settings, "adapter_dim", "all_occurrences", "other_windows")

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        return architecture == "BertForQuestionAnswering"

    def monitors(self, labels: Sequence[str] | None) -> list[str]:
        return ["f1", "exact_match"]

    def target_spec(self, rows: int) -> Any:
        import tensorflow as tf

        # The answers of a window in training: one in SQuAD.
        return tf.TensorSpec((rows, 1, 2), tf.int32)

    def reset(self, model: Any) -> None:
        model.null_threshold = None

    def tuned_metrics(self, model: Any, examples: Any, tune: bool) -> dict[str, Any]:
        from kbert.tasks.question_answering.evaluation import measure_answers

        return measure_answers(model, examples, tune)[0]

    def measure(self, model: Any, examples: Any) -> tuple[dict[str, Any], dict[str, str]]:
        from kbert.tasks.question_answering.evaluation import measure_answers

        return measure_answers(model, examples)


def aligned_questions(examples: QuestionExamples) -> QuestionExamples:
    """Returns questions whose answers are at their offsets; wrong ones are logged.

    Args:
        examples: Questions for training, or for evaluation by offsets.

    Raises:
        ValueError: They were read without answers.
    """
    examples, report = align_answers(examples)
    if report.misaligned:
        logger.warning("%s", report)
    return examples


TASK = QuestionAnsweringTask()
