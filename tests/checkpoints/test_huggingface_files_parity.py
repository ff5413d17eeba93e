"""transformers loads what kbert writes, and kbert reads what transformers writes."""

import json
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from kbert.checkpoints.huggingface_files import read_huggingface, write_huggingface
from tests.checkpoints.synthetic_bert import CONFIG, hf_tensors, same_bytes, write_hf
from tests.transformers_process import run_with_transformers

LABELS = {"classifier.weight": (3, 4), "classifier.bias": (3,)}
SPANS = {"qa_outputs.weight": (2, 4), "qa_outputs.bias": (2,)}
# class -> its heads, whether it has a pooler, and a dtype to try with it
CASES: dict[str, tuple[dict[str, tuple[int, ...]], bool, str]] = {
    "BertModel": ({}, True, "float32"),
    "BertForSequenceClassification": (LABELS, True, "bfloat16"),
    "BertForTokenClassification": (LABELS, False, "float16"),
    "BertForQuestionAnswering": (SPANS, False, "float32"),
}
PEER = """
import json, sys
import torch, transformers
answers = {}
for name in sys.argv[2:]:
    folder = sys.argv[1] + "/ours/" + name
    auto = getattr(transformers, name.replace("BertFor", "AutoModelFor").replace("BertM", "AutoM"))
    model, info = auto.from_pretrained(folder, output_loading_info=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    answers[name] = {
        "class": type(model).__name__,
        "problems": {key: sorted(map(str, value)) for key, value in info.items() if value},
        "ids": tokenizer("The XS \u00c9.")["input_ids"],
    }
    model.save_pretrained(sys.argv[1] + "/theirs/" + name)
    tokenizer.save_pretrained(sys.argv[1] + "/theirs/" + name)
print(json.dumps(answers))
"""


@pytest.mark.parity
def test_transformers_loads_it_and_saves_the_same(tmp_path: Path) -> None:
    for name, (heads, pooler, dtype) in CASES.items():
        tensors = hf_tensors(dtype, "bert." if heads else "", pooler, heads)
        source = write_hf(tmp_path / "source" / name, tensors, architectures=[name])
        write_huggingface(read_huggingface(source), tmp_path / "ours" / name)
    printed = run_with_transformers(PEER, str(tmp_path), *CASES)
    answers = json.loads(printed.splitlines()[-1])
    for name in CASES:
        # No key missing, unexpected or of another shape.
        # [CLS] the x ##s [UNK] . [SEP]: lower-cased; É loses its accent, and e is no token.
        ids = [2, 5, 10, 7, 1, 9, 3]
        assert answers[name] == {"class": name, "problems": {}, "ids": ids}
        # What transformers saves again: the same tensors, and kbert reads them the same.
        ours, theirs = tmp_path / "ours" / name, tmp_path / "theirs" / name
        a, b = load_file(ours / "model.safetensors"), load_file(theirs / "model.safetensors")
        assert a.keys() == b.keys()
        assert all(same_bytes(a[key], b[key]) for key in a)
        before, after = read_huggingface(ours), read_huggingface(theirs)
        assert after.config == before.config == CONFIG
        assert after.lowercase is before.lowercase is True
        # This version may write the vocabulary into tokenizer.json alone.
        assert after.vocabulary_bytes() == before.vocabulary_bytes()
