import pytest

from kbert.training.config.pretraining_config import PretrainingConfig

LEAST = {"text": ["a.txt"], "vocabulary": "vocab.txt", "output": "o"}


def config(**values):
    return PretrainingConfig.from_dict({**LEAST, **values})


def test_the_defaults_of_the_training_are_the_papers():
    # Devlin et al. 2019, appendix A.2: Adam with 1e-4, decay 0.01, warm-up 10,000, dropout 0.1;
    # google-research/bert: 15 %, at most 128 tokens, a tenth of them shorter, batches of 32.
    made = config()
    assert (made.learning_rate, made.weight_decay, made.warmup) == (1e-4, 0.01, 10_000)
    assert (made.dropout, made.attention_dropout, made.objective) == (0.1, 0.1, "mlm_nsp")
    assert (made.masked_share, made.short_share) == (0.15, 0.1)
    assert (made.max_sequence_length, made.batch_size, made.size) == (128, 32, "base")


@pytest.mark.parametrize(
    "values, warmup",
    [
        ({"steps": 1_000_000}, 10_000),
        ({"steps": 100_000}, 10_000),
        ({"steps": 5000}, 500),
        ({"steps": 5}, 0),
        ({"steps": 5000, "warmup_steps": 0}, 0),
        ({"steps": 5000, "warmup_steps": 5000}, 5000),
    ],
)
def test_warm_up_of_short_trainings(values, warmup):
    assert config(**values).warmup == warmup


def test_it_goes_to_a_dict_and_back(tmp_path):
    made = config(validation=["v.txt", "w/*.gz"], separator="==", ngram=3)
    assert PretrainingConfig.from_dict(made.to_dict()) == made
    file = tmp_path / "run.yaml"
    file.write_text("text: [a.txt, b.txt]\nvocabulary: v\noutput: o\n")
    assert PretrainingConfig.from_yaml(file, steps=7).text == ["a.txt", "b.txt"]


@pytest.mark.parametrize(
    "values, message",
    [
        ({"text": "a.txt"}, "`text` must be a list of files or patterns of their names. Received"),
        ({"text": []}, "`text` must be a list of files"),
        ({"objective": "nsp"}, "`objective` must be one of mlm_nsp, mlm, lm_nsp, lm. Received"),
        ({"size": "huge"}, "`size` must be one of tiny, mini, small, medium, base, large"),
        ({"masked_share": 1.0}, "`masked_share` must be a number between 0 and 1."),
        ({"learning_rate": 0}, "`learning_rate` must be a number above 0"),
        ({"save_every": 0}, "`save_every` must be a whole number, at least 1."),
        ({"saveevery": 5}, "Did you mean `save_every`"),
        (
            {"architecture": "roberta"},
            "`objective` must be mlm or lm with architecture='roberta'. Received: objective='mlm_n",
        ),
        (
            {"architecture": "roberta", "objective": "mlm", "lowercase": False},
            "`lowercase` must be left out with architecture roberta.",
        ),
        ({"architecture": "gpt"}, "`architecture` must be one of bert, albert, roberta, distil"),
        ({"packing": "full_sentences"}, "`packing` must be left out with objective mlm_nsp"),
    ],
)
def test_wrong_values(values, message):
    with pytest.raises(ValueError) as raised:
        config(**values)
    assert message in str(raised.value)
