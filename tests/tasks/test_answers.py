import numpy as np

from kbert.tasks.answers import Span, plain_values, records, spans, with_answers


def test_values_are_those_of_json():
    row = {"a": np.array([b"x", b"\xff"], object), "b": np.float32(0.5), "c": np.array([[1], [2]])}
    assert plain_values(row) == {"a": ["x", "\ufffd"], "b": 0.5, "c": [[1], [2]]}


def test_columns_become_rows():
    assert records({"a": [1, 2], "b": ["x", "y"]}) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    found = [{"entity": "Ann", "start": 0, "end": 3, "score": 0.5, "label": "PER"}]
    assert spans(found, "entity") == [Span("Ann", 0, 3, 0.5, "PER")]


def test_only_the_neighbourhood_of_a_mark_is_shown():
    text = "x" * 400 + "Ann" + "y" * 10
    assert with_answers(text, [(400, 403)]).plain == "... " + "x" * 300 + "[Ann]" + "y" * 10
    text = "x" * 10 + "Ann, Bob" + "y" * 400
    shown = with_answers(text, [(10, 13), (15, 18)]).plain
    assert shown == "x" * 10 + "[Ann], [Bob]" + "y" * 300 + " ..."


def test_a_text_is_cut_between_words():
    text = "so " * 150 + "Ann" + " so" * 150
    shown = with_answers(text, [(450, 453)]).plain
    assert shown == "... " + "so " * 99 + "[Ann]" + " so" * 99 + " ..."
