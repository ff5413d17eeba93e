"""kbert from questions and whole articles to answers, through an export."""

import json
import tempfile
from pathlib import Path

from side_by_side.turns import Turns

turns = Turns()

from kbert.pipelines.question_answering import QuestionAnswerer
from kbert.serving.exported import load_export
from kbert.serving.saved_model import export


def main() -> None:
    """Answers with milliseconds of answering all questions, one a request."""
    rows = json.loads(Path(turns.settings["data"]).read_text())
    model = QuestionAnswerer.from_pretrained(turns.settings["model"], dtype=turns.settings["dtype"])
    with tempfile.TemporaryDirectory() as folder:
        exported = load_export(export(model, folder))

    def answer() -> list[str]:
        answers = []
        for question, context in rows:
            found = exported.run({"question": [question], "context": [context]})
            answers.append(found["answer"][0].decode())
        return answers

    turns.ready("kbert", "keras", "tensorflow", "tensorflow-text", answers=answer())
    turns.serve({"answer": answer})


if __name__ == "__main__":
    main()
