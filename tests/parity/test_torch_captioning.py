"""The NumPy reference of captioning beside a decoder and losses of PyTorch's modules, in float64.

What PyTorch has is taken from it: `nn.LSTMCell`, `softmax`, `cross_entropy`, and log-probabilities
and entropies of `torch.distributions.Categorical`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from tests import numpy_captioning as reference
from tests.numpy_reference import Array
from tests.transformers_process import run_with_transformers

ROWS, BASELINE = 3, -4.0
KINDS = ["soft", "hard", "mean", "soft_without_gate", "hard_without_gate"]
PROGRAM = """
import sys
import numpy as np, torch
from torch import nn
from torch.distributions import Categorical
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
V, E, M, D, A, L, B, T = 7, 4, 5, 6, 3, 8, 3, 5

class Decoder(nn.Module):
    def __init__(self, gated):
        super().__init__()
        self.table, self.bias = nn.Embedding(V, E), nn.Parameter(torch.zeros(V))
        self.initial_output, self.initial_cell = nn.Linear(M, D), nn.Linear(M, D)
        self.query, self.key = nn.Linear(D, A, bias=False), nn.Linear(M, A)
        self.score, self.gate = nn.Linear(A, 1, bias=False), nn.Linear(D, 1)
        self.cell = nn.LSTMCell(E + M, D)
        self.output_state, self.output_context = nn.Linear(D, E), nn.Linear(M, E, bias=False)
        self.gated = gated

    def forward(self, a, ids, places=None):
        h, c = (torch.tanh(layer(a.mean(1))) for layer in (self.initial_output, self.initial_cell))
        logits, attention, gates = [], [], []
        for t in range(T):
            scores = self.score(torch.tanh(self.query(h)[:, None] + self.key(a)))[..., 0]
            alpha = scores.softmax(-1)
            z = torch.bmm(alpha[:, None], a)[:, 0]
            if places is not None:
                z = a[torch.arange(B), places[:, t]]
            gate = torch.sigmoid(self.gate(h)) if self.gated else torch.ones(B, 1)
            y, z = self.table(ids[:, t]), gate * z
            h, c = self.cell(torch.cat([y, z], -1), (h, c))
            x = y + self.output_state(h) + self.output_context(z)
            logits.append(nn.functional.linear(x, self.table.weight, self.bias))
            attention.append(alpha)
            gates.append(gate[:, 0])
        return torch.stack(logits, 1), torch.stack(attention, 1), torch.stack(gates, 1), h, c

for kind in sys.argv[2:]:
    model = Decoder("without" not in kind)
    for weight in model.parameters():
        weight.copy_(torch.randn_like(weight) * 0.7)
    a, ids, targets = torch.randn(B, L, M), torch.randint(0, V, (B, T)), torch.randint(0, V, (B, T))
    places = torch.randint(0, L, (B, T))
    seen = a.mean(1, keepdim=True) if kind == "mean" else a
    logits, attention, gates, h, c = model(seen, ids, places if "hard" in kind else None)
    entropy = nn.functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none").sum(1)
    one = (1 - attention.sum(1)) ** 2
    chances = Categorical(probs=attention)
    found = dict(annotations=a, ids=ids, targets=targets, places=places, logits=logits, h=h, c=c)
    found |= dict(attention=attention, gates=gates, cross_entropy=entropy, penalty=one.sum(1))
    found |= dict(entropy=chances.entropy().sum(1))
    if kind != "mean":
        found |= dict(log_places=chances.log_prob(places).sum(1))
    found |= model.state_dict()
    np.savez(f"{sys.argv[1]}/{kind}.npz", **{key: x.numpy() for key, x in found.items()})
"""


def close(found: object, wanted: Array) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)


@pytest.fixture(scope="module")
def decoders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Mapping[str, Array]]:
    folder: Path = tmp_path_factory.mktemp("decoders")
    run_with_transformers(PROGRAM, str(folder), *KINDS)
    return lambda kind: np.load(folder / f"{kind}.npz")


def weights_of(found: Mapping[str, Array], gated: bool) -> dict[str, Array]:
    """PyTorch's weights under the names of the reference."""
    w = {"source_embedding/embeddings": found["table.weight"], "output/bias": found["bias"]}
    for name in ("initial_output", "initial_cell", "output_state"):
        w |= {f"{name}/kernel": found[f"{name}.weight"].T, f"{name}/bias": found[f"{name}.bias"]}
    w["output_context/kernel"] = found["output_context.weight"].T
    w["decoder/kernel"] = found["cell.weight_ih"].T
    w["decoder/recurrent_kernel"] = found["cell.weight_hh"].T
    w["decoder/bias"] = found["cell.bias_ih"] + found["cell.bias_hh"]
    w["decoder/query"] = found["query.weight"].T
    w |= {"decoder/key": found["key.weight"].T, "decoder/score_bias": found["key.bias"]}
    w["decoder/score_vector"] = found["score.weight"][0]
    if gated:
        w["decoder/gate_kernel"] = found["gate.weight"].T
        w["decoder/gate_bias"] = found["gate.bias"]
    return w


@pytest.mark.parity
@pytest.mark.parametrize("kind", KINDS)
def test_the_decoder(decoders, kind: str) -> None:
    """Logits, attention, gates and the last state of each row."""
    found, attention = decoders(kind), kind.partition("_")[0]
    w = weights_of(found, "without" not in kind)
    for row in range(ROWS):
        places = found["places"][row].tolist() if attention == "hard" else None
        outputs = reference.caption(
            w, found["annotations"][row], found["ids"][row], attention=attention, places=places
        )
        close(outputs.logits, found["logits"][row])
        close(outputs.attention, found["attention"][row])
        close(outputs.gates, found["gates"][row])
        close(outputs.state, np.stack([found["h"][row], found["c"][row]]))


@pytest.mark.parity
def test_the_losses(decoders) -> None:
    """Cross-entropy, the doubly stochastic penalty, the entropy, and what REINFORCE is made of."""
    found = decoders("hard")
    for row in range(ROWS):
        logits, targets = found["logits"][row], found["targets"][row]
        attention, places = found["attention"][row], found["places"][row]
        close(reference.caption_cross_entropy(logits, targets), found["cross_entropy"][row])
        close(reference.doubly_stochastic_penalty(attention), found["penalty"][row])
        close(reference.attention_entropy(attention), found["entropy"][row])
        close(reference.log_places(attention, places), found["log_places"][row])
        term = reference.reinforce_term(logits, targets, attention, places, BASELINE)
        close(term, (found["cross_entropy"][row] + BASELINE) * found["log_places"][row])
