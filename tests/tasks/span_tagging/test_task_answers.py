from tests.tasks.shown_answers import shown


def test_several_answers():
    answers = [{"answer": "a", "start": 0, "end": 1}, {"answer": "b", "start": 2, "end": 3}]
    assert shown(("?", "a b c"), {"answers": answers})[0].splitlines()[:2] == ["?", "[a] [b] c"]
    assert "no answer" in shown(("?", "a b c"), {"answers": []})[0]
