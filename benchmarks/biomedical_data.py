"""Text and questions of a domain: biomedical abstracts and articles.

    python benchmarks/biomedical_data.py BIOMED_DIRECTORY SQUAD_DIRECTORY OUTPUT_DIRECTORY

COVID-QA's questions are split by article, 70 % to train, 15 % to choose by and 15 % to measure:
train.json, validation.json, test.json in SQuAD's layout. Each question reads its article whole, so
of a test article six at most are asked, of one to choose by three. corpus.txt is the text to
pretrain on: the abstracts of PubMedQA and the articles of train.json alone, a blank line between
documents; held-out.txt holds the articles of validation.json. general.json holds questions of SQuAD
1.1, of which a reader learns what an answer is: COVID-QA alone has too few.
"""

import argparse
import json
import random
import re
from pathlib import Path

from question_answering import chosen_questions
from side_by_side.question_splits import split_by_title

from kbert.data.questions.question_examples import QuestionExamples
from kbert.data.questions.squad import read_squad
from kbert.storage.files import atomic_directory

PARTS = {"train": 0.7, "validation": 0.15, "test": 0.15}
SEED = 1
GENERAL_QUESTIONS = 2000
MOST_QUESTIONS = {"validation": 3, "test": 6}  # of an article


def articles(examples: QuestionExamples) -> list[str]:
    """The different texts, each as one document: without blank lines."""
    return [re.sub(r"\n\s*\n", "\n", text).strip() for text in dict.fromkeys(examples.contexts)]


def squad_layout(examples: QuestionExamples) -> dict[str, object]:
    """The questions as SQuAD's JSON has them, one paragraph an article."""
    paragraphs: dict[str, list[dict[str, object]]] = {}
    for id, question, context, answers in zip(
        examples.ids, examples.questions, examples.contexts, examples.answers
    ):
        found = [{"text": answer.text, "answer_start": answer.start} for answer in answers]
        asked = {"id": id, "question": question, "answers": found}
        paragraphs.setdefault(context, []).append(asked)
    data = [
        {"title": "", "paragraphs": [{"context": context, "qas": asked}]}
        for context, asked in paragraphs.items()
    ]
    return {"version": "1.1", "data": data}


def at_most(examples: QuestionExamples, count: int) -> QuestionExamples:
    """So many questions about each article, drawn always the same."""
    rows: list[int] = []
    left = dict.fromkeys(examples.contexts, count)
    order = list(range(len(examples)))
    random.Random(SEED).shuffle(order)
    for row in order:
        left[examples.contexts[row]] -= 1
        if left[examples.contexts[row]] >= 0:
            rows.append(row)
    return examples.select(sorted(rows))


def write(source: Path, squad: Path, output: Path) -> None:
    """Writes all files into a new folder, which is there whole or not at all."""
    questions = read_squad(source / "covid-qa.json")
    split = dict(zip(PARTS, split_by_title(questions, list(PARTS.values()), SEED)))
    abstracts = json.loads((source / "pubmedqa.json").read_text(encoding="utf-8"))
    documents = ["\n".join(abstract["CONTEXTS"]) for abstract in abstracts.values()]
    documents += articles(split["train"])
    for part, count in MOST_QUESTIONS.items():
        split[part] = at_most(split[part], count)
    split["general"] = chosen_questions(squad, GENERAL_QUESTIONS)
    with atomic_directory(output) as folder:
        for part, examples in split.items():
            text = json.dumps(squad_layout(examples), ensure_ascii=False)
            (folder / f"{part}.json").write_text(text, encoding="utf-8")
            print(f"{part}: {len(examples)} questions about {len(articles(examples))} texts")
        (folder / "corpus.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")
        held_out = "\n\n".join(articles(split["validation"])) + "\n"
        (folder / "held-out.txt").write_text(held_out, encoding="utf-8")
    print(f"corpus: {len(documents)} documents, {sum(map(len, documents)):,} characters")


def main() -> None:
    """Writes the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="folder with covid-qa.json and pubmedqa.json")
    parser.add_argument("squad", type=Path, help="folder with train-v1.1.json.gz and so on")
    parser.add_argument("output", type=Path, help="new folder")
    arguments = parser.parse_args()
    write(arguments.source, arguments.squad, arguments.output)


if __name__ == "__main__":
    main()
