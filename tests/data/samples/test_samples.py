"""The sample data: what its README promises."""

import re
from collections import Counter
from itertools import combinations

import pytest

from kbert.data.classification.labels import check_labels, label_names
from kbert.data.classification.text_pairs import read_text_examples
from kbert.data.entities.tag_schemes import detect_scheme
from kbert.data.entities.tagged_sentences import read_conll
from kbert.data.questions.squad import read_squad
from kbert.data.samples import sample_path
from kbert.data.translation.parallel_text import read_parallel_tsv

SIZES = {"train": 360, "validation": 90, "test": 90}
PAIR_SIZES = {"train": 600, "validation": 75, "test": 75}
TOPICS = ["account", "billing", "delivery", "praise", "product_question", "returns"]


@pytest.fixture(scope="module")
def splits():
    return {name: read_text_examples(sample_path(f"support/{name}.tsv")) for name in SIZES}


@pytest.fixture(scope="module")
def pairs():
    return {n: read_parallel_tsv(sample_path(f"translation/{n}.tsv")) for n in PAIR_SIZES}


def words(text):
    return re.findall(r"\w+", text.lower())


def test_sizes_and_balance(splits):
    for name, size in SIZES.items():
        assert Counter(splits[name].labels) == {topic: size // 6 for topic in TOPICS}
        assert splits[name].text_b is None
    names = label_names(splits["train"])
    assert names == TOPICS
    check_labels(splits["validation"], names)
    check_labels(splits["test"], names)


def test_lengths_vary(splits):
    lengths = [len(text.split()) for examples in splits.values() for text in examples.text_a]
    assert (min(lengths), max(lengths)) == (1, 45)
    assert 12 < sum(lengths) / len(lengths) < 16


def test_texts_are_clean(splits):
    for examples in splits.values():
        for text in examples.text_a:
            assert text == text.strip()
            assert "  " not in text


def test_there_are_emoji_and_accents(splits):
    everything = "".join(text for examples in splits.values() for text in examples.text_a)
    assert {"🙂", "❤", "é", "ñ", "ü", "£", "€"} <= set(everything)


def test_no_two_messages_are_alike(splits):
    """Two messages share at most 40 percent of their words, where both have four or more."""
    texts = [text for examples in splits.values() for text in examples.text_a]
    assert len({" ".join(words(text)) for text in texts}) == sum(SIZES.values())
    bags = [(text, set(words(text))) for text in texts]
    for (one, first), (other, second) in combinations(bags, 2):
        if min(len(first), len(second)) >= 4:
            assert len(first & second) / len(first | second) <= 0.4, (one, other)


def test_splits_share_no_phrase_of_five_words(splits):
    """Templates would show as long phrases that many messages share."""
    phrases = {
        name: {
            tuple(tokens[i : i + 5])
            for tokens in map(words, examples.text_a)
            for i in range(len(tokens) - 4)
        }
        for name, examples in splits.items()
    }
    for one, other in combinations(phrases, 2):
        shared = phrases[one] & phrases[other]
        # English has its set phrases: "I'd like to know if" and such.
        assert len(shared) <= 3, shared


def test_sizes_of_the_translations(pairs):
    assert {name: len(examples) for name, examples in pairs.items()} == PAIR_SIZES


def test_no_sentence_is_translated_twice(pairs):
    for side in ("sources", "targets"):
        sentences = [text for examples in pairs.values() for text in getattr(examples, side)]
        assert len(set(sentences)) == len(sentences) == sum(PAIR_SIZES.values())


@pytest.mark.parametrize("side, size", [("sources", 152), ("targets", 159)])
def test_what_is_held_out_has_no_word_of_its_own(pairs, side, size):
    counts = {n: Counter(w for t in getattr(x, side) for w in words(t)) for n, x in pairs.items()}
    assert len(counts["train"]) == size
    for name in ("validation", "test"):
        assert all(counts["train"][word] >= 4 for word in counts[name])


def test_translations_are_clean_and_short(pairs):
    for examples in pairs.values():
        for source, target in zip(examples.sources, examples.targets):
            assert re.fullmatch(r"[A-Z][A-Za-zé ]+[.?]", source)
            assert re.fullmatch(r"[A-Z][A-Za-zäöüÄÖÜßé ]+[.?]", target)
            assert source[-1] == target[-1] and "  " not in source + target
            assert max(len(words(source)), len(words(target))) <= 14


def test_some_translations_by_hand(pairs):
    """Word order, case and agreement, one pair of each kind."""
    known = {s: t for x in pairs.values() for s, t in zip(x.sources, x.targets)}
    expected = {
        "I am drinking coffee in the café.": "Ich trinke im Café Kaffee.",
        "Every day I read a book in the garden.": "Jeden Tag lese ich im Garten ein Buch.",
        "The man ate an apple yesterday.": "Der Mann hat gestern einen Apfel gegessen.",
        "My parents want to play the piano.": "Meine Eltern wollen Klavier spielen.",
        "I do not drink tea.": "Ich trinke keinen Tee.",
        "The boy is not visiting the museum today.": "Der Junge besucht das Museum heute nicht.",
        "Is the girl playing chess?": "Spielt das Mädchen Schach?",
        "Where is Tom eating an apple?": "Wo isst Tom einen Apfel?",
    }
    assert {source: known[source] for source in expected} == expected


def test_readme_lies_beside_the_data():
    readme = sample_path("support/train.tsv").parents[1] / "README.md"
    assert "Apache-2.0" in readme.read_text(encoding="utf-8")


def test_an_unknown_sample_lists_those_that_are_there():
    message = r"`name` must be one of .*support/test\.tsv, .*Received: name='support/dev\.tsv'"
    with pytest.raises(FileNotFoundError, match=message):
        sample_path("support/dev.tsv")


def test_questions():
    examples = read_squad(sample_path("questions/questions.json"))
    assert len(examples) == 22 and len(set(examples.contexts)) == 6
    for context, answers in zip(examples.contexts, examples.answers):
        assert answers
        assert all(context.startswith(answer.text, answer.start) for answer in answers)
        assert len({answer.text for answer in answers}) == len(answers)


def test_entities():
    sentences = read_conll(sample_path("entities/sentences.conll"))
    assert len(sentences) == 18 and sentences.labels == ["LOC", "MISC", "ORG", "PER"]
    assert detect_scheme(sentences.tags) == "bio"
    assert sum(tag.startswith("B-") for tags in sentences.tags for tag in tags) == 40
