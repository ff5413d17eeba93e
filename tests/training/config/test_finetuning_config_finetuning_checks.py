import pytest

from kbert.training.config.finetuning_config import RunConfig

LEAST = {"train": "a.tsv", "encoder": "e", "output": "o"}


@pytest.mark.parametrize(
    "values, message",
    [
        ({"stride": 3}, "`stride` must be left out with task='classification'. Received: stride=3"),
        (
            {"train": None},
            "`train` must be given: a file, tfds:NAME or hf:NAME (or give glue and data)",
        ),
        ({"encoder": None}, "`encoder` must be given: a name, a folder, or scratch:SIZE"),
        ({"output": None}, "`output` must be given: the run directory to make"),
        (
            {"encoder": "scratch:huge", "vocabulary": "v"},
            "`encoder` must be scratch: and one of tiny, mini, small, medium, base, large with voc",
        ),
        (
            {"encoder": "scratch:e", "adapter": "lora"},
            "`adapter` must be left out with an encoder of random weights. Received: adapter=",
        ),
        ({"encoder": "scratch:tiny"}, "`vocabulary` must be given with encoder='scratch:tiny'"),
        ({"glue": "sst2"}, "`data` must be the folder of GLUE with glue='sst2'"),
        ({"glue": "sst"}, "task of GLUE must be one of cola, sst2"),
        ({"glue": "stsb", "data": "g"}, "`task` must be regression with glue='stsb'"),
        ({"monitor": "f1"}, "`monitor` must be left out where there is no validation"),
        ({"grid": True}, "`grid` must be left out where there is no validation"),
        ({"early_stopping": 2}, "`early_stopping` must be left out where there is no validation"),
        (
            {"task": "regression", "class_weights": "balanced"},
            "`class_weights` must be left out with task='regression'",
        ),
        (
            {"task": "multiple-choice", "train": "tfds:swag"},
            "`train` must be a file with task='multiple-choice'",
        ),
        (
            {"task": "multiple-choice", "batch_tokens": 100},
            "`batch_tokens` must be left out with task='multiple-choice'",
        ),
        (
            {"other_windows": 0},
            "`other_windows` must be left out with task='classification'. Received: other_windows",
        ),
        (
            {"task": "ner", "other_windows": 2},
            "`other_windows` must be left out with task='ner'. Received: other_windows=2",
        ),
        (
            {"task": "span-tagging", "all_occurrences": True},
            "`all_occurrences` must be left out with task='span-tagging'. Received: all_occurr",
        ),
        (
            {"task": "ner", "max_answer_length": 9},
            "`max_answer_length` must be left out with task='ner'. Received: max_answer_length=9",
        ),
        (
            {"validation": "v.tsv", "early_stopping": 2, "keep": "last"},
            "`keep` must be best with early_stopping. Received: keep='last'",
        ),
        (
            {"validation": "v.tsv", "grid": True, "batch_tokens": 99},
            "`batch_tokens` must be left out with grid=True. Received: batch_tokens=99",
        ),
        (
            {"strategy": "tpu", "batch_tokens": 99},
            "`batch_tokens` must be left out with strategy=tpu. Received: batch_tokens=99",
        ),
        (
            {"task": "multiple-choice", "strategy": "tpu"},
            "`strategy` must be another one with task='multiple-choice': its batches have no fixed "
            "shapes. Received: strategy='tpu'",
        ),
        (
            {"adapter_dim": 8},
            "`adapter_dim` must be left out without adapter. Received: adapter_dim=8",
        ),
        ({"head": "bilstm"}, "`features` must be given with head=bilstm. Received: features=None"),
        ({"lstm_dim": 8}, "`lstm_dim` must be left out without features. Received: lstm_dim=8"),
        (
            {"feature_cache": "c"},
            "`feature_cache` must be left out without features. Received: feature_cache='c'",
        ),
        (
            {"features": "last", "head": "two_layer"},
            "`head` must be linear or bilstm with features. Received: head='two_layer'",
        ),
        (
            {"features": "last", "lstm_dim": 8},
            "`lstm_dim` must be left out without head=bilstm. Received: lstm_dim=8",
        ),
        (
            {"features": "last", "vocabulary": "v"},
            "`vocabulary` must be left out with features, those of a trained encoder. Received",
        ),
        (
            {"features": "last", "encoder_dropout": 0.2},
            "`encoder_dropout` must be left out with features, whose encoder does not train.",
        ),
        (
            {"features": "last", "task": "embedding"},
            "`features` must be left out with task='embedding'. Received: features='last'",
        ),
        ({"lora_rank": 2}, "`lora_rank` must be left out without adapter. Received: lora_rank=2"),
        (
            {"adapter": "lora", "adapter_dim": 2},
            "`adapter_dim` must be left out with adapter=lora. Received: adapter_dim=2",
        ),
        (
            {"adapter": "pfeiffer", "lora_alpha": 2.0},
            "`lora_alpha` must be left out with adapter=pfeiffer. Received: lora_alpha=2.0",
        ),
        (
            {"adapter": "lora", "lora_targets": ["query", "keys"]},
            "`lora_targets` must be some of query, key, value, attention_output, intermediate, out",
        ),
        (
            {"adapter": "lora", "vocabulary": "v"},
            "`vocabulary` must be left out with adapter=lora: in a trained encoder. Received: voc",
        ),
        (
            {"features": "last", "adapter": "lora"},
            "`adapter` must be left out with features, whose encoder does not train. Received: ad",
        ),
        ({"fuse": ["a/x", "b/x"]}, "`fuse` must be folders of different names. Received: fuse='a/"),
        (
            {"fuse": ["a", "b"], "adapter": "lora"},
            "`adapter` must be left out with fuse. Received: adapter='lora'",
        ),
        ({"fuse": ["a"]}, "`fuse` must be a list of two different names or more"),
        ({"task": "ner", "head": "two_layer"}, "`head` must be left out with task='ner' without f"),
        (
            {"task": "question-answering", "dropout": 0.5},
            "`dropout` must be left out with task='question-answering'. Received: dropout=0.5",
        ),
        ({"task": "embedding", "head": "two_layer"}, "`head` must be left out with task='embeddi"),
        ({"tag_scheme": "iobes"}, "`tag_scheme` must be left out with task='classification'. Rec"),
        ({"soft": False}, "`soft` must be left out with task='classification'. Received: soft=F"),
        ({"task": "ner", "text_a": "words"}, "`text_a` must be left out with task='ner'. Received"),
        ({"task": "question-answering", "label": 1}, "`label` must be left out with task='questi"),
        ({"lowercase": False}, "`lowercase` must be left out without vocabulary. Received: lower"),
        ({"data": "glue"}, "`data` must be left out without glue and tfds:NAME. Received: data='g"),
        ({"adapter": "prefix"}, "`adapter` must be one of houlsby, pfeiffer, lora"),
        ({"features": "first"}, "`features` must be one of last, second-to-last, last4-sum"),
    ],
)
def test_values_that_contradict_each_other(values, message):
    with pytest.raises(ValueError) as raised:
        RunConfig.from_dict({**LEAST, **values})
    assert message in str(raised.value)


def test_the_peak_of_the_rate():
    made = RunConfig.from_dict
    assert made(LEAST).peak_rate == 5e-5
    assert made({**LEAST, "features": "mix"}).peak_rate == 1e-3
    assert made({**LEAST, "features": "mix", "learning_rate": 0.1}).peak_rate == 0.1
    assert made({**LEAST, "adapter": "pfeiffer"}).peak_rate == 1e-4
    assert made({**LEAST, "adapter": "lora"}).peak_rate == 5e-4


def test_tasks_that_read_have_windows():
    values = {"task": "ner", "stride": 3, "adapter": "houlsby", "adapter_dim": 8}
    assert RunConfig.from_dict({**LEAST, **values}).stride == 3
