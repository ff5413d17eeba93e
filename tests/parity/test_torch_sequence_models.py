"""The NumPy reference of sequence models beside PyTorch's modules, in float64.

PyTorch has no GRU that resets the state before the product; that one is held to numbers by hand
(`tests/test_numpy_sequence_models.py`).
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from tests import numpy_sequence_models as reference
from tests.numpy_reference import Array, softmax
from tests.transformers_process import run_with_transformers

Arrays = dict[str, Array]
CELL = "gru_reset_after"
# Rows of 5, 2 and 1 real tokens; what pads them is no zero.
LENGTHS = (5, 2, 1)
BEGIN = """
import sys
import numpy as np, torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)

def random(module):
    for weight in module.parameters():
        weight.copy_(torch.randn_like(weight) * 0.6)
    return module.eval()

def keep(name, module, **arrays):
    found = {**module.state_dict(), **arrays}
    np.savez(f"{sys.argv[1]}/{name}.npz", **{key: x.numpy() for key, x in found.items()})
"""
MODULES = BEGIN + """
x = torch.randn(7, 3)
gru = random(nn.GRU(3, 4))
keep("gru", gru, x=x, found=gru(x)[0])
both = random(nn.GRU(3, 4, bidirectional=True))
keep("bidirectional", both, x=x, found=both(x)[0])
lstm = random(nn.LSTM(3, 4, num_layers=2))
found, (h, c) = lstm(x)
keep("lstm", lstm, x=x, found=found, h=h, c=c)

class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(6, 3), nn.Embedding(5, 3)
        self.encoder, self.decoder = nn.LSTM(3, 4, 2), nn.LSTM(3, 4, 2)
        self.output = nn.Linear(4, 5)

translator, ids = random(Translator()), torch.tensor([3, 0, 5, 1])
for name, order in (("forward", ids), ("reversed", ids.flip(0))):
    _, state = translator.encoder(translator.source(order))
    states, _ = translator.decoder(translator.target(torch.tensor([1, 4, 2])), state)
    keep(name, translator, found=translator.output(states))

linear = random(weight_norm(nn.Linear(3, 4)))
keep("linear", linear, x=x, found=linear(x))
convolution = random(weight_norm(nn.Conv1d(3, 6, 5)))
found = {}
for name, before in (("centred", 2), ("causal", 4)):
    padded = nn.functional.pad(x.T, (before, 4 - before))
    found[name] = nn.functional.glu(convolution(padded), dim=0).T
keep("convolution", convolution, x=x, **found)

state, query, annotations = torch.randn(4), torch.randn(1, 6), torch.randn(5, 6)
bilinear = random(nn.Bilinear(4, 6, 1, bias=False))
scores = bilinear(state.expand(5, 4), annotations)[:, 0]
seen = nn.functional.scaled_dot_product_attention(query, annotations, annotations, scale=1.0)
arrays = {"state": state, "query": query, "annotations": annotations}
keep("scores", bilinear, scores=scores, seen=seen, **arrays)
"""
# The models that the benchmarks of training run beside kbert's, which are made of such modules.
PEERS = BEGIN + """
sys.path.insert(0, sys.argv[2])
from peers.torch_convs2s import ConvS2S
from peers.torch_recurrent_models import Bahdanau, Rnn
source, target = torch.randint(0, 9, (3, 5)), torch.randint(0, 9, (3, 4))
padding = torch.arange(5) >= torch.tensor([5, 2, 1])[:, None]
size = {"vocabulary_size": 9, "hidden_dim": 6, "embedding_dim": 4, "dropout": 0.0}
more = {"encoder_dim": 5, "attention_dim": 3, "num_encoder_layers": 2, "num_decoder_layers": 3}
for kind in (Rnn, Bahdanau, ConvS2S):
    model = random(kind({**size, **more}))
    logits = model(source, padding, target)
    keep(kind.__name__, model, source_ids=source, target_ids=target, logits=logits)
"""


def close(found: Array, wanted: Array) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)


def gru(found: Mapping[str, Array], name: str, module: str = "", suffix: str = "_l0") -> Arrays:
    """`name/...` of the reference, whose gates are z, r, candidate; PyTorch has r, z, candidate."""

    def ordered(kind: str) -> Array:
        r, z, candidate = np.split(found[f"{module}{kind}{suffix}"], 3)
        return np.concatenate([z, r, candidate]).T

    bias, more = ordered("bias_ih"), ordered("bias_hh")
    edge = 2 * len(more) // 3
    bias[:edge] += more[:edge]
    parts = {"kernel": ordered("weight_ih"), "recurrent_kernel": ordered("weight_hh")}
    parts |= {"bias": bias, "recurrent_bias": more[edge:]}
    return {f"{name}/{part}": array for part, array in parts.items()}


def lstm(found: Mapping[str, Array], side: str, module: str = "") -> Arrays:
    """`side_0/...` and `side_1/...` of the reference; the gates stand as PyTorch's do."""
    arrays = {}
    for layer in range(2):
        end, name = f"_l{layer}", f"{side}_{layer}"
        arrays[f"{name}/kernel"] = found[f"{module}weight_ih{end}"].T
        arrays[f"{name}/recurrent_kernel"] = found[f"{module}weight_hh{end}"].T
        arrays[f"{name}/bias"] = found[f"{module}bias_ih{end}"] + found[f"{module}bias_hh{end}"]
    return arrays


def linear(found: Mapping[str, Array], name: str, module: str) -> Arrays:
    kernel, bias = found[f"{module}.weight"].T, found[f"{module}.bias"]
    return {f"{name}/kernel": kernel, f"{name}/bias": bias}


def weight_normalized(found: Mapping[str, Array], name: str, module: str = "") -> Arrays:
    """Of a linear layer (U, I), or of a convolution (U, C, k), whose window is k places of C."""
    norm, direction = (found[f"{module}parametrizations.weight.original{i}"] for i in (0, 1))
    arrays = {f"{name}/norm": norm.ravel(), f"{name}/bias": found[f"{module}bias"]}
    return {**arrays, f"{name}/direction": direction.T.reshape(-1, len(direction))}


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Mapping[str, Array]]:
    folder = tmp_path_factory.mktemp("modules")
    run_with_transformers(MODULES, str(folder))
    return lambda name: np.load(folder / f"{name}.npz")


@pytest.fixture(scope="module")
def peers(
    tmp_path_factory: pytest.TempPathFactory, in_checkout: Callable[[str], Path]
) -> Callable[[str], Mapping[str, Array]]:
    folder = tmp_path_factory.mktemp("peers")
    run_with_transformers(PEERS, str(folder), str(in_checkout("benchmarks")))
    return lambda name: np.load(folder / f"{name}.npz")


@pytest.mark.parity
def test_gru_in_one_direction_and_in_both(modules) -> None:
    found = modules("gru")
    states = reference.run_cell(gru(found, "cell"), "cell", CELL, list(found["x"]))
    close(np.stack(states), found["found"])
    found = modules("bidirectional")
    w = {"source_embedding/embeddings": found["x"]}
    w |= gru(found, "encoder_forward") | gru(found, "encoder_backward", suffix="_l0_reverse")
    close(reference.bahdanau_annotations(w, range(7), cell=CELL), found["found"])


@pytest.mark.parity
def test_lstm_of_two_layers(modules) -> None:
    found = modules("lstm")
    w, outputs = lstm(found, "side"), []
    states = [reference.zero_state(w, f"side_{layer}", "lstm") for layer in range(2)]
    for x in found["x"]:
        states = reference.stack_step(w, "side", "lstm", x, states)
        outputs.append(states[-1][0])
    close(np.stack(outputs), found["found"])
    for layer in range(2):
        close(states[layer], [found["h"][layer], found["c"][layer]])


@pytest.mark.parity
@pytest.mark.parametrize("order", ["forward", "reversed"])
def test_two_lstms_of_which_one_begins_in_the_states_of_the_other(modules, order: str) -> None:
    found = modules(order)
    w = lstm(found, "encoder", "encoder.") | lstm(found, "decoder", "decoder.")
    w |= {f"{side}_embedding/embeddings": found[f"{side}.weight"] for side in ("source", "target")}
    w |= linear(found, "output", "output")
    given = {"cell": "lstm", "context": "initial", "num_layers": 2}
    backwards = order == "reversed"
    outputs = reference.rnn(w, [3, 0, 5, 1], [1, 4, 2], **given, reversed_source=backwards)
    close(outputs.logits, found["found"])


@pytest.mark.parity
def test_weight_normalization_and_gated_convolutions(modules) -> None:
    found = modules("linear")
    close(reference.normalized(weight_normalized(found, "l"), "l", found["x"]), found["found"])
    found = modules("convolution")
    w = weight_normalized(found, "c")
    close(reference.gated_convolution(w, "c", found["x"], 5, 2), found["centred"])
    close(reference.gated_convolution(w, "c", found["x"], 5, 4), found["causal"])


@pytest.mark.parity
def test_bilinear_scores_and_attention_by_dot_products(modules) -> None:
    found = modules("scores")
    w, annotations = {"attention/key": found["weight"][0].T}, found["annotations"]
    score = reference.attention_score
    close([score(w, "bilinear", found["state"], z) for z in annotations], found["scores"])
    weights = softmax(np.array([score({}, "dot", found["query"][0], z) for z in annotations]))
    close((weights @ annotations)[None], found["seen"])


def check_rows(found: Mapping[str, Array], logits: Callable[[list[int], list[int]], Array]) -> None:
    """Each row of the padded batch is that of the sentence alone."""
    for row, length in enumerate(LENGTHS):
        source, target = found["source_ids"][row, :length], found["target_ids"][row]
        close(logits(source.tolist(), target.tolist()), found["logits"][row])


def shared(found: Mapping[str, Array]) -> Arrays:
    return {"source_embedding/embeddings": found["table.weight"], "output/bias": found["bias"]}


@pytest.mark.parity
def test_the_whole_model_of_cho(peers) -> None:
    found = peers("Rnn")
    w = shared(found) | gru(found, "encoder_0", "encoder.") | gru(found, "decoder_0", "decoder.")
    w |= linear(found, "context", "context") | linear(found, "initial_0", "initial")
    w |= linear(found, "readout", "readout.linear")
    given = {"cell": CELL, "context": "each_step", "num_layers": 1}
    check_rows(found, lambda *ids: reference.rnn(w, *ids, **given).logits)


@pytest.mark.parity
def test_the_whole_model_of_bahdanau(peers) -> None:
    found = peers("Bahdanau")
    w = shared(found) | gru(found, "encoder_forward", "encoder.")
    w |= gru(found, "encoder_backward", "encoder.", "_l0_reverse")
    w |= gru(found, "decoder", "cell.", "") | linear(found, "initial", "initial")
    w |= linear(found, "readout", "readout.linear")
    w |= {"attention/key": found["key.weight"].T, "attention/bias": found["key.bias"]}
    w |= {"attention/query": found["query.weight"].T, "attention/score": found["score.weight"][0]}
    check_rows(found, lambda *ids: reference.bahdanau(w, *ids, cell=CELL)[0])


@pytest.mark.parity
def test_the_whole_model_of_convolutions(peers) -> None:
    found = peers("ConvS2S")
    w, layers = shared(found), {"num_encoder_layers": 2, "num_decoder_layers": 3}
    for i, side in enumerate(("source", "target")):
        w[f"{side}_positions/embeddings"] = found[f"places.{i}.weight"]
    for i, side in enumerate(("encoder", "decoder")):
        w |= weight_normalized(found, f"{side}_input", f"starts.{i}.")
        w |= weight_normalized(found, f"{side}_output", f"ends.{i}.")
        for layer in range(layers[f"num_{side}_layers"]):
            name, module = f"{side}_block_{layer}/convolution", f"{side}.{layer}.convolution."
            w |= weight_normalized(found, name, module)
    for layer in range(layers["num_decoder_layers"]):
        w |= weight_normalized(found, f"decoder_block_{layer}/query", f"queries.{layer}.")
        w |= weight_normalized(found, f"decoder_block_{layer}/attended", f"attended.{layer}.")
    check_rows(found, lambda *ids: reference.convs2s(w, *ids, **layers, kernel_width=3)[0])
