import pytest
import tensorflow as tf

from kbert.cli.actions import answering as answering_module
from kbert.cli.actions.answering import Answering, is_export, live_answering, open_model
from kbert.serving.format.signatures import Signature, SignatureTensor
from kbert.tasks.multiple_choice.model import MultipleChoice
from kbert.tasks.regression.model import Regressor
from kbert.training.runs.load_model import load_model
from tests.small_pipelines import (
    VOCABULARY,
    small_masked_language_model,
    small_multiple_choice,
)


def test_lines_become_rows():
    single, pair = Answering(("text",), None), Answering(("text_a", "text_b"), None)
    assert single.split("a\tb", 1) == ("a\tb",)
    assert pair.split("a\tb", 1) == ("a", "b")
    with pytest.raises(ValueError, match="stdin, line 7: the model reads text_a and text_b, with"):
        pair.split("a", 7)
    choices = Answering(("context", "choices"), None)
    assert choices.split("a\tb\tc\td", 1) == ("a", "b", "c", "d")
    with pytest.raises(ValueError, match="a context and two choices or more.*Received: 2 text"):
        choices.split("a\tb", 1)
    told = r"^`--text`: the model reads question and context \(--question with --context .*: 'a'$"
    with pytest.raises(ValueError, match=told):
        Answering(("question", "context"), None).check([("a",)], "`--text`")


def test_an_object_names_the_text_of_a_model_of_one():
    single = Answering(("text",), None)
    assert single.split('{"text": "a\\nb", "comment": "c"}', 1) == ("a\nb",)
    for line in ("{a} b", '{"text": \t', "[1]", " {", '{"a":' * 100_000, f'{{"a": {"1" * 5000}}}'):
        assert single.split(line, 1) == (line,)
    assert Answering(("image",), None).split(' {"image": "a.png"}', 1) == ("a.png",)
    for line in ('{"comment": "c"}', '{"text": 3}', '{"text": null}', "{}"):
        with pytest.raises(ValueError, match="stdin, line 7: the object must have a text named te"):
            single.split(line, 7)


def test_an_object_that_is_none_of_a_model_of_pairs():
    pair = Answering(("text_a", "text_b"), None)
    assert pair.split('{"text_a": "a", "text_b": "b"}', 1) == ("a", "b")
    assert pair.split("{a\tb", 1) == ("{a", "b")
    with pytest.raises(ValueError, match=r"line 2: .* tab between\. .* \(Expecting .* column 2\)"):
        pair.split("{a", 2)
    with pytest.raises(ValueError, match="a JSON object or texts with a tab between.*recursion"):
        pair.split('{"a":' * 100_000, 2)
    with pytest.raises(ValueError, match="line 2: the object must have the texts text_a, text_b"):
        pair.split('{"text_a": "a"}', 2)


def test_a_run_answers_in_order(finished_run, graphs):
    answering = open_model(finished_run)
    rows = [("the film was good",), ("bad " * 30,), ("",), ("the film was good",)]
    answers = answering.answers(rows)
    assert [answer["truncated"] for answer in answers] == [False, True, False, False]
    assert set(answers[0]["scores"]) == {"down", "up"}
    assert answers[0]["scores"] == pytest.approx(answers[3]["scores"])
    predicted = load_model(finished_run).predict([row[0] for row in rows])
    for answer, scores in zip(answers, predicted.tolist()):
        assert list(answer["scores"].values()) == pytest.approx(scores, abs=1e-6)
        assert answer["score"] == max(answer["scores"].values())
        assert answer["label"] == max(answer["scores"], key=answer["scores"].get)


def test_scores_and_choices(tiny, tmp_path):
    model = Regressor.from_pretrained(tiny.encoder, max_sequence_length=16, pair=True)
    answering = open_model(model.save_pretrained(tmp_path / "regressor"))
    assert answering.inputs == ("text_a", "text_b")
    assert set(answering.answers([("good", "bad")])[0]) == {"score", "truncated"}
    choosing = MultipleChoice.from_pretrained(tiny.encoder, max_sequence_length=16)
    answering = open_model(choosing.save_pretrained(tmp_path / "choice"))
    rows = [("the", "good", "bad"), ("film", "plot", "rain")]
    answers = answering.answers(rows)
    assert set(answers[0]) == {"choice", "score", "scores", "truncated"}
    assert [answer["scores"] for answer in answers] == [
        pytest.approx(scores.tolist(), abs=1e-6)
        for scores in choosing.predict(([row[0] for row in rows], [row[1:] for row in rows]))
    ]


def test_rows_of_different_numbers_of_choices():
    answering = live_answering(small_multiple_choice())
    rows = [("a", "good", "bad"), ("the", "good", "bad", "film"), ("film", "very", "a")]
    answers = answering.answers(rows)
    assert [len(answer["scores"]) for answer in answers] == [2, 3, 2]
    for row, answer in zip(rows, answers):
        assert answer["scores"] == pytest.approx(answering.answers([row])[0]["scores"], abs=1e-5)
    assert answering.answers([]) == []


def test_words_for_masks(tmp_path):
    """Those of the model, and two words a mask where two are wanted."""
    model = small_masked_language_model("mlm")
    saved = model.save_pretrained(tmp_path / "saved")
    rows = [("a [MASK] film",), ("[MASK] [MASK]",), ("none",)]
    expected = model.answers([row[0] for row in rows])
    answers = open_model(saved).answers(rows)
    for answer, one in zip(answers, expected, strict=True):
        assert answer["filled"] == one["filled"]
        for mask, wanted in zip(answer["masks"], one["masks"], strict=True):
            assert mask["words"] == [pytest.approx(word, abs=1e-5) for word in wanted["words"]]
            assert (mask["start"], mask["end"]) == (wanted["start"], wanted["end"])
    few = open_model(saved, nbest=2).answers(rows)
    masks = [mask for answer in few for mask in answer["masks"]]
    assert [len(mask["words"]) for mask in masks] == [2, 2, 2]
    assert [answer["filled"] for answer in few] == [one["filled"] for one in expected]
    (more,) = open_model(saved, nbest=9).answers([("a [MASK] film",)])
    assert len(more["masks"][0]["words"]) == 9  # a live model knows more
    with pytest.raises(ValueError, match=f"at most {len(VOCABULARY)}, the words and pieces"):
        open_model(saved, nbest=len(VOCABULARY) + 1)


def test_no_more_words_for_masks_than_an_export_gives(tmp_path, monkeypatch):
    """What an export answers is tested where it is loaded: here another one stands for it."""
    text = {"text": SignatureTensor("text:0", tf.string, (None,))}
    words = {"word": SignatureTensor("word:0", tf.string, (None, None, 5))}
    mask = {"start": 2, "end": 8, "words": [{"word": word, "score": 0.2} for word in "abcde"]}

    class Export:
        signatures = {"serving_default": Signature(text, words)}

        def input_names(self, signature):
            return list(self.signatures[signature].inputs)

        def answers(self, texts, signature):
            return [{"filled": text, "masks": [mask, mask]} for text in texts]

    monkeypatch.setattr(answering_module, "is_export", lambda path: True)
    monkeypatch.setattr(answering_module, "load_export", lambda path: Export())
    assert open_model(tmp_path).answers([("a",)]) == [{"filled": "a", "masks": [mask, mask]}]
    for nbest in (2, 5):
        (answer,) = open_model(tmp_path, nbest).answers([("a",)])
        first = {**mask, "words": mask["words"][:nbest]}
        assert answer == {"filled": "a", "masks": [first, first]}
    with pytest.raises(ValueError, match="`--nbest` must be at most 5, as many as the export"):
        open_model(tmp_path, nbest=6)


def test_what_is_neither_is_refused(tmp_path, tiny):
    assert not is_export(tmp_path)
    with pytest.raises(ValueError, match="an encoder without a task"):
        open_model(tiny.encoder)
    with pytest.raises(ValueError, match="`path` must be a checkpoint"):
        open_model(tmp_path)


def test_a_graph_is_made_as_for_an_export_without_autograph(graphs):
    class Model:
        def signatures(self):
            def is_long(text):
                return {"long": bool(text)}  # code that only AutoGraph could turn into a graph

            return {"serving_default": (is_long, [tf.TensorSpec((None,), tf.string, "text")])}

    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="as a Python `bool`"):
        live_answering(Model()).answers([("a",)])
