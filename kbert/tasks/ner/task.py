"""The task ner: named entities in texts of any length."""

from collections.abc import Mapping, Sequence
from typing import Any

from kbert.data.entities.conll import read_conll
from kbert.data.entities.entity_rows import read_entity_rows, tagged_words
from kbert.data.entities.tagged_sentences import TaggedSentences, in_scheme
from kbert.tasks.base.finetuned_task import FinetunedTask


class EntityTask(FinetunedTask):
    """The task of finding named entities."""

    name = "ner"
    model_name = "EntityRecognizer"
    module = "kbert.tasks.ner.model"
    does = "finds names and other entities in a text"
    page = "entities"
    outputs = ("count", "entity")
    answer_keys = ("entities",)
    has_windows = True
    settings = ("stride", "dropout")
    options = ("stride", "adapter_dim")

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        is_labeller = architecture == "BertForTokenClassification"
        return is_labeller and not is_span_tagger(architecture, checkpoint)

    def read_file(self, path: str, config: Any, part: str) -> TaggedSentences:
        return read_sentences(path, config.tag_scheme, config.label)

    def read_tfds(self, name: str, split: str, config: Any, part: str) -> TaggedSentences:
        from kbert.data.tfds.reading import read_tfds_sentences

        return in_scheme(read_tfds_sentences(name, split, config.data), config.tag_scheme)

    def labels(self, config: Any, train: Any, glue: str | None) -> list[str] | None:
        return tag_names(train.labels, config.tag_scheme)

    def check_part(self, part: str, examples: Any, train: Any, labels: list[str] | None) -> None:
        unknown = sorted(set(examples.labels) - set(train.labels))
        if unknown:
            raise ValueError(
                f"{examples.source}: the types must be among those of training, "
                f"{', '.join(train.labels)}. Received: {', '.join(unknown)}"
            )

    def monitors(self, labels: Sequence[str] | None) -> list[str]:
        return ["f1", "precision", "recall", "strict_f1"]

    def inputs(self, model: Any, examples: Any) -> Any:
        from kbert.tasks.question_answering.run_inputs import WindowInput

        if not isinstance(examples, TaggedSentences):
            raise ValueError(
                f"{examples.source}: the examples must be sentences of tagged words for a "
                f"{type(model).__name__}. Received: questions"
            )
        if examples.tags is None:
            raise ValueError(f"{examples.source}: the sentences must have tags. Received: none")
        return WindowInput(*model.examples(model.read_inputs(examples), examples.tags))

    def prepare(self, model: Any, examples: Any, glue: str | None = None) -> Any:
        from kbert.tasks.base.prepared import PreparedReading

        def measured(model: Any, examples: Any, tune: bool) -> dict[str, Any]:
            return self.measure(model, examples)[0]  # nothing is tuned

        return PreparedReading(self.inputs(model, examples), examples, measured)

    def measure(self, model: Any, examples: Any) -> tuple[dict[str, Any], dict[str, str]]:
        from kbert.tasks.ner.evaluation import measure_entities

        return measure_entities(model, examples), {}

    def measured_examples(self, path: Any, columns: Mapping[str, Any], model: Any = None) -> Any:
        scheme = "iobes" if any(tag[:2] in ("E-", "S-") for tag in model.labels) else "bio"
        column = columns.get("label")
        if isinstance(column, str) and column.lstrip("-").isdecimal():
            column = int(column)
        return read_sentences(str(path), scheme, column)

    def rows(self, examples: Any) -> list[tuple[Any, ...]]:
        return [(" ".join(words),) for words in examples.words]


def read_sentences(path: str, tag_scheme: str, label: str | int | None = None) -> TaggedSentences:
    """Reads sentences of tagged words.

    Args:
        path: A file of CoNLL columns, or annotated JSON Lines (.jsonl).
        tag_scheme: The scheme to convert the tags to: "bio" or "iobes".
        label: The column of the tags, from 0; by default the last.

    Raises:
        ValueError: The file is wrong, or `label` is the name of a column.
    """
    column = -1 if label is None else label
    if path.lower().removesuffix(".gz").endswith((".jsonl", ".json")):
        return tagged_words(read_entity_rows(path), tag_scheme)
    if isinstance(column, str):
        raise ValueError(f"`label` must be the number of a column. Received: label={column!r}")
    return in_scheme(read_conll(path, tag_column=column), tag_scheme)


def is_span_tagger(architecture: str | None, checkpoint: Any) -> bool:
    """Returns whether a Hugging Face checkpoint with token labels tags spans without types.

    Args:
        architecture: The transformers class named in its configuration, or None.
        checkpoint: The checkpoint.
    """
    named = checkpoint.source_config.get("id2label") or {}
    return architecture == "BertForTokenClassification" and list(named.values()) == list("BIO")


def tag_names(types: Sequence[str], scheme: str) -> list[str]:
    """Returns the tags of entity types, "O" first.

    Args:
        types: The types.
        scheme: "bio" or "iobes".
    """
    letters = {"bio": "BI", "iobes": "BIES"}[scheme]
    return ["O", *(f"{letter}-{kind}" for kind in types for letter in letters)]


TASK = EntityTask()
