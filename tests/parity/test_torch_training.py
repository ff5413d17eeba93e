"""kbert and transformers on PyTorch learn alike: the same batches, the same losses at each step."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from tests.small_pipelines import small_classifier
from tests.transformers_process import run_with_transformers

STEPS, WARM_UP, ROWS, RATE = 30, 3, 8, 1e-2
TEXTS = ["a good film", "bad", "the very very bad film!", "", "goodness film film", "a a a bad bad"]
PEER = """
import json, sys
import torch, transformers
folder, steps, warm_up, rate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
config = transformers.AutoConfig.from_pretrained(folder)
for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"):
    setattr(config, name, 0.0)
model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, config=config)
model.train()
groups = {0.01: [], 0.0: []}
for name, weight in model.named_parameters():
    plain = name.endswith(("bias", "LayerNorm.weight"))
    groups[0.0 if plain else 0.01].append(weight)
groups = [{"params": weights, "weight_decay": decay} for decay, weights in groups.items()]
optimizer = torch.optim.AdamW(groups, lr=rate)
schedule = transformers.get_linear_schedule_with_warmup(optimizer, warm_up, steps)
losses = []
for batch in json.load(open(folder + "/batches.json")):
    tensors = {name: torch.tensor(rows) for name, rows in batch.items()}
    loss = model(**tensors).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    losses.append(loss.item())
model.save_pretrained(folder + "/trained")
print(json.dumps(losses))
"""


@pytest.mark.parity
def test_the_same_batches_give_the_same_losses(tmp_path: Path) -> None:
    """AdamW, schedule, clipping, decay and all gradients, over thirty steps in float32."""
    model = small_classifier()
    start = model.save_pretrained(tmp_path / "start", format="huggingface")
    draw = np.random.default_rng(1)
    packed = model.pack([TEXTS[i] for i in draw.integers(0, len(TEXTS), STEPS * ROWS)])
    classes = draw.integers(0, 3, STEPS * ROWS)
    batches = list(model.dataset(packed, classes, batch_size=ROWS))
    model.compile(optimizer=AdamW(WarmupLinearDecay(RATE, STEPS, WARM_UP)))
    losses = []
    for inputs, labels in batches:
        model.reset_metrics()
        losses.append(float(model.train_on_batch(inputs, labels, return_dict=True)["loss"]))
    given = [
        {
            "input_ids": inputs["token_ids"].numpy().tolist(),
            "token_type_ids": inputs["segment_ids"].numpy().tolist(),
            "attention_mask": inputs["padding_mask"].numpy().astype(int).tolist(),
            "labels": labels.numpy().tolist(),
        }
        for inputs, labels in batches
    ]
    (start / "batches.json").write_text(json.dumps(given))
    before = load_file(start / "model.safetensors")
    printed = run_with_transformers(PEER, str(start), str(STEPS), str(WARM_UP), str(RATE))
    np.testing.assert_allclose(losses, json.loads(printed.splitlines()[-1]), atol=1e-4)
    assert min(losses) < losses[0] - 0.1  # something was learned
    model.save_pretrained(tmp_path / "ours", format="huggingface")
    ours = load_file(tmp_path / "ours" / "model.safetensors")
    theirs = load_file(start / "trained" / "model.safetensors")
    for name, weights in theirs.items():
        if name.endswith("key.bias"):
            continue  # adds the same to all scores of a query: its gradient is rounding alone
        np.testing.assert_allclose(ours[name], weights, atol=1e-3, err_msg=name)
    moved = max(np.abs(theirs[name] - before[name]).max() for name in theirs)
    assert moved > 0.05
