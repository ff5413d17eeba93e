"""The task ner: named entities in texts of any length."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from kbert.data.entities.entity_rows import read_entity_rows, tagged_words
from kbert.data.entities.tagged_sentences import TaggedSentences, in_scheme, read_conll
from kbert.tasks.answers import Spans, marked, records, spans
from kbert.tasks.options import FEATURE_OPTIONS
from kbert.tasks.reading_task import ReadingTask

_COLUMNS = ("entity", "label", "score", "start", "end", "start_byte", "end_byte")
_STYLES = (
    "bold black on cyan",
    "bold black on yellow",
    "bold white on magenta",
    "bold white on blue",
    "bold black on green",
    "bold white on red",
)


class EntityTask(ReadingTask):
    """The task of finding named entities."""

    name = "ner"
    model_name = "EntityRecognizer"
    module = "kbert.tasks.ner.model"
    does = "finds names and other entities in a text"
    page = "entities"
    outputs = ("count", "entity")
    answer_keys = ("entities",)
    answer_list = "entities"
    compared = ("f1", "precision", "recall", "strict_f1")
    columns = ("label",)
    reads_tags = True
    settings = ("stride", "dropout")
    options = ("tag_scheme", *FEATURE_OPTIONS)

    def json_answer(self, plain: dict[str, Any]) -> dict[str, Any]:
        found = records({key: plain.pop(key) for key in _COLUMNS})
        return {"entities": found[: plain.pop("count")], **plain}

    def typed_answer(self, answer: Mapping[str, Any]) -> Spans:
        return Spans(spans(answer["entities"], "entity"))

    def show_answer(self, row: tuple[str, ...], answer: Mapping[str, Any], console: Any) -> None:
        content, entities = row[-1], answer["entities"]
        labels = sorted({one["label"] for one in entities})
        styles = {label: _STYLES[number % len(_STYLES)] for number, label in enumerate(labels)}

        def mark(entity: str, label: str) -> Text:
            # Brackets show the ends where there are no colours.
            return Text.assemble((f"[{entity}", styles[label]), (f" {label}]", "dim"))

        marks = [(e["start"], e["end"], mark(e["entity"], e["label"])) for e in entities]
        console.print(marked(content, marks))

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        is_labeller = architecture == "BertForTokenClassification"
        return is_labeller and not is_span_tagger(architecture, checkpoint)

    def read_file(self, path: str, config: Any, part: str) -> TaggedSentences:
        return read_sentences(path, config.tag_scheme, config.label, cut=part == "train")

    def read_tfds(self, name: str, split: str, config: Any, part: str) -> TaggedSentences:
        from kbert.data.tfds_examples import read_tfds_sentences

        return in_scheme(read_tfds_sentences(name, split, config.data), config.tag_scheme)

    def labels(self, config: Any, train: Any, glue: str | None) -> list[str] | None:
        if not train.labels:
            raise ValueError(
                f"{train.source}: the training sentences must have an entity. Received: the tag O "
                "alone"
            )
        if not all(train.labels):
            raise ValueError(
                f"{train.source}: the tags must have the types of entities, as B-PER has. Received:"
                " tags without one, such as B alone"
            )
        return tag_names(train.labels, config.tag_scheme)

    def check_part(self, part: str, examples: Any, train: Any, labels: list[str] | None) -> None:
        unknown = sorted(set(examples.labels) - set(train.labels))
        if unknown:
            raise ValueError(
                f"{examples.source}: the types must be among those of training, "
                f"{', '.join(train.labels)}. Received: {', '.join(unknown)}"
            )

    def inputs(self, model: Any, examples: Any) -> Any:
        from kbert.tasks.inputs import WindowInput

        if not isinstance(examples, TaggedSentences):
            raise ValueError(
                f"{examples.source}: the examples must be sentences of tagged words for a "
                f"{type(model).__name__}. Received: questions"
            )
        if examples.tags is None:
            raise ValueError(f"{examples.source}: the sentences must have tags. Received: none")
        return WindowInput(*model.examples(model.read_inputs(examples), examples.tags))

    def tuned_metrics(self, model: Any, examples: Any, tune: bool) -> dict[str, Any]:
        return measure_entities(model, examples)  # nothing is tuned

    def measured_examples(self, path: Any, columns: Mapping[str, Any], model: Any = None) -> Any:
        column = columns.get("label")
        if isinstance(column, str) and column.lstrip("-").isdecimal():
            column = int(column)
        return read_sentences(str(path), scheme_of(model.labels), column, cut=False)

    def rows(self, examples: Any) -> list[tuple[Any, ...]]:
        return [(" ".join(words),) for words in examples.words]


def measure_entities(model: Any, sentences: TaggedSentences) -> dict[str, Any]:
    """Evaluates an `EntityRecognizer` on sentences of given words, with tags in its scheme.

    A warning names entity types that the model does not know.
    """
    from kbert.metrics.entities import entity_metrics
    from kbert.text.sequences.entities import entity_types

    known = entity_types(model.labels)
    tags = sorted({tag for row in sentences.tags or [] for tag in row})
    unknown = [kind or "(none)" for kind in entity_types(tags) if kind not in known]
    if unknown:
        warnings.warn(
            f"{sentences.source}: the model finds no entities of the types {', '.join(unknown)}. "
            f"Its types: {', '.join(kind or '(none)' for kind in known)}",
            stacklevel=2,
        )
    found = model.predict_tags(sentences.words)
    scheme = scheme_of(model.labels)
    if scheme == "bio" and not getattr(model, "strict_tags", True):
        found = [_begun(tags) for tags in found]
    return entity_metrics(sentences.tags or [], found, scheme)


def _begun(tags: Sequence[str]) -> list[str]:
    """Returns tags in which B- begins each entity, where I- behind another type or O may, too."""
    return [
        f"B{tag[1:]}" if tag[0] == "I" and (before == "O" or before[1:] != tag[1:]) else tag
        for before, tag in zip(["O", *tags], tags)
    ]


def scheme_of(tags: Sequence[str]) -> str:
    """Returns the scheme of tags: "bio" or "iobes"."""
    return "iobes" if any(tag[:2] in ("E-", "S-") for tag in tags) else "bio"


def read_sentences(
    path: str, tag_scheme: str, label: str | int | None = None, cut: bool = True
) -> TaggedSentences:
    """Reads sentences of tagged words, in the scheme "bio" or "iobes".

    The file has CoNLL columns, of which `label` is that of the tags, from 0, by default the last;
    or annotated JSON Lines (.jsonl), whose words end at the borders of entities too if they are to
    be `cut` there.

    Raises:
        ValueError: The file is wrong, or `label` is the name of a column.
    """
    column = -1 if label is None else label
    if path.lower().removesuffix(".gz").endswith((".jsonl", ".json")):
        return tagged_words(read_entity_rows(path), tag_scheme, cut)
    if isinstance(column, str):
        raise ValueError(f"`label` must be the number of a column. Received: label={column!r}")
    return in_scheme(read_conll(path, tag_column=column), tag_scheme)


def is_span_tagger(architecture: str | None, checkpoint: Any) -> bool:
    """Returns whether a Hugging Face checkpoint with token labels tags spans without types."""
    named = checkpoint.source_config.get("id2label") or {}
    return architecture == "BertForTokenClassification" and list(named.values()) == list("BIO")


def tag_names(types: Sequence[str], scheme: str) -> list[str]:
    """Returns the tags of entity types, in the scheme "bio" or "iobes", "O" first."""
    letters = {"bio": "BI", "iobes": "BIES"}[scheme]
    return ["O", *(f"{letter}-{kind}" for kind in types for letter in letters)]


TASK = EntityTask()
