from tests.tasks.shown_answers import shown


def test_entities_with_a_style_a_type():
    entities = [
        {"entity": "Ann", "label": "PER", "start": 0, "end": 3},
        {"entity": "York", "label": "LOC", "start": 9, "end": 13},
    ]
    plain, styled = shown(("Ann from York[x]",), {"entities": entities})
    assert plain.splitlines()[0] == "[Ann PER] from [York LOC][x]"
    assert "\x1b[1;30;43m[Ann\x1b[0m" in styled and "\x1b[1;30;46m[York\x1b[0m" in styled
