from tests.tasks.shown_answers import shown


def test_an_answer_in_its_text():
    nbest = [{"answer": "York", "score": 0.5, "start": 9, "end": 13}]
    answer = {"answer": "York", "start": 9, "end": 13, "has_answer": True, "nbest": nbest}
    plain, styled = shown(("Where?", "Ann from York came"), answer)
    assert plain.splitlines()[:3] == ["Where?", "Ann from [York] came", "  1. York  0.500"]
    assert "\x1b[1;30;42m[York]\x1b[0m came" in styled


def test_a_long_text_is_cut_around_the_answer():
    text = "x" * 1000 + "York" + "y" * 1000
    nbest = [{"answer": "York", "score": 0.5, "start": 1000, "end": 1004}]
    answer = {"answer": "York", "start": 1000, "end": 1004, "has_answer": True, "nbest": nbest}
    plain = "".join(shown(("Where?", text), answer)[0].split("\n"))
    assert "... " + "x" * 300 + "[York]" + "y" * 300 + " ..." in plain


def test_no_answer():
    answer = {"answer": "", "score": 0.75, "has_answer": False, "nbest": []}
    assert shown(("Where?", "text"), answer)[0].splitlines()[1] == "no answer (0.75)"
