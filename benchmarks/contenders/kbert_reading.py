"""kbert from questions and whole articles to answers, through an export."""

import json
from pathlib import Path

from side_by_side.turns import Turns, memory

turns = Turns()

from kbert.serving.loading.exported import load_export


def main() -> None:
    """Answers with milliseconds of answering all questions, one a request."""
    rows = json.loads(Path(turns.settings["data"]).read_text())
    exported = load_export(turns.settings["export"])
    loaded = memory()

    def answer() -> list[str]:
        answers = []
        for question, context in rows:
            found = exported.run({"question": [question], "context": [context]})
            answers.append(found["answer"][0].decode())
        return answers

    packages = ("kbert-tf", "keras", "tensorflow", "tensorflow-text")
    turns.ready(*packages, loaded_mib=loaded, answers=answer())
    turns.serve({"answer": answer})


if __name__ == "__main__":
    main()
