"""Metrics of SQuAD. Expected numbers by hand from the definitions, and a published score."""

import gzip
import json

import numpy as np
import pytest

from kbert.metrics.answers import squad2_metrics, squad_metrics

ANSWERS = {"a": ["the red lamp", "lamp"], "b": ["1843"], "c": ["Ada Möller"]}
# a: equal but for case, article and punctuation. b: 1 of 2 words right, all found: F1 2/3.
PREDICTIONS = {"a": "Red  lamp!", "b": "in 1843", "c": "Bo", "unknown": "x"}
EXPECTED = {"exact_match": 100 / 3, "f1": 100 * (1 + 2 / 3) / 3, "total": 3}


def test_version_1(recwarn):
    metrics = squad_metrics(ANSWERS, PREDICTIONS)
    assert metrics == pytest.approx(EXPECTED)
    assert list(metrics) == ["exact_match", "f1", "total"]
    json.dumps(metrics)
    assert not recwarn.list


def test_the_best_of_several_answers_counts():
    answers = {"a": ["Ada", "Ada Möller of Orm"]}
    metrics = squad_metrics(answers, {"a": "Ada Möller"})
    # Against "Ada": precision 1/2, recall 1; against the longer one: precision 1, recall 1/2.
    assert metrics == pytest.approx({"exact_match": 0.0, "f1": 100 * 2 / 3, "total": 1})


def test_a_question_without_prediction_counts_0():
    predictions = {id: text for id, text in PREDICTIONS.items() if id != "c"}
    with pytest.warns(UserWarning, match=r"1 of 3 questions have no prediction and count 0: c"):
        assert squad_metrics(ANSWERS, predictions) == pytest.approx(EXPECTED)


ANSWERS2 = {"h1": ["lamp"], "h2": ["1843"], "n1": [], "n2": []}
SCORES = {"h1": -5.0, "h2": 1.0, "n1": 0.5, "n2": 8.0}


def test_version_2():
    predictions = {"h1": "the lamp", "h2": "in 1843", "n1": "", "n2": "boat"}
    metrics = squad2_metrics(ANSWERS2, predictions)
    assert metrics == pytest.approx(
        {
            "exact": 50.0,
            "f1": 100 * (1 + 2 / 3 + 1) / 4,
            "total": 4,
            "HasAns_exact": 50.0,
            "HasAns_f1": 100 * (1 + 2 / 3) / 2,
            "HasAns_total": 2,
            "NoAns_exact": 50.0,
            "NoAns_f1": 50.0,
            "NoAns_total": 2,
        }
    )
    json.dumps(metrics)


def test_the_best_threshold():
    predictions = {"h1": "lamp", "h2": "in 1843", "n1": "x", "n2": "boat"}
    metrics = squad2_metrics(ANSWERS2, predictions, SCORES)
    # All without answer: 2 of 4. With an answer for h1, at -5: 3. For n1 too: 2. For h2 too: exact
    # 2, F1 2 2/3. For all: 1 and 1 2/3.
    assert (metrics["best_exact"], metrics["best_exact_thresh"]) == (75.0, -5.0)
    assert (metrics["best_f1"], metrics["best_f1_thresh"]) == (75.0, -5.0)
    # A score above 1 is no probability; the answers as given are judged as they are.
    assert (metrics["exact"], metrics["f1"]) == (25.0, pytest.approx(100 * (1 + 2 / 3) / 4))
    # Average precision: h1 right at rank 1, h2 at rank 3 with F1 2/3.
    assert metrics["pr_exact_ap"] == pytest.approx(100 * 1 / 2)
    assert metrics["pr_f1_ap"] == pytest.approx(100 * (1 * 1 / 2 + (5 / 3) / 3 * (1 / 3)))
    assert metrics["pr_oracle_ap"] == pytest.approx(100 * (1 / 2 + 2 / 3 * 1 / 2))
    json.dumps(metrics)


def test_where_no_answer_at_all_is_best():
    predictions = {"h1": "x", "h2": "x", "n1": "x", "n2": "x"}
    metrics = squad2_metrics(ANSWERS2, predictions, SCORES)
    assert metrics["best_exact"] == 50.0
    assert -5.001 < metrics["best_exact_thresh"] < -5.0  # just below the lowest score


def test_only_the_order_of_the_scores_matters():
    generator = np.random.default_rng(0)
    ids = [str(i) for i in range(40)]
    answers = {id: ["x"] if generator.random() < 0.5 else [] for id in ids}
    predictions = {id: "x" if generator.random() < 0.7 else "y" for id in ids}
    scores = {id: float(generator.normal(0, 20)) for id in ids}
    metrics = squad2_metrics(answers, predictions, scores)
    squashed = {id: 1 / (1 + np.exp(-score / 20)) for id, score in scores.items()}
    assert squad2_metrics(answers, predictions, squashed)["best_f1"] == metrics["best_f1"]
    # Every threshold tried in turn.
    correct = {
        threshold: np.mean(
            [
                (
                    bool(answers[id]) and predictions[id] == "x"
                    if scores[id] <= threshold
                    else not answers[id]
                )
                for id in ids
            ]
        )
        for threshold in (-1e9, *scores.values())
    }
    assert metrics["best_exact"] == pytest.approx(100 * max(correct.values()))
    assert correct[metrics["best_exact_thresh"]] == max(correct.values())


def test_equal_scores_share_a_threshold():
    scores = dict.fromkeys(ANSWERS2, 2.5)
    predictions = {"h1": "lamp", "h2": "1843", "n1": "x", "n2": "x"}
    metrics = squad2_metrics(ANSWERS2, predictions, scores)
    assert metrics["best_exact_thresh"] == 2.5 or 2.499 < metrics["best_exact_thresh"] < 2.5


@pytest.mark.parametrize("score", [0.0, -2.855675458908081, 1e4, -3e5])
def test_no_answer_at_all_in_float32(score):
    metrics = squad2_metrics({"n1": [], "n2": []}, {"n1": "x", "n2": "y"}, {"n1": score, "n2": 1e6})
    assert metrics["best_f1"] == 100.0
    assert np.float32(score) > np.float32(metrics["best_f1_thresh"])


def test_questions_of_one_kind():
    metrics = squad2_metrics({"n1": []}, {"n1": ""}, {"n1": 1.0})
    assert (metrics["exact"], metrics["best_exact"]) == (100.0, 100.0)
    assert "HasAns_exact" not in metrics and "pr_exact_ap" not in metrics
    metrics = squad2_metrics({"h1": ["a b"]}, {"h1": "b"})
    assert "NoAns_exact" not in metrics


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: squad_metrics({}, {"a": "x"}), r"`answers` must hold a question\. Received: none"),
        (lambda: squad_metrics({"a": []}, {"a": "x"}), r"an answer for each .*none for 'a'"),
        (lambda: squad_metrics({"a": "x"}, {"a": "x"}), r"list of strings for each.*'x' for 'a'"),
        (lambda: squad_metrics({"a": [3]}, {"a": "x"}), r"list of strings for each.*\[3\] for 'a'"),
        (lambda: squad_metrics({"a": ["x"]}, {}), r"such as 'a'\. Received: 0 predictions, none"),
        (lambda: squad_metrics({"a": ["x"]}, {"b": "x"}), r"Received: 1 predictions, none for any"),
        (lambda: squad_metrics({"a": ["x"]}, {"a": None}), r"a string for each.*None for 'a'"),
        (
            lambda: squad2_metrics({"a": ["x"], "b": []}, {"a": "x"}),
            r"`predictions` must hold a value for each of the 2 questions.* 1 of them: b",
        ),
        (
            lambda: squad2_metrics({"a": ["x"]}, {"a": "x"}, {"b": 1.0}),
            r"`null_scores` must hold a value for each of the 1 questions.* 1 of them: a",
        ),
        (
            lambda: squad2_metrics({"a": ["x"]}, {"a": "x"}, {"a": float("inf")}),
            r"`null_scores` must be finite numbers\. Received: inf for 'a'",
        ),
        (
            lambda: squad2_metrics({"a": ["x"]}, {"a": "x"}, {"a": "0.5"}),
            r"`null_scores` must be finite numbers\. Received: '0\.5' for 'a'",
        ),
        (
            lambda: squad2_metrics({"a": ["x"]}, {"a": "x"}, {"a": None}),
            r"`null_scores` must be finite numbers\. Received: None for 'a'",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_published_predictions(shared_data):
    # google-research/bert, ensemble of SQuAD 1.1, scored by the official evaluate-v1.1.py.
    answers = gold_answers(shared_data / "squad" / "dev-v1.1.json.gz")
    path = shared_data / "squad" / "dev-v1.1.predictions-bert-ensemble.json"
    metrics = squad_metrics(answers, json.loads(path.read_bytes()))
    assert metrics["exact_match"] == pytest.approx(86.206, abs=5e-4)
    assert metrics["f1"] == pytest.approx(92.196, abs=5e-4)
    assert metrics["total"] == 10_570


def test_the_right_answers_score_100(shared_data):
    answers = gold_answers(shared_data / "squad" / "dev-v2.0.json.gz")
    first = {id: texts[0] if texts else "" for id, texts in answers.items()}
    metrics = squad2_metrics(answers, first, {id: float(not text) for id, text in first.items()})
    assert (metrics["exact"], metrics["f1"], metrics["total"]) == (100.0, 100.0, 11_873)
    assert (metrics["HasAns_total"], metrics["NoAns_total"]) == (5_928, 5_945)
    assert (metrics["best_exact"], metrics["best_exact_thresh"]) == (100.0, 0.0)


def gold_answers(path):
    """The answers of a file of SQuAD, read with the standard library alone."""
    return {
        entry["id"]: [answer["text"] for answer in entry["answers"]]
        for article in json.loads(gzip.decompress(path.read_bytes()))["data"]
        for paragraph in article["paragraphs"]
        for entry in paragraph["qas"]
    }
