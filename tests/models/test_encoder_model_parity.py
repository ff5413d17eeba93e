"""RoBERTa, DistilBERT and ELECTRA with every head: the numbers of transformers, and their files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.checkpoints.encoder_folder import read_native, write_native
from kbert.checkpoints.huggingface_files import read_huggingface, write_huggingface
from kbert.models.encoder import encoder_of
from kbert.pipelines.saved_pipeline import _assign_head
from kbert.tasks.classification.head import SequenceClassification
from kbert.tasks.multiple_choice.head import ChoiceSelection
from kbert.tasks.ner.head import TokenClassification
from kbert.tasks.pretraining.head import Pretraining
from kbert.tasks.question_answering.head import SpanExtraction
from tests.checkpoints.synthetic_bert import same_bytes
from tests.transformers_process import run_with_transformers

pytestmark = [pytest.mark.parity, pytest.mark.slow]
# Sizes in transformers' names; widths as published where that costs nothing.
BERT = {
    "vocab_size": 120,
    "hidden_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 192,
    "max_position_embeddings": 24,
}
OWN = {"tie_word_embeddings": False}
# A name -> (the beginning of transformers' classes, arguments of the configuration).
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "roberta": (
        "Roberta",
        {**BERT, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
        | {"max_position_embeddings": 26, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
    ),
    "distilbert": (
        "DistilBert",
        {"vocab_size": 120, "dim": 768, "n_heads": 12, "n_layers": 2, "hidden_dim": 3072}
        | {"max_position_embeddings": 24, "sinusoidal_pos_embds": True},
    ),
    "electra": ("Electra", {**BERT, "embedding_size": 32}),
    "electra-wide": ("Electra", {**BERT, "embedding_size": 96}),
    "roberta-relu": ("Roberta", {**BERT, "type_vocab_size": 1, "hidden_act": "relu"}),
    "distilbert-relu": (
        "DistilBert",
        {"vocab_size": 120, "dim": 24, "n_heads": 2, "n_layers": 2, "hidden_dim": 36}
        | {"max_position_embeddings": 24, "activation": "relu"},
    ),
    "electra-quick": ("Electra", {**BERT, "embedding_size": 32, "hidden_act": "quick_gelu"}),
}
HEADS = (
    *("Model", "ForSequenceClassification", "ForTokenClassification", "ForMultipleChoice"),
    *("ForQuestionAnswering", "ForMaskedLM"),
)
CASES = [(name, head, False) for name in ENCODERS for head in HEADS]
CASES += [(name, "ForMaskedLM", True) for name in ("roberta", "distilbert", "electra")]
CASES += [("electra", "ForPreTraining", False)]
# An output matrix of its own, of encoders that are compared elsewhere.
ENCODERS["bert"] = ("Bert", BERT)
ENCODERS["albert"] = ("Albert", {**BERT, "embedding_size": 32})
CASES += [("bert", "ForMaskedLM", True), ("albert", "ForMaskedLM", True)]
PROGRAM = """
import json, sys
import numpy as np, torch, transformers
torch.manual_seed(0)
ids = torch.randint(5, 120, (3, 4, 9))
ids[:, :, 0] = 0
mask = torch.ones(3, 4, 9, dtype=torch.long)
mask[1, :, 6:] = 0
mask[2, 2, 2:] = 0
ids = torch.where(mask > 0, ids, 1)
segments = torch.randint(0, 2, (3, 4, 9))
for name, prefix, head, arguments in json.loads(sys.argv[2]):
    config = getattr(transformers, f"{prefix}Config")(**arguments)
    if head in ("ForSequenceClassification", "ForTokenClassification"):
        config.num_labels = 3
    model = getattr(transformers, prefix + head)(config).eval()
    given = {"input_ids": ids, "attention_mask": mask}
    if prefix in ("Electra", "Bert", "Albert"):
        given["token_type_ids"] = segments
    if head != "ForMultipleChoice":
        given = {key: value[:, 0] for key, value in given.items()}
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * (0.5 / weight.shape[-1] ** 0.5))
        found = model(**given, output_hidden_states=True)
    folder = f"{sys.argv[1]}/{name}"
    model.save_pretrained(folder)
    states = {f"state_{i}": state for i, state in enumerate(found.hidden_states)}
    kept = ("logits", "start_logits", "end_logits", "pooler_output")
    results = {key: found[key] for key in kept if key in found and found[key] is not None}
    np.savez(f"{folder}.npz", token_ids=ids, segment_ids=segments, padding_mask=mask,
             **results, **states)
"""
AGAIN = """
import json, sys
import transformers
problems = {}
for name, kind in json.loads(sys.argv[2]).items():
    model, info = getattr(transformers, kind).from_pretrained(
        f"{sys.argv[1]}/{name}", output_loading_info=True
    )
    problems[name] = {key: sorted(map(str, value)) for key, value in info.items() if value}
print(json.dumps(problems))
"""


def case_name(name: str, head: str, untied: bool) -> str:
    return f"{name}-{head}{'-untied' if untied else ''}"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every case as transformers save it, and what they compute with it."""
    folder = tmp_path_factory.mktemp("theirs")
    cases = [
        [case_name(name, head, untied), ENCODERS[name][0], head]
        + [ENCODERS[name][1] | (OWN if untied else {})]
        for name, head, untied in CASES
    ]
    run_with_transformers(PROGRAM, str(folder), json.dumps(cases))
    return folder


def logits_of(head: str, encoder: Any, heads: dict[str, np.ndarray], inputs: Any) -> Any:
    """What kbert's head of that class computes."""
    models: dict[str, Any] = {
        "ForSequenceClassification": lambda: SequenceClassification(encoder, 3),
        "ForTokenClassification": lambda: TokenClassification(encoder, 3),
        "ForMultipleChoice": lambda: ChoiceSelection(encoder),
        "ForQuestionAnswering": lambda: SpanExtraction(encoder),
        "ForMaskedLM": lambda: Pretraining(
            encoder, "mlm", tied="cls.predictions.decoder.weight" not in heads
        ),
    }
    model = models[head]()
    _assign_head(model, heads, "theirs")
    found = model(inputs)
    return found["masked_tokens"] if head == "ForMaskedLM" else found


@pytest.mark.parametrize(("name", "head", "untied"), CASES)
def test_numbers(folders: Path, name: str, head: str, untied: bool) -> None:
    case = case_name(name, head, untied)
    checkpoint, theirs = read_huggingface(folders / case), np.load(folders / f"{case}.npz")
    encoder = encoder_of(checkpoint, needs_pooler=False)
    inputs = {key: theirs[key].astype("int32") for key in ("token_ids", "segment_ids")}
    inputs["padding_mask"] = theirs["padding_mask"] > 0
    if head != "ForMultipleChoice":
        inputs = {key: value[:, 0] for key, value in inputs.items()}
    real = inputs["padding_mask"]
    flat = {key: value.reshape(-1, value.shape[-1]) for key, value in inputs.items()}
    for i, state in enumerate(encoder.hidden_states(flat)):
        wanted = theirs[f"state_{i}"]
        difference = np.abs(np.asarray(state) - wanted)[flat["padding_mask"]]
        assert difference.max() < 2e-5, f"state {i}"
    if "pooler_output" in theirs:
        pooled = encoder(inputs)["pooled_output"]
        np.testing.assert_allclose(pooled, theirs["pooler_output"], atol=2e-5)
    if head in ("Model", "ForPreTraining"):
        return
    found = np.asarray(logits_of(head, encoder, checkpoint.heads, inputs))
    if head == "ForQuestionAnswering":
        wanted = np.stack([theirs["start_logits"], theirs["end_logits"]], -1)
    else:
        wanted = theirs["logits"]
    by_token = head in ("ForTokenClassification", "ForQuestionAnswering", "ForMaskedLM")
    difference = np.abs(found - wanted)
    assert (difference[real] if by_token else difference).max() < 2e-5


def test_folders_byte_for_byte(folders: Path, tmp_path: Path) -> None:
    kinds = {}
    for name, head, untied in CASES:
        case = case_name(name, head, untied)
        kinds[case] = ENCODERS[name][0] + head
        before = read_huggingface(folders / case)
        write_native(before, tmp_path / "own", overwrite=True)
        write_huggingface(read_native(tmp_path / "own"), tmp_path / case)
        a, b = (load_file(f / case / "model.safetensors") for f in (folders, tmp_path))
        assert a.keys() == b.keys(), case
        assert all(same_bytes(a[key], b[key]) for key in a), case
        paths = [f / case / "config.json" for f in (folders, tmp_path)]
        one, other = (json.loads(path.read_text()) for path in paths)
        assert one == other, case
    printed = run_with_transformers(AGAIN, str(tmp_path), json.dumps(kinds))
    assert json.loads(printed.splitlines()[-1]) == {case: {} for case in kinds}
