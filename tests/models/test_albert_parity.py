"""The states of transformers' AlbertModel, and each class loads what kbert writes."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.checkpoints.huggingface_files import read_huggingface, write_huggingface
from kbert.models.albert import Albert
from tests.checkpoints.encoders.test_albert import CLASSES
from tests.checkpoints.synthetic_albert import albert_tensors, write_albert
from tests.checkpoints.synthetic_bert import same_bytes
from tests.transformers_process import run_with_transformers

STATES = """
import sys
import numpy as np, torch, transformers
torch.manual_seed(0)
for groups, layers in ((1, 4), (2, 5)):
    config = transformers.AlbertConfig(
        vocab_size=40, embedding_size=6, hidden_size=16, num_hidden_layers=layers,
        num_hidden_groups=groups, num_attention_heads=4, intermediate_size=24,
        max_position_embeddings=12,
    )
    model = transformers.AlbertModel(config).eval()
    ids, segments = torch.randint(0, 40, (3, 9)), torch.randint(0, 2, (3, 9))
    mask = torch.ones(3, 9, dtype=torch.long)
    mask[1, 6:] = 0
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * 0.3)
        found = model(
            input_ids=ids, token_type_ids=segments, attention_mask=mask, output_hidden_states=True
        )
    folder = f"{sys.argv[1]}/{groups}"
    model.save_pretrained(folder)
    states = {f"state_{i}": state for i, state in enumerate(found.hidden_states)}
    np.savez(f"{folder}.npz", token_ids=ids, segment_ids=segments, padding_mask=mask,
             pooled=found.pooler_output, **states)
"""
CLASSES_THERE = """
import json, sys
import transformers
problems = {}
for name in sys.argv[2:]:
    kind = getattr(transformers, name)
    model, info = kind.from_pretrained(f"{sys.argv[1]}/{name}", output_loading_info=True)
    problems[name] = {key: sorted(map(str, value)) for key, value in info.items() if value}
    model.save_pretrained(f"{sys.argv[1]}/again/{name}")
print(json.dumps(problems))
"""


@pytest.mark.parity
def test_states_of_random_weights(tmp_path: Path) -> None:
    run_with_transformers(STATES, str(tmp_path))
    for groups in (1, 2):
        model = Albert.from_pretrained(tmp_path / str(groups))
        assert model.num_groups == groups
        theirs = np.load(tmp_path / f"{groups}.npz")
        real = theirs["padding_mask"] > 0
        inputs = {name: theirs[name].astype("int32") for name in ("token_ids", "segment_ids")}
        inputs["padding_mask"] = real
        for i, state in enumerate(model.hidden_states(inputs)):
            difference = np.abs(np.asarray(state) - theirs[f"state_{i}"])[real]
            assert difference.max() < 2e-5
        pooled = model(inputs)["pooled_output"]
        np.testing.assert_allclose(pooled, theirs["pooled"], atol=2e-5)


@pytest.mark.parity
def test_classes_load_what_kbert_writes(tmp_path: Path) -> None:
    for name, (heads, pooler, dtype) in CLASSES.items():
        source = write_albert(
            tmp_path / "source" / name, albert_tensors(heads, pooler, dtype), architectures=[name]
        )
        write_huggingface(read_huggingface(source), tmp_path / name)
    printed = run_with_transformers(CLASSES_THERE, str(tmp_path), *CLASSES)
    assert json.loads(printed.splitlines()[-1]) == {name: {} for name in CLASSES}
    for name in CLASSES:
        # What transformers saves again: the same tensors, and kbert reads them the same.
        ours, theirs = tmp_path / name, tmp_path / "again" / name
        a, b = load_file(ours / "model.safetensors"), load_file(theirs / "model.safetensors")
        assert a.keys() == b.keys()
        assert all(same_bytes(a[key], b[key]) for key in a)
        assert read_huggingface(theirs).config == read_huggingface(ours).config
