"""ConvS2S in PyTorch, of the sizes and settings of kbert's."""

import math
from typing import Any

import torch
from peers.torch_recurrent_models import Sequences
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

HALF = math.sqrt(0.5)


class GatedConvolution(nn.Module):
    """`nn.Conv1d` to twice the channels, and a gated linear unit."""

    def __init__(self, channels: int, width: int, dropout: float, before: int) -> None:
        super().__init__()
        self.convolution = weight_norm(nn.Conv1d(channels, 2 * channels, width))
        nn.init.normal_(self.convolution.bias, std=0.0)
        self.dropout, self.sides = nn.Dropout(dropout), (before, width - 1 - before)

    def forward(self, states: Any) -> Any:
        padded = nn.functional.pad(self.dropout(states).transpose(1, 2), self.sides)
        return nn.functional.glu(self.convolution(padded), dim=1).transpose(1, 2)


class ConvS2S(Sequences):
    """Gated convolutions with attention in each block of the decoder."""

    def __init__(self, size: dict[str, Any]) -> None:
        super().__init__(size)
        channels, wide, kernel = size["hidden_dim"], self.width, size.get("kernel_width") or 3
        self.places = nn.ModuleList(nn.Embedding(512, wide) for _ in range(2))

        def linear(inputs: int, outputs: int) -> Any:
            return weight_norm(nn.Linear(inputs, outputs))

        def convolutions(count: int, before: int) -> Any:
            rate = size["dropout"]
            made = (GatedConvolution(channels, kernel, rate, before) for _ in range(count))
            return nn.ModuleList(made)

        self.starts = nn.ModuleList(linear(wide, channels) for _ in range(2))
        self.ends = nn.ModuleList(linear(channels, wide) for _ in range(2))
        self.encoder = convolutions(size["num_encoder_layers"], (kernel - 1) // 2)
        self.decoder = convolutions(size["num_decoder_layers"], kernel - 1)
        layers = range(size["num_decoder_layers"])
        self.queries = nn.ModuleList(linear(channels, wide) for _ in layers)
        self.attended = nn.ModuleList(linear(wide, channels) for _ in layers)

    def placed(self, ids: Any, side: int) -> Any:
        return self.dropout(self.table(ids) + self.places[side].weight[: ids.shape[1]])

    def encoded(self, source: Any, padding: Any) -> tuple[Any, Any, Any]:
        embedded, real = self.placed(source, 0), (~padding)[..., None]
        states = self.starts[0](embedded)
        for block in self.encoder:
            states = (block(states * real) + states) * HALF
        keys, share = self.ends[0](states), 0.5 / len(self.decoder)
        keys = keys * share + (keys * (1 - share)).detach()
        return keys, (keys + embedded) * HALF, real.sum(1, keepdim=True).sqrt()

    def joined(
        self, number: int, found: Any, states: Any, known: Any, *memory: Any
    ) -> Any:
        keys, values, scale, padding = memory
        queries = (self.queries[number](found) + known) * HALF
        scores = torch.bmm(queries, keys.transpose(1, 2)).masked_fill(padding, -math.inf)
        context = self.attended[number](torch.bmm(scores.softmax(-1), values) * scale)
        return ((context + found) * HALF + states) * HALF

    def forward(self, source: Any, padding: Any, target: Any) -> Any:
        memory = (*self.encoded(source, padding), padding[:, None])
        known = self.placed(target, 1)
        states = self.starts[1](known)
        for number, block in enumerate(self.decoder):
            states = self.joined(number, block(states), states, known, *memory)
        return self.logits(self.ends[1](states))
