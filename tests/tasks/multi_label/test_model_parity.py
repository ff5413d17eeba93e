"""transformers' models with several labels a text, from and to their folders."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file

import kbert
from kbert.optimization.label_losses import SigmoidCrossEntropy
from kbert.tasks.multi_label.model import MultiLabelClassifier
from tests.small_pipelines import VOCABULARY, small_multi_label_classifier
from tests.transformers_process import run_with_transformers

TEXTS = ["a good film", "very bad!", "", "the film, the very very good film."]
TARGETS = [[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1]]
MAKE = """
import json, sys
import numpy as np
import torch, transformers
folder, ids, mask, targets = sys.argv[1], *map(json.loads, sys.argv[2:])
torch.manual_seed(0)
sizes = dict(
    vocab_size=VOCABULARY_SIZE, hidden_size=16, num_hidden_layers=2,
    num_attention_heads=2, intermediate_size=32, max_position_embeddings=32, initializer_range=0.5,
    problem_type="multi_label_classification",
    id2label={0: "joy", 1: "anger", 2: "love"}, label2id={"joy": 0, "anger": 1, "love": 2},
)
inputs = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
for name, more in (("Bert", {}), ("Albert", {"embedding_size": 8})):
    config = getattr(transformers, name + "Config")(**sizes, **more)
    model = getattr(transformers, name + "ForSequenceClassification")(config).eval()
    found = model(**inputs, labels=torch.tensor(targets, dtype=torch.float32))
    model.save_pretrained(folder + "/" + name)
    np.savez(
        folder + "/" + name + ".npz", logits=found.logits.detach(), loss=found.loss.detach(),
        probabilities=torch.sigmoid(found.logits).detach(),
    )
""".replace("VOCABULARY_SIZE", str(len(VOCABULARY)))
READ = """
import json, sys
import transformers
answers = {}
for name in ("Bert", "Albert"):
    auto = transformers.AutoModelForSequenceClassification
    model, info = auto.from_pretrained(sys.argv[1] + "/ours/" + name, output_loading_info=True)
    answers[name] = {
        "problems": {key: sorted(map(str, value)) for key, value in info.items() if value},
        "class": type(model).__name__,
        "type": model.config.problem_type,
        "labels": list(model.config.id2label.values()),
        "threshold": model.config.threshold,
    }
print(json.dumps(answers))
"""


@pytest.mark.slow
@pytest.mark.parity
def test_probabilities_loss_and_folders_are_those_of_transformers(tmp_path: Path) -> None:
    packed = small_multi_label_classifier().preprocess(tf.constant(TEXTS))
    mask = packed.padding_mask.numpy().astype(int)
    arrays = (packed.token_ids.numpy().tolist(), mask.tolist(), TARGETS)
    run_with_transformers(MAKE, str(tmp_path), *map(json.dumps, arrays))
    for name in ("Bert", "Albert"):
        vocabulary = "".join(f"{token}\n" for token in VOCABULARY.tokens)
        (tmp_path / name / "vocab.txt").write_text(vocabulary, encoding="utf-8")
        model = kbert.load(tmp_path / name, max_sequence_length=32)
        assert type(model) is MultiLabelClassifier and model.labels == ["joy", "anger", "love"]
        theirs = np.load(tmp_path / f"{name}.npz")
        np.testing.assert_allclose(model.predict(TEXTS), theirs["probabilities"], atol=2e-5)
        loss = SigmoidCrossEntropy()(np.array(TARGETS), theirs["logits"])
        assert float(loss) == pytest.approx(float(theirs["loss"]), rel=1e-5)
        model.compile("sgd")
        assert model.evaluate(TEXTS, TARGETS, verbose=0)[0] == pytest.approx(
            float(theirs["loss"]), rel=1e-4
        )
        ours = model.save_pretrained(tmp_path / "same" / name, format="huggingface")
        one, other = (load_file(f / "model.safetensors") for f in (tmp_path / name, ours))
        assert one.keys() == other.keys()
        assert all(one[key].tobytes() == other[key].tobytes() for key in one)
        configs = [json.loads((f / "config.json").read_text()) for f in (tmp_path / name, ours)]
        for key in ("problem_type", "id2label", "label2id", "architectures", "model_type"):
            assert configs[0][key] == configs[1][key]
        model.threshold = [0.25, 0.5, 0.75]
        model.save_pretrained(tmp_path / "ours" / name, format="huggingface")
    printed = run_with_transformers(READ, str(tmp_path))
    for name, found in json.loads(printed.splitlines()[-1]).items():
        assert found == {
            "problems": {},
            "class": f"{name}ForSequenceClassification",
            "type": "multi_label_classification",
            "labels": ["joy", "anger", "love"],
            "threshold": [0.25, 0.5, 0.75],
        }
