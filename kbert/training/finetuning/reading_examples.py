"""The examples of runs that read: questions about texts, and sentences of tagged words."""

import logging

from kbert.data.entities.conll import read_conll
from kbert.data.entities.entity_rows import read_entity_rows
from kbert.data.entities.entity_words import tagged_words
from kbert.data.entities.tagged_sentences import TaggedSentences, in_scheme
from kbert.data.questions.answer_alignment import align_answers, all_occurrences
from kbert.data.questions.question_examples import QuestionExamples
from kbert.data.questions.squad import read_questions
from kbert.data.tfds.reading import read_tfds_questions, read_tfds_sentences
from kbert.training.config.finetuning_checks import TFDS
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.runs.run_log import tell_stage

logger = logging.getLogger(__name__)
ReadingExamples = QuestionExamples | TaggedSentences
_SPLITS = {"train": "train", "validation": "validation", "test": "test"}


def read_reading(config: RunConfig, part: str) -> ReadingExamples | None:
    """Reads one part of the examples, or returns None where the configuration has none.

    Answers that do not stand where they say are moved or left out of training, and logged with
    counts and ids.

    Args:
        config: The run's configuration.
        part: "train", "validation" or "test".

    Raises:
        ValueError: The file is wrong; the message names the place in it.
        FileNotFoundError: There is no such file.
    """
    given = getattr(config, part)
    if given is None:
        return None
    tell_stage(f"reading {given}")
    if config.task == "ner":
        return read_sentences(given, config, part)
    return _questions(given, config, part)


def read_sentences(given: str, config: RunConfig, part: str) -> TaggedSentences:
    """Reads sentences of tagged words, their tags in the scheme of the run.

    Args:
        given: A file of CoNLL columns, annotated JSON Lines (.jsonl), or tfds:NAME.
        config: The run's configuration.
        part: "train", "validation" or "test".
    """
    column = -1 if config.label is None else config.label
    if given.startswith(TFDS):
        name, _, split = given.removeprefix(TFDS).partition("@")
        found = read_tfds_sentences(name, split or _SPLITS[part], config.data)
    elif given.lower().removesuffix(".gz").endswith((".jsonl", ".json")):
        return tagged_words(read_entity_rows(given), config.tag_scheme)
    elif isinstance(column, str):
        raise ValueError(f"`label` must be the number of a column. Received: label={column!r}")
    else:
        found = read_conll(given, tag_column=column)
    return in_scheme(found, config.tag_scheme)


def _questions(given: str, config: RunConfig, part: str) -> QuestionExamples:
    if given.startswith(TFDS):
        name, _, split = given.removeprefix(TFDS).partition("@")
        examples = read_tfds_questions(name, split or _SPLITS[part], config.data)
    else:
        examples = read_questions(given)
    if part != "train" and config.task == "question-answering":
        return examples  # measured by their texts
    examples = aligned_questions(examples)
    return all_occurrences(examples) if config.all_occurrences else examples


def aligned_questions(examples: QuestionExamples) -> QuestionExamples:
    """Questions whose answers stand where they say; what was wrong is logged.

    Args:
        examples: Questions that a model learns from, or by whose places it is measured.

    Raises:
        ValueError: They were read without answers.
    """
    examples, report = align_answers(examples)
    if report.misaligned:
        logger.warning("%s", report)
    return examples


def tag_names(types: list[str], scheme: str) -> list[str]:
    """The tags of some types of entities, "O" first.

    Args:
        types: The types.
        scheme: "bio" or "iobes".
    """
    letters = {"bio": "BI", "iobes": "BIES"}[scheme]
    return ["O", *(f"{letter}-{kind}" for kind in types for letter in letters)]
