"""Do all entities stand where the recognizer says?

    python benchmarks/entity_places.py DATA_DIRECTORY --model minilm-ner

Over the sentences of WNUT-17 and wikigold, the contexts of SQuAD's dev sets and the whole articles
of COVID-QA: `text[start:end]` must be the entity, in code points and in bytes.
"""

import argparse
from pathlib import Path
from typing import Any

from side_by_side.results import keep_row

from kbert.data.entities.tagged_sentences import read_conll
from kbert.data.questions.squad import read_squad
from kbert.tasks.ner.model import EntityRecognizer

RESULTS = Path(__file__).parent / "results" / "entity_places.json"
KEY = ("file", "model")
SENTENCES = (
    "ner/wnut17/wnut17train.conll",
    "ner/wnut17/emerging.dev.conll",
    "ner/wnut17/emerging.test.annotated",
    "ner/wikigold/wikigold.conll.txt",
)
QUESTIONS = ("squad/dev-v1.1.json.gz", "squad/dev-v2.0.json.gz", "biomed/covid-qa.json")


def texts_of(file: Path) -> list[str]:
    """The different texts of a file."""
    if file.suffix in (".gz", ".json"):
        return list(dict.fromkeys(read_squad(file).contexts))
    return read_conll(file).texts


def checked(model: EntityRecognizer, file: Path) -> dict[str, Any]:
    """Counts entities, and those that are not at their place."""
    texts = texts_of(file)
    count = wrong = 0
    for text, row in zip(texts, model.predict(texts)):
        raw = text.encode()
        for i in range(row["count"]):
            entity = row["entity"][i]
            in_points = text[row["start"][i] : row["end"][i]].encode() == entity
            in_bytes = raw[row["start_byte"][i] : row["end_byte"][i]] == entity
            count += 1
            wrong += not (in_points and in_bytes)
    return {
        "texts": len(texts),
        "characters": sum(map(len, texts)),
        "entities": count,
        "not_at_their_place": wrong,
    }


def main() -> None:
    """Checks all files; each result is written at once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with ner/, squad/ and biomed/")
    parser.add_argument("--model", default="minilm-ner", help="name or folder")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    model = EntityRecognizer.from_pretrained(arguments.model)
    for name in (*SENTENCES, *QUESTIONS):
        row = {"file": Path(name).name, "model": arguments.model}
        keep_row(arguments.output, row | checked(model, arguments.data / name), KEY)


if __name__ == "__main__":
    main()
