from tests.tasks.shown_answers import shown


def test_words_for_masks():
    words = [[("big", 0.5), ("red", 0.25)], [("##s", 1.0)]]
    masks = [
        {"words": [{"word": w, "score": s} for w, s in some], "start": start, "end": start + 6}
        for some, start in zip(words, (2, 13))
    ]
    answer = {"filled": "a big dog", "masks": masks}
    plain, styled = shown(("a [MASK] dog [MASK][x]",), answer)
    expected = ["a [big] dog [##s][x]", "  1. big 0.500, red 0.250", "  2. ##s 1.000"]
    assert plain.splitlines()[:3] == expected
    assert "a \x1b[1;30;42m[big]\x1b[0m dog" in styled
    assert shown(("none",), {"filled": "none", "masks": []})[0].splitlines() == ["none", ""]
