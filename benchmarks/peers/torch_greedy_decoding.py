"""Greedy decoding in PyTorch: a loop in Python over the steps, what is known kept between them."""

import math
from typing import Any

from side_by_side.turns import Turns, cores

turns = Turns()

import numpy as np
import torch
from peers.torch_convs2s import ConvS2S
from peers.torch_recurrent_models import Bahdanau, Rnn, encoded
from torch import nn


class RnnSteps:
    """The steps of `Rnn`."""

    def __init__(self, model: Any, source: Any, padding: Any) -> None:
        self.model = model
        _, last = encoded(model.encoder, model.embedded(source), (~padding).sum(1))
        self.context = torch.tanh(model.context(last[0]))
        self.state = torch.tanh(model.initial(self.context))[None]

    def step(self, tokens: Any, time: int) -> Any:
        embedded = self.model.embedded(tokens)
        joined = torch.cat([embedded, self.context], -1)[:, None]
        states, self.state = self.model.decoder(joined, self.state)
        parts = [states[:, 0], embedded, self.context]
        return self.model.logits(self.model.readout(torch.cat(parts, -1)))


class BahdanauSteps:
    """The steps of `Bahdanau`: the keys of the attention are computed once."""

    def __init__(self, model: Any, source: Any, padding: Any) -> None:
        self.model, self.padding = model, padding
        embedded = model.embedded(source)
        self.values, last = encoded(model.encoder, embedded, (~padding).sum(1))
        self.keys, self.state = model.key(self.values), torch.tanh(model.initial(last[1]))

    def step(self, tokens: Any, time: int) -> Any:
        model, embedded, state = self.model, self.model.embedded(tokens), self.state
        scores = model.score(torch.tanh(model.query(state)[:, None] + self.keys))[..., 0]
        weights = scores.masked_fill(self.padding, -math.inf).softmax(-1)
        context = torch.bmm(weights[:, None], self.values)[:, 0]
        self.state = model.cell(torch.cat([embedded, context], -1), state)
        return model.logits(model.readout(torch.cat([state, embedded, context], -1)))


class ConvS2SSteps:
    """The steps of `ConvS2S`: the last inputs of each block are kept."""

    def __init__(self, model: Any, source: Any, padding: Any) -> None:
        self.model, self.padding = model, padding[:, None]
        self.keys, self.values, self.scale = model.encoded(source, padding)
        width = model.decoder[0].convolution.kernel_size[0]
        rows, channels = source.shape[0], model.starts[1].out_features
        empty = torch.zeros(rows, width - 1, channels)
        self.kept = [empty for _ in model.decoder]

    def step(self, tokens: Any, time: int) -> Any:
        model = self.model
        known = (model.table(tokens) + model.places[1].weight[time])[:, None]
        states = model.starts[1](known)
        for number, block in enumerate(model.decoder):
            window = torch.cat([self.kept[number], states], 1)
            self.kept[number] = window[:, 1:]
            convolved = block.convolution(window.transpose(1, 2))
            found = nn.functional.glu(convolved, dim=1).transpose(1, 2)
            states = model.joined(
                number, found, states, known, self.keys, self.values, self.scale, self.padding
            )
        return model.logits(model.ends[1](states))[:, 0]


KINDS: dict[str, tuple[Any, Any]] = {
    "rnn": (Rnn, RnnSteps),
    "bahdanau": (Bahdanau, BahdanauSteps),
    "convs2s": (ConvS2S, ConvS2SSteps),
}


def main() -> None:
    """Answers with milliseconds of decoding a batch, and its first sentence alone."""
    torch.manual_seed(1)
    torch.set_num_threads(cores())
    settings = turns.settings
    kind, steps = KINDS[settings["architecture"]]
    model = kind(settings["size"]).eval()
    arrays = np.load(settings["data"])
    source, mask = (torch.from_numpy(arrays[name]) for name in ("ids", "mask"))

    @torch.inference_mode()
    def decode(rows: int) -> Any:
        length = int(mask[:rows].sum(1).max())
        some = steps(model, source[:rows, :length], ~mask[:rows, :length])
        tokens, found = torch.full((rows,), settings["start"]), []
        for time in range(settings["steps"]):
            tokens = some.step(tokens, time).argmax(-1)
            found.append(tokens)
        return torch.stack(found, 1)

    decode(1)
    turns.ready("torch")
    turns.serve({"batch": lambda: decode(len(source)), "single": lambda: decode(1)})


if __name__ == "__main__":
    main()
