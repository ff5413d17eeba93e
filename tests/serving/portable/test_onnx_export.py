"""Exports as ONNX: the folder, what ONNX Runtime makes of it, and the program of the page."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from kbert.models.bert import Bert
from kbert.serving.portable.onnx_export import export_onnx
from kbert.tasks.classification.model import Classifier
from kbert.tasks.question_answering.model import QuestionAnswerer
from tests.small_pipelines import TOKENIZER, VOCABULARY, small_classifier
from tests.small_translator import LINES, small_translator
from tests.transformers_process import run_with_transformers


def test_the_folder_and_its_tensors(tmp_path):
    model = small_classifier()
    folder = export_onnx(model, tmp_path)
    assert folder == tmp_path / "classifier"
    files = {"README.md", "config.json", "model.onnx", "tokenizer.json", "tokenizer_config.json"}
    assert {file.name for file in folder.iterdir()} == files
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    axes = ["batch_size", "sequence_length"]
    assert [(one.name, one.type, one.shape) for one in session.get_inputs()] == [
        (name, "tensor(int64)", axes)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    (output,) = session.get_outputs()
    assert (output.name, output.type, output.shape) == ("logits", "tensor(float)", [axes[0], 3])
    with pytest.raises(FileExistsError, match="not there yet"):
        export_onnx(model, tmp_path)


def test_onnx_runtime_joins_the_ops_of_each_layer(tmp_path):
    """Attention, GELU with its bias, and each sum with its LayerNorm become one op."""
    encoder = Bert(len(VOCABULARY), 16, 3, 2, 32, 32)
    folder = export_onnx(Classifier(encoder, TOKENIZER, ["no", "yes"], 24), tmp_path)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
    graph = onnx.load(tmp_path / "optimized.onnx").graph
    kinds = Counter(node.op_type for node in graph.node)
    assert (kinds["Attention"], kinds["BiasGelu"], kinds["SkipLayerNormalization"]) == (3, 3, 7)
    assert not {"Softmax", "Erf", "ReduceMean", "LayerNormalization"} & set(kinds)


def test_the_card_of_a_translator_has_each_file_and_one_layer_for_all(tmp_path):
    folder = export_onnx(small_translator(decoder_layers=2), tmp_path)
    card = (folder / "README.md").read_text("utf-8")
    for name in ("encoder_model", "decoder_model", "decoder_with_past_model"):
        assert f"`{name}.onnx`:\n\n|  | name |" in card
    shape = "batch_size, 2, past_decoder_sequence_length, 8"
    assert f"| input | `past_key_values.i.decoder.key` | float32 | {shape} |" in card
    assert not re.search(r"(past_key_values|present)\.\d", card) and "`source.spm`" in card


def test_weights_of_another_precision_are_written_as_float32(tmp_path):
    folder = export_onnx(small_classifier(dtype="bfloat16"), tmp_path)
    weights = onnx.load(folder / "model.onnx").graph.initializer
    assert {one.data_type for one in weights} == {onnx.TensorProto.FLOAT, onnx.TensorProto.INT64}
    table = max((onnx.numpy_helper.to_array(one) for one in weights), key=np.size)
    assert np.isfinite(table).all() and table.std() > 0.1


PAGE = Path(__file__).parents[3] / "docs" / "export.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the tests run without the project's pages")
def test_the_programs_of_the_page(tmp_path, monkeypatch):
    """From texts to answers in ONNX Runtime: labels, the best span, a translation."""
    section = PAGE.read_text("utf-8").split("## ONNX and LiteRT")[1].split("\n## ")[0]
    classify, read, translate = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    # The small vocabulary spells words: all that the page asks fits into one window.
    encoder = Bert(len(VOCABULARY), 16, 1, 2, 32, 128, initializer_range=0.5)
    classifier, reader = small_classifier(), QuestionAnswerer(encoder, TOKENIZER, 128, 16)
    export_onnx(classifier, "networks", "topics")
    export_onnx(reader, "networks", "minilm-squad")
    names = {}
    exec(classify, names)
    texts = ["surprisingly tender", "a dull plot"]
    assert names["labels"] == [one["label"] for one in classifier.answers(texts)]
    exec(read, names)
    assert len(names["windows"]) == 1
    expected = reader.predict(([names["question"]], [names["context"]]))[0]
    assert names["answer"].encode() == expected["nbest_answer"][0]
    translator = small_translator(beam_size=1, length_ratio=0.0, length_extra=40)
    export_onnx(translator, "networks", "en-de")
    exec(translate, names)
    assert [names["translation"]] == translator.predict(["a dull plot"])


OPTIMUM = """
import json, sys
try:
    from optimum.onnxruntime import ORTModelForSeq2SeqLM
except ImportError:
    sys.exit(print("null"))
from transformers import AutoTokenizer
folder, *texts = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
given = tokenizer(texts, return_tensors="pt", padding=True)
found = ORTModelForSeq2SeqLM.from_pretrained(folder).generate(**given)
print(json.dumps(tokenizer.batch_decode(found, skip_special_tokens=True)))
"""


@pytest.mark.parity
@pytest.mark.slow
@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_of_optimum(beam_size, tmp_path):
    """With Optimum's search of as many hypotheses, by the settings in the folder alone."""
    model = small_translator(
        beam_size=beam_size, decoder_layers=2, length_ratio=0.0, length_extra=40
    )
    folder = export_onnx(model, tmp_path, "en-de")
    texts = LINES[:6]
    printed = run_with_transformers(OPTIMUM, str(folder), *texts).splitlines()[-1]
    found = json.loads(printed)
    if found is None:  # a Python with transformers, which other parity tests need, may lack it
        pytest.skip("needs optimum-onnx in KBERT_PEER_PYTHON")
    assert found == model.predict(texts)
